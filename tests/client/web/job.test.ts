// What the screens of a job compute: the view of the URL, lanes, curves, and what is copied.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CompareMetric, GetJobResponse, GoodputResponse, RecordedEvent } from '../../../client/web/src/api/types';
import type { Route } from '../../../client/web/src/app/route';
import type { Curve } from '../../../client/web/src/chart/types';
import { pattern } from '../../../client/web/src/parts/pattern';
import { python, tachoctl, type Shown } from '../../../client/web/src/screens/copyas';
import { groupOf, mainMetric, stepMetric, workMetric } from '../../../client/web/src/screens/groups';
import { withAxis } from '../../../client/web/src/screens/job';
import { fullExtent, supersededOf, worstFirst } from '../../../client/web/src/screens/jobdata';
import { curvesKey } from '../../../client/web/src/screens/livecurves';
import { earlier, pinsOf, pinsText } from '../../../client/web/src/screens/metrics';
import { column, curves, joined, regrouped, within, type CurveRequest } from '../../../client/web/src/screens/series';
import { attemptLane, eventLane, ledgerLane, packed, placeOn, verdictSpans } from '../../../client/web/src/screens/spans';
import { formatRange, parseRange, steppedNow, type Extent } from '../../../client/web/src/screens/view';

const NOW = Date.UTC(2026, 10, 24, 12);
const nano = (seconds: number) => String(BigInt(NOW) * 1_000_000n + BigInt(Math.round(seconds * 1e9)));

test('a range of the URL is read back as it was written, on every axis', () => {
  const cases: [Parameters<typeof formatRange>[1], Extent][] = [
    ['step', [20000, 45000]], ['elapsed', [120, 3600]], ['elapsed', [1.5, 3.25]], ['time', [NOW - 3_600_000, NOW]], ['time', [NOW, NOW + 1500]],
  ];
  for (const [kind, range] of cases) {
    assert.deepEqual(parseRange(formatRange(range, kind), kind, [0, 1e15], NOW), range, kind);
  }
  assert.equal(formatRange([20000, 45000], 'step'), '20000..45000');
});

test('open and relative ends are those of now; nonsense is no range', () => {
  assert.deepEqual(parseRange('-1h..', 'time', [0, NOW + 5], NOW), [NOW - 3_600_000, NOW + 5]);
  assert.deepEqual(parseRange('..500', 'step', [0, 900], NOW), [0, 500]);
  assert.deepEqual(parseRange('2026-11-24T09:00Z..2026-11-24T10:00Z', 'time', [0, NOW], NOW), [NOW - 3 * 3_600_000, NOW - 2 * 3_600_000]);
  for (const text of ['', '5', '9..3', 'x..y', '..']) assert.equal(parseRange(text, 'step', [7, 8], NOW), null, text);
});

test('a range of another axis is no range of this one', () => {
  assert.equal(parseRange('33811..40000', 'time', [0, NOW], NOW), null, 'steps are no years');
  assert.equal(parseRange('2026-11-24T09:00Z..2026-11-24T10:00Z', 'step', [0, 900], NOW), null);
  assert.equal(parseRange('-1h..', 'step', [0, 900], NOW), null);
});

test('what is relative to now is asked under one key while now moves on', () => {
  assert.equal(steppedNow(NOW + 1), NOW + 10_000);
  assert.equal(steppedNow(NOW + 9999), NOW + 10_000);
  const request = (now: number, link = '-1h..'): CurveRequest => ({
    job: 'j', metric: 'loss', kind: 'time', range: parseRange(link, 'time', [0, now], now), link, origin: 0, by: 'band', tasks: [],
    attempts: 'effective', superseded: {}, points: 400, raw: false,
  });
  assert.notDeepEqual(request(NOW).range, request(NOW + 60_000).range);
  assert.equal(curvesKey(request(NOW)), curvesKey(request(NOW + 60_000)));
  assert.notEqual(curvesKey(request(NOW)), curvesKey(request(NOW, '-2h..')));
});

