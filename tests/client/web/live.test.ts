// The page's stream: when there is one, and how curves grow by its rows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Feed, type Source } from '../../../client/web/src/api/feed';
import { live } from '../../../client/web/src/api/live';
import { setBase } from '../../../client/web/src/api/rpc';
import type { RecordedEvent } from '../../../client/web/src/api/types';
import { Poller } from '../../../client/web/src/api/poll';
import type { Curve } from '../../../client/web/src/chart/types';
import { withNewer } from '../../../client/web/src/screens/jobdata';
import { RecentRows } from '../../../client/web/src/screens/jobfeed';
import { BandTail } from '../../../client/web/src/screens/tail';

const curve = (x: number[], mid: number[]): Curve => ({
  name: 'loss', colour: 0, x: Float64Array.from(x), mid: Float64Array.from(mid), low: Float64Array.from(mid), high: Float64Array.from(mid),
  bad: new Uint32Array(x.length),
});
const list = (a: ArrayLike<number> | undefined): number[] => Array.from(a ?? []);

test('steps of several tasks become a mean, a band, and a count of what is not finite', () => {
  const tail = new BandTail(curve([0, 1, 2], [5, 5, 5]), null, 2, 1);
  for (const [step, value] of [[3, 1], [3, 3], [4, NaN], [4, 2], [5, Infinity]]) assert.ok(tail.add({ step, value }));
  const grown = tail.curve();
  assert.deepEqual(list(grown.x), [0, 1, 2, 3, 4, 5]);
  assert.deepEqual(list(grown.mid), [5, 5, 5, 2, 2, Infinity]);
  assert.deepEqual(list(grown.low).slice(3), [1, 2, Infinity]);
  assert.deepEqual(list(grown.high).slice(3), [3, 2, Infinity]);
  assert.deepEqual(list(grown.bad), [0, 0, 0, 0, 1, 1]);
});

test('columns of many steps keep their width, and the last of the base goes on', () => {
  // Columns of ten steps; the last begins at 20, and its steps up to 23 are known one by one.
  const tail = new BandTail(curve([0, 10, 20], [1, 2, 3]), curve([20, 21, 22, 23], [3, 3, 3, 3]), 23, 10);
  for (let step = 24; step < 32; step++) assert.ok(tail.add({ step, value: 13 }));
  const grown = tail.curve();
  assert.deepEqual(list(grown.x), [0, 10, 20, 30]);
  assert.deepEqual(list(grown.mid), [1, 2, (4 * 3 + 6 * 13) / 10, 13]);
  assert.deepEqual(list(grown.low), [1, 2, 3, 13]);
});

test('a row of a step that the base has is refused, and so are too many', () => {
  const tail = new BandTail(curve([0, 1], [1, 1]), null, 1, 1);
  assert.equal(tail.add({ step: 1, value: 2 }), false);
  assert.ok(tail.fits);
  for (let step = 2; step < 700; step++) tail.add({ step, value: 0 });
  assert.equal(tail.fits, false);
});

test('rows are complete up to the slowest series, from where the history of all begins', () => {
  const rows = new RecentRows();
  for (const step of [8, 9, 10]) assert.equal(rows.add('a', 0, step, step, 0, true), true);
  for (const step of [7, 8]) assert.equal(rows.add('b', 0, step, step, 0, true), true);
  assert.equal(rows.settled(), 8);
  assert.equal(rows.tip, 10);
  assert.deepEqual(rows.after(8).map((row) => row.step), [9, 10]);
  rows.add('c', 0, 20, 20, 0, true); // Steps 9 to 19 of it may be missing.
  assert.equal(rows.settled(), null);
});

test('what comes twice is not new; what comes late or of an older attempt is said to be late', () => {
  const rows = new RecentRows();
  assert.equal(rows.add('a', 0, 5, 50, 1, true), true);
  assert.equal(rows.add('a', 0, 5, 50, 1, true), false); // The history of another stream.
  assert.equal(rows.add('a', 0, 4, 40, 1, false), null);
  assert.equal(rows.add('a', 1, 2, 60, 1, false), true);
  assert.equal(rows.add('b', 0, 6, 60, 1, false), null);
  assert.equal(rows.add('b', 1, NaN, 70, 1, false), false);
  assert.equal(rows.settled(), 2);
});

