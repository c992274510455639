import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Poller } from '../../../client/web/src/api/poll';
import { nextDelay } from '../../../client/web/src/api/retry';
import { RpcError } from '../../../client/web/src/api/rpc';

const until = async (holds: () => boolean): Promise<void> => {
  for (const end = Date.now() + 5000; !holds(); ) {
    assert.ok(Date.now() < end, 'it did not happen within 5 s');
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
};

test('failures double the delay up to a minute, and the collector’s word counts', () => {
  assert.equal(nextDelay(5000, 0, null, 0.5), 5000);
  assert.equal(nextDelay(5000, 0, null, 0), 4000);
  assert.ok(nextDelay(5000, 0, null, 0.999) < 6000);
  assert.equal(nextDelay(5000, 1, null, 0.5), 10_000);
  assert.equal(nextDelay(5000, 3, null, 0.5), 40_000);
  assert.equal(nextDelay(5000, 9, null, 0.5), 60_000);
  assert.equal(nextDelay(5000, 0, 30_000, 0.5), 30_000);
});

test('old data stays while a refresh fails, and is called stale', async () => {
  let calls = 0;
  const poller = new Poller<number>({
    fetch: () => (++calls === 1 ? Promise.resolve(7) : Promise.reject(new RpcError('unavailable', 'gone'))),
    everyMs: 1, changed: () => {}, visible: () => true,
  });
  poller.start();
  await until(() => poller.error !== null);
  assert.deepEqual([poller.data, poller.stale(), poller.error?.message], [7, true, 'gone']);
  poller.stop();
});

test('a hidden page asks nothing, and asks at once when it is seen again', async () => {
  let calls = 0;
  let visible = true;
  const poller = new Poller<number>({ fetch: () => Promise.resolve(++calls), everyMs: 1, changed: () => {}, visible: () => visible });
  poller.start();
  await until(() => calls >= 3);
  visible = false;
  await new Promise((resolve) => setTimeout(resolve, 20));
  const before = calls;
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(calls, before);
  visible = true;
  poller.wake();
  await until(() => calls > before);
  poller.stop();
});

test('what will not answer later is not asked again', async () => {
  for (const [code, again] of [['permission_denied', false], ['unimplemented', false], ['unavailable', true]] as const) {
    const poller = new Poller<number>({
      fetch: () => Promise.reject(new RpcError(code, 'no')), everyMs: 1, changed: () => {}, visible: () => true,
    });
    poller.start();
    await until(() => poller.error !== null);
    assert.equal(poller.waits, again, code);
    poller.stop();
  }
});

test('the answer to a call that was replaced is dropped', async () => {
  const answers: ((value: string) => void)[] = [];
  const poller = new Poller<string>({
    fetch: () => new Promise((resolve) => answers.push(resolve)), everyMs: 0, changed: () => {}, visible: () => true,
  });
  poller.start();
  poller.reload();
  answers[1]('new');
  answers[0]('old');
  await until(() => poller.data !== null);
  assert.equal(poller.data, 'new');
  poller.stop();
});

test('once others are answered again, what failed asks at once, unless the collector said when', async () => {
  for (const [retryAfterMs, asks] of [[null, true], [60_000, false]] as const) {
    let calls = 0;
    let away = true;
    const poller = new Poller<number>({
      fetch: () => (++calls > 1 && away ? Promise.reject(new RpcError('unavailable', 'gone', 503, [], retryAfterMs)) : Promise.resolve(calls)),
      everyMs: 60_000, changed: () => {}, visible: () => true, random: () => 0.01,
    });
    poller.start();
    await until(() => poller.data === 1);
    poller.reload();
    await until(() => poller.error !== null);
    away = false;
    poller.answersAgain();
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(poller.error === null, asks);
    poller.stop();
  }
});

test('news does not put off what is to be tried again', async () => {
  let calls = 0;
  let away = true;
  const poller = new Poller<number>({
    fetch: () => (++calls > 1 && away ? Promise.reject(new RpcError('unavailable', 'gone')) : Promise.resolve(calls)),
    everyMs: 60_000, calmMs: 60_000, changed: () => {}, visible: () => true, random: () => 0.05, streams: () => true,
  });
  poller.start();
  await until(() => poller.data === 1);
  poller.reload();
  await until(() => poller.error !== null);
  away = false;
  const news = setInterval(() => poller.nudge(), 5);
  try {
    await until(() => poller.error === null);
  } finally {
    clearInterval(news);
    poller.stop();
  }
});