const detail: GetJobResponse = {
  job: { name: 'j', firstSeenUnixNs: nano(0), lastSeenUnixNs: nano(100), lastStep: '900' },
  attempts: [
    { firstSeenUnixNs: nano(0), lastSeenUnixNs: nano(50), firstStep: '0', lastStep: '500', superseded: [{ begin: '401', end: '500' }] },
    { attempt: 1, firstSeenUnixNs: nano(60), lastSeenUnixNs: nano(100), firstStep: '401', lastStep: '900' },
  ],
  timeline: [{ firstStep: '0', lastStep: '400' }, { firstStep: '401', lastStep: '900', attempt: 1 }],
};
const goodput: GoodputResponse = {
  spans: [
    { bucket: 'GOODPUT_BUCKET_PRODUCTIVE_STEP', beginUnixNs: nano(0), endUnixNs: nano(40), firstStep: '0', lastStep: '400' },
    { bucket: 'GOODPUT_BUCKET_WASTED', beginUnixNs: nano(40), endUnixNs: nano(50), firstStep: '401', lastStep: '500' },
    { bucket: 'GOODPUT_BUCKET_DOWN', beginUnixNs: nano(50), endUnixNs: nano(60) },
    { bucket: 'GOODPUT_BUCKET_PRODUCTIVE_STEP', beginUnixNs: nano(60), endUnixNs: nano(100), firstStep: '401', lastStep: '900', attempt: 1 },
  ],
};

test('along steps, time without steps is a moment where it happened; along time it has its width', () => {
  const byStep = ledgerLane(goodput, 'step', placeOn('step', detail, goodput, NOW)).spans;
  const down = byStep.find((s) => s.kind === 'down')!;
  assert.deepEqual([down.from, down.to], [500, 500]);
  const pause = { bucket: 'GOODPUT_BUCKET_EVALUATION' as const, beginUnixNs: nano(10), endUnixNs: nano(20) };
  const paused = { spans: [pause, ...goodput.spans!] };
  const evaluation = ledgerLane(paused, 'step', placeOn('step', detail, goodput, NOW)).spans.find((s) => s.kind === 'evaluation')!;
  assert.deepEqual([evaluation.from, evaluation.to], [100, 100]);
  const byTime = ledgerLane(goodput, 'time', placeOn('time', detail, goodput, NOW)).spans;
  assert.deepEqual(byTime.map((s) => s.to - s.from), [40_000, 10_000, 10_000, 40_000]);
  const elapsed = ledgerLane(goodput, 'elapsed', placeOn('elapsed', detail, goodput, NOW)).spans;
  assert.deepEqual([elapsed[2].from, elapsed[2].to], [50, 60]);
});

test('an event without a step stands between the steps of its time', () => {
  const place = placeOn('step', detail, goodput, NOW);
  assert.equal(place(NOW + 20_000, null), 200);
  assert.equal(place(NOW + 20_000, 7), 7);
  assert.equal(place(NOW + 55_000, null), 500, 'a restart is a jump, not a slope');
  assert.equal(placeOn('step', detail, {}, NOW)(NOW + 25_000, null), 250, 'without spans, by the attempts');
});

test('attempts are the steps that count, or the times that they ran', () => {
  assert.deepEqual(attemptLane(detail, 'step', NOW).spans.map((s) => [s.from, s.to]), [[0, 401], [401, 901]]);
  assert.deepEqual(attemptLane(detail, 'elapsed', NOW).spans.map((s) => [s.from, s.to]), [[0, 50], [60, 100]]);
  assert.deepEqual(supersededOf(detail), { 0: [[401, 500]] });
  assert.deepEqual(fullExtent(detail, 'step'), [0, 900]);
  assert.deepEqual(fullExtent(detail, 'elapsed'), [0, 100]);
  assert.equal(fullExtent({ job: { firstSeenUnixNs: nano(0), lastSeenUnixNs: nano(1) } }, 'step'), null);
});

test('a verdict lasts from its first bad step until it was cleared, or until now', () => {
  const event = (kind: string, condition: string, at: number, more: Partial<RecordedEvent> = {}): RecordedEvent => ({
    kind, timeUnixNs: nano(at), fields: { condition, severity: 'critical', host: 'host-5', task: '417' }, ...more,
  });
  const events = [
    event('condition_raised', 'Straggling', 30, { step: '200' }),
    event('condition_raised', 'Stalled', 50),
    event('condition_cleared', 'Straggling', 40),
  ];
  const now = [{ condition: 'Throttled', severity: 'CONDITION_SEVERITY_WARNING' as const, sinceUnixNs: nano(80), step: '650' }];
  const spans = verdictSpans(events, now, placeOn('step', detail, goodput, NOW), 900);
  assert.deepEqual(spans.map((s) => [s.text, s.kind, s.from, s.to]), [
    ['Straggling: task 417, host-5', 'critical', 200, 400],
    ['Stalled: task 417, host-5', 'critical', 500, 900],
    ['Throttled', 'warning', 650, 900],
  ]);
  assert.deepEqual(packed('verdicts', spans, 3).map((lane) => lane.spans.length), [2, 1]);
});

