import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatRoute, merge, parseRoute, type Route } from '../../../client/web/src/app/route';

const plain = (r: Route): Route => ({ ...r, q: { ...r.q } });

test('a link that the design names is read as it is written', () => {
  const link = '#/job/NAME/metrics?m=loss,grad_norm&x=step&r=20000..45000&y=robust&c=33276';
  const parsed = plain(parseRoute(link));
  assert.deepEqual(parsed, {
    screen: 'job', name: 'NAME', tab: 'metrics', q: { m: 'loss,grad_norm', x: 'step', r: '20000..45000', y: 'robust', c: '33276' },
  });
  assert.equal(formatRoute(parsed), link);
  assert.deepEqual(plain(parseRoute('')), { screen: 'fleet', name: '', tab: '', q: {} });
  assert.equal(formatRoute(parseRoute('#/')), '#/');
});

test('any state survives the URL', () => {
  let seed = 7;
  const random = (n: number): number => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  const letters = ['a', 'Z', '0', '/', '?', '#', '&', '=', '%', '+', ' ', '"', '<', 'é', '🦊', '..', '@', ',', ':', '\u202e', '%2F'];
  const word = (least: number): string => Array.from({ length: least + random(6) }, () => letters[random(letters.length)]).join('');
  for (let i = 0; i < 3000; i++) {
    const q: Record<string, string> = {};
    for (let k = random(4); k > 0; k--) q[word(1)] = word(1);
    const route = { screen: 'job', name: word(1), tab: random(2) ? word(1) : '', q };
    assert.deepEqual(plain(parseRoute(formatRoute(route))), route);
  }
});

test('a link that somebody cut or typed does not throw', () => {
  for (const link of ['#/job/%', '#/job/%E0%A4%A', '#?', '#/job/a?%=%', '#/__proto__/constructor?__proto__=x', '#/a/b/c/d/e']) {
    assert.equal(typeof parseRoute(link).screen, 'string');
  }
  assert.equal(({} as Record<string, unknown>).x, undefined);
});

test('another tab keeps the axis, another job keeps nothing, and an unknown key stays', () => {
  const now = parseRoute('#/job/a/metrics?x=time&r=-1h..&m=loss&newer=1');
  assert.equal(formatRoute(merge(now, { tab: 'tasks' })), '#/job/a/tasks?x=time&r=-1h..');
  assert.equal(formatRoute(merge(now, { name: 'b' })), '#/job/b');
  assert.equal(formatRoute(merge(now, { q: { m: '', x: 'step' } })), '#/job/a/metrics?x=step&r=-1h..&newer=1');
});
