// Which binding a key runs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matches, type Binding } from '../../../client/web/src/app/keys';

test('a key after its prefix is a sequence and not a single key, whatever a screen has bound', () => {
  const binding = (keys: string): Binding => ({ keys, help: '', run: () => {} });
  assert.ok(matches(binding('g,a'), 'a', 'g', true));
  assert.ok(!matches(binding('g,a'), 'a', '', true));
  assert.ok(!matches(binding('g,a'), 'a', 'g', false));
  assert.ok(matches(binding('w +'), '+', '', false));
  assert.ok(!matches(binding('a'), 'a', 'g', true), 'the sequences are asked first');
  assert.ok(matches(binding(','), ',', '', false));
});