test('what all tasks say at once is one diamond', () => {
  const events = Array.from({ length: 16 }, (_, task): RecordedEvent => ({
    kind: 'exited', timeUnixNs: nano(10), step: '100', source: { job: 'j', task }, message: 'Killed',
  }));
  const { spans } = eventLane(events, placeOn('step', detail, goodput, NOW));
  assert.equal(spans.length, 1);
  assert.equal(spans[0].kind, 'failure');
  assert.match(spans[0].title!, /exited at .*: Killed \(16 times\)/);
});

test('rows without a sample of the subject are no gap of it; NaN stays NaN', () => {
  const metric: CompareMetric = {
    positions: ['0', '10', '20'],
    columns: [{ avg: [1, 'NaN', 'NaN'], min: [1, 'NaN', 'NaN'], max: [1, 'NaN', 'NaN'], counts: ['4', '0', '4'], nonFinite: ['0', '0', '4'] }],
  };
  const c = column(metric, 0, (p) => p, 'loss');
  assert.deepEqual([...c.x], [0, 20]);
  assert.ok(Number.isNaN(c.mid[1]));
  assert.deepEqual([...c.bad!], [0, 4]);
});

test('new samples join in columns as wide as the old ones, and nothing is there twice', () => {
  const make = (x: number[], y: number[]): Curve => ({
    name: 'loss', colour: 3, x: Float64Array.from(x), mid: Float64Array.from(y), low: Float64Array.from(y), high: Float64Array.from(y),
    bad: new Uint32Array(x.length),
  });
  const old = make([0, 10, 20], [9, 8, 7]);
  const tail = make([20, 21, 29, 30, 41], [6, 5, 7, NaN, 3]);
  tail.bad![3] = 1;
  const grown = joined(old, regrouped(tail, 20, 10));
  assert.deepEqual([...grown.x], [0, 10, 20, 30, 40]);
  assert.deepEqual([...grown.mid], [9, 8, 6, NaN, 3]);
  assert.deepEqual([...grown.low!], [9, 8, 5, NaN, 3]);
  assert.deepEqual([...grown.high!], [9, 8, 7, NaN, 3]);
  assert.deepEqual([...grown.bad!], [0, 0, 0, 1, 0]);
  assert.equal(grown.colour, 3);
});

test('metrics are grouped by what they are about, and the overview finds its own', () => {
  const names = ['accuracy', 'eval_loss', 'Train/Loss', 'step_time_seconds', 'compute_seconds', 'chip_power_watts', 'host_load1', 'rollout/length', 'tacho_agent_cpu_seconds_total', 'zzz'];
  assert.deepEqual(names.map(groupOf), ['Learning', 'Learning', 'Learning', 'Speed', 'Speed', 'Chips', 'Host', 'rollout', 'Agents', 'Other']);
  assert.equal(mainMetric(names), 'Train/Loss');
  assert.equal(mainMetric(['eval_loss', 'my_loss']), 'my_loss');
  assert.equal(mainMetric(['zzz']), 'zzz');
  assert.equal(mainMetric([]), '');
  assert.equal(stepMetric(names), 'step_time_seconds');
  assert.equal(workMetric(names), 'compute_seconds');
  assert.equal(workMetric(['step_time_seconds']), 'step_time_seconds');
});