test('rows that would be too many for a page are forgotten, the oldest first', () => {
  const rows = new RecentRows();
  for (let step = 0; step <= 20_000; step++) rows.add('a', 0, step, step, 0, false);
  assert.ok(rows.rows.length < 20_000);
  assert.equal(rows.settled(), 20_000);
  assert.ok(rows.after(0)[0].step > 9000);
});

test('events of the stream stand behind those that were listed, once', () => {
  const event = (kind: string, time: string): RecordedEvent => ({ kind, timeUnixNs: time });
  const listed = [event('ended', '1'), event('text', '2')];
  const found = withNewer(listed, [event('text', '2'), event('phase_begun', '3'), event('exited', '4')]);
  assert.deepEqual(found.map((e) => e.kind), ['ended', 'text', 'exited']);
  assert.equal(withNewer(listed, [event('text', '2')]), listed);
});

test('while the stream is live a calm poll rests, and news make it ask', async () => {
  let calls = 0;
  let streams = true;
  const poller = new Poller<number>({
    fetch: () => Promise.resolve(++calls), everyMs: 1, calmMs: 0, changed: () => {}, visible: () => true, streams: () => streams,
  });
  const some = () => new Promise((resolve) => setTimeout(resolve, 20));
  poller.start();
  await some();
  assert.equal(calls, 1);
  assert.equal(poller.stale(), false);
  poller.nudge();
  poller.nudge();
  await some();
  assert.equal(calls, 2);
  streams = false;
  poller.turned();
  await some();
  assert.ok(calls > 3);
  streams = true;
  const before = calls;
  poller.turned();
  await some();
  assert.equal(calls, before + 1, 'what came while the stream was away');
  poller.stop();
});

// A collector whose streams the test ends.
function streams(): { open: (() => void)[]; asked: string[] } {
  const found = { open: [] as (() => void)[], asked: [] as string[] };
  const envelope = (text: string): Uint8Array => {
    const bytes = new TextEncoder().encode(text);
    return Uint8Array.from([0, 0, 0, bytes.length >> 8, bytes.length & 255, ...bytes]);
  };
  globalThis.fetch = (async (_url: string, init: RequestInit) => {
    found.asked.push(new TextDecoder().decode((init.body as Uint8Array).subarray(5)));
    return new Response(new ReadableStream({
      start(controller) {
        controller.enqueue(envelope('{"live":{}}'));
        const end = () => controller.close();
        found.open.push(end);
        init.signal?.addEventListener('abort', () => controller.error(new DOMException('', 'AbortError')));
      },
    }));
  }) as typeof fetch;
  return found;
}

const until = async (holds: () => boolean, what: string): Promise<void> => {
  for (const end = Date.now() + 8000; !holds(); ) {
    assert.ok(Date.now() < end, what);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
};

test('a stream follows another of its subject without a gap, and comes back after an end', async () => {
  setBase('http://collector/');
  const collector = streams();
  const feed = new Feed();
  const gaps: boolean[] = [];
  const source = (subject: string, key: string): Source => ({
    subject, key, method: 'Watch', request: () => ({ key }),
    begin: (gap) => {
      gaps.push(gap);
      return () => true;
    },
  });
  let turns = 0;
  feed.on(() => void turns++);
  feed.watch(source('job', 'a'));
  await until(() => feed.live, 'live');
  feed.watch(source('job', 'b'));
  await until(() => collector.asked.length === 2 && gaps.length === 2, 'the other stream');
  assert.equal(feed.live, true);
  assert.deepEqual([gaps, turns], [[true, false], 1]);
  feed.watch(source('fleet', 'c'));
  assert.equal(feed.live, false);
  await until(() => feed.live, 'the fleet');
  assert.equal(gaps[2], true);
  collector.open[2]();
  await until(() => !feed.live, 'the end');
  await until(() => feed.live, 'back by itself');
  live.pause(true);
  feed.watch(null);
  live.pause(false);
  assert.equal(feed.live, false);
  assert.deepEqual(collector.asked.map((text) => (JSON.parse(text) as { key: string }).key), ['a', 'b', 'c', 'c']);
});
