// Which binding a key runs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { candidates, type Binding } from '../../../client/web/src/app/keys';

test('a key after its prefix is a sequence first, whatever a screen has bound', () => {
  const binding = (keys: string): Binding => ({ keys, help: '', run: () => {} });
  const all = [binding('a'), binding('w +'), binding('g,a'), binding(',')];
  const run = (pressed: string, before: string) => candidates(all, pressed, before).map((b) => b.keys);
  assert.deepEqual(run('a', 'g'), ['g,a', 'a']);
  assert.deepEqual(run('a', ''), ['a']);
  assert.deepEqual(run('+', ''), ['w +']);
  assert.deepEqual(run(',', ''), [',']);
  assert.deepEqual(run('q', 'g'), []);
});