test('commands and programs are quoted for whoever reads them', () => {
  const shown: Shown = {
    job: "it's a job", metric: 'loss', kind: 'step', range: [10, 20], origin: NOW, by: 'task', tasks: ['3', '417'], attempts: 'effective', raw: false,
  };
  assert.equal(
    tachoctl(shown),
    `tachoctl query 'it'\\''s a job' loss --by step --steps 10:20 --match 'task=~3|417' --attempts effective --across avg --points 500 --group-by task`,
  );
  assert.match(python(shown), /tacho\.query\(None, "it's a job", "loss", by="step", begin=10, end=20, matchers=\["task=~3\|417"\], attempts="effective"/);
  const byTime: Shown = { ...shown, kind: 'elapsed', range: [0.5, 59.5], raw: true, tasks: [], by: 'band' };
  assert.match(tachoctl(byTime), /--utc --from '2026-11-24 12:00:00' --to '2026-11-24 12:01:00' --attempts effective$/);
  assert.match(tachoctl({ ...shown, job: '$(rm -rf /)' }), /^tachoctl query '\$\(rm -rf \/\)' /);
});

test('pins keep their order and any name in the URL', () => {
  const names = ['loss', 'a,b', '100%2C', 'ü/x'];
  assert.deepEqual(pinsOf({ screen: 'job', name: 'j', tab: 'metrics', q: { m: pinsText(names) } }), names);
  assert.deepEqual(earlier(['a', 'b', 'c'], 'c'), ['a', 'c', 'b']);
  assert.deepEqual(earlier(['a', 'b'], 'a'), ['a', 'b']);
});

test('a pattern that is not complete yet matches as text', () => {
  assert.ok(pattern('grad.*')('Grad_norm'));
  assert.ok(pattern('/loss')('eval_loss'));
  assert.ok(pattern('loss (')('my loss (total)'));
  assert.ok(!pattern('loss (')('loss'));
});

test('of equal verdicts, the one that names a culprit comes first, then the oldest', () => {
  const make = (condition: string, severity: 'WARNING' | 'CRITICAL', since: number, culprit: boolean) => ({
    condition, severity: `CONDITION_SEVERITY_${severity}` as const, sinceUnixNs: nano(since), culprits: culprit ? [{ host: 'h' }] : [],
  });
  const found = [make('new', 'WARNING', 9, false), make('old', 'WARNING', 1, false), make('culprit', 'WARNING', 5, true), make('critical', 'CRITICAL', 7, false)];
  assert.deepEqual(worstFirst(found).map((c) => c.condition), ['critical', 'culprit', 'old', 'new']);
});

test('a job without steps is shown by time, unless the link says otherwise', () => {
  const route = (x: string): Route => ({ screen: 'job', name: 'hosts', tab: '', q: x ? { x } : {} });
  assert.equal(withAxis(route(''), { job: { name: 'hosts' } }).q.x, 'time');
  assert.equal(withAxis(route('step'), { job: { name: 'hosts' } }).q.x, 'step');
  assert.equal(withAxis(route(''), detail).q.x, undefined);
});

test('a range of times includes its end, and one of steps those that it touches', () => {
  assert.deepEqual(within({ range: [10.5, 20.2], kind: 'step', origin: 0 }), { steps: { begin: '10', end: '21' } });
  assert.deepEqual(within({ range: [1, 2], kind: 'elapsed', origin: 500 }), { time: { beginUnixNs: '1500000000', endUnixNs: '2501000000' } });
  assert.deepEqual(within({ range: null, kind: 'time', origin: 0 }), {});
});

test('curves by task ask for the tasks that are shown, and for all if those have none', async () => {
  const asked: boolean[] = [];
  const real = globalThis.fetch;
  globalThis.fetch = async (_, init) => {
    asked.push(Buffer.from(init?.body as Uint8Array).includes('0|1|2|3|4|5|6|7|8|9|10|11|12|13|14|15|16|17|18|19|20|21|22|23|24|25|26|27|28|29|30|31'));
    return new Response(Uint8Array.of(2, 0, 0, 0, 2, 123, 125)); // The end of a stream without a message.
  };
  const request: CurveRequest = {
    job: 'j', metric: 'loss', kind: 'step', range: null, link: '', origin: 0, by: 'task', tasks: [], attempts: 'effective', superseded: {}, points: 9, raw: false,
  };
  try {
    await curves(request);
    assert.deepEqual(asked, [true, false]);
    await curves({ ...request, tasks: ['7'] });
    await curves({ ...request, by: 'host' });
    assert.deepEqual(asked, [true, false, false, false]);
  } finally {
    globalThis.fetch = real;
  }
});
