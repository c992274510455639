// What the screens of tasks, comparisons, hosts, agents and the ledger compute.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LatestSample, LedgerSpan, NonFinite } from '../../../client/web/src/api/types';
import type { MatrixData } from '../../../client/web/src/chart/types';
import { fmt } from '../../../client/web/src/parts/format';
import { pattern } from '../../../client/web/src/parts/pattern';
import { addReasons, assessAgents, failing, firstFailure } from '../../../client/web/src/screens/agent_status';
import { failureText } from '../../../client/web/src/screens/agents';
import { addressOf, rate } from '../../../client/web/src/screens/collector';
import { change, commonMetrics } from '../../../client/web/src/screens/compare';
import { chipTable, outliers } from '../../../client/web/src/screens/host';
import { hostCosts } from '../../../client/web/src/screens/host_cost';
import { fetchUse, leftOutText, namedBy, servedBy } from '../../../client/web/src/screens/hostjobs';
import { bucketsOf, sumsOf, timeAt, timesOf } from '../../../client/web/src/screens/ledger';
import { byInterest, lowIsBad, ordered, ranges, since } from '../../../client/web/src/screens/matrixrows';
import { turns, whose } from '../../../client/web/src/screens/nan';
import { calls, differences, formatSubjects, merged, parseSubjects, placed } from '../../../client/web/src/screens/subjects';
import { read } from '../../../client/web/src/screens/runbook';
import { poleOf } from '../../../client/web/src/screens/sweep';
import { mapKey, requestOf } from '../../../client/web/src/screens/tasks';
import { hostLanes, phaseLane } from '../../../client/web/src/screens/timeline_lanes';

const at = (ms: number): string => `${ms}000000`;

function map(rows: number[][], host = (i: number) => `host-${i}`): MatrixData {
  const columns = rows[0].length;
  const median = Float32Array.from({ length: columns }, (_, c) => rows.map((r) => r[c]).filter(Number.isFinite).sort((a, b) => a - b)[Math.floor((rows.length - 1) / 2)]);
  const score = (r: number[]) => r.reduce((sum, v, c) => sum + v / median[c], 0) / columns;
  return {
    metric: { name: 'compute_seconds', unit: 's', help: '' }, first: 100, width: 10, columns, median, low: median, high: median,
    rowsTotal: rows.length, samples: 0, values: Float32Array.from(rows.flat()), nonFinite: new Uint32Array(0),
    rows: rows.map((r, i) => ({ task: i, host: host(i), chip: '', label: '', firstColumn: 0, lastColumn: columns - 1, holes: 0, score: score(r), nonFinite: 0 })),
  };
}

test('the worst row comes first, and hosts are ordered by their numbers', () => {
  const m = map([[1, 1, 1, 1], [1, 1, 2, 2], [1, 1, 1, 1]], (i) => ['host-10', 'host-9', 'host-2'][i]);
  assert.deepEqual([...ordered(m, 'worst', false, () => true)], [1, 2, 0]);
  assert.deepEqual([...ordered(m, 'host', false, () => true)], [2, 1, 0]);
  assert.deepEqual([...ordered(m, 'task', false, (row) => row.host !== 'host-9')], [0, 2]);
  assert.equal([...ordered(m, 'worst', true, () => true)][2], 1, 'where low is bad, the highest is last');
});

test('a row with NaN comes before a slow one', () => {
  const m = map([[1, 1], [3, 3], [1, 1]]);
  m.rows[2].nonFinite = 1;
  assert.equal(ordered(m, 'worst', false, () => true)[0], 2);
});

test('since when a row stands out', () => {
  const rows = [[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1.6, 1.6, 1.6, 1.6, 1.6], [1, 1, 1, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2, 2, 2]];
  const m = map([rows[0], rows[1], rows[2]]);
  assert.equal(since(m, 1, false), 130);
  assert.equal(since(m, 0, false), null);
  assert.equal(since(map([rows[0], [1, 1.6, 1, 1, 1, 1, 1.6, 1.6], rows[2]]), 1, false), 160, 'a single peak is no beginning');
  assert.equal(since(map([rows[0], rows[3], rows[2]]), 1, false), null, 'always slow');
  assert.equal(since(map([rows[0], [1, 1, 1, 1, 1, 1, 0.4, 0.4], rows[2]]), 1, true), 160);
});

test('which metrics are bad when they are low, and which are shown first', () => {
  assert.deepEqual(['chip_duty_cycle_ratio', 'chip_clock_hertz', 'compute_seconds', 'chip_temperature_celsius'].map(lowIsBad), [true, true, false, false]);
  assert.deepEqual(byInterest(['loss', 'step_time_seconds', 'comm_wait_seconds', 'compute_seconds']), ['compute_seconds', 'comm_wait_seconds', 'step_time_seconds', 'loss']);
  assert.equal(ranges([3, 0, 1, 2, 7]), '0-3,7');
  assert.equal(pattern('rack7-[')('RACK7-[3'), true, 'a pattern that is not whole is looked for as text');
});

test('a map of chips asks the hosts of the job, by time, for the lowest where that is bad', () => {
  const shown = { job: 'j', metric: 'chip_duty_cycle_ratio', chips: true, kind: 'time' as const, info: undefined };
  const request = requestOf(shown, null, [1000, 2000], 0, ['a.b', 'c']);
  assert.equal(request.selector?.job, 'hosts');
  assert.deepEqual(request.selector?.matchers, [{ label: 'host', op: 'OP_MATCHES', value: 'a\\.b|c' }]);
  assert.equal(request.value, 'BUCKET_VALUE_MIN');
  assert.equal(request.time?.beginUnixNs, at(1000));
  const steps = requestOf({ ...shown, metric: 'compute_seconds', chips: false, kind: 'step' }, [10.5, 20.2], null, 0, []);
  assert.equal(mapKey(shown, '-1h..', 2), 'j chip_duty_cycle_ratio time -1h.. 2');
  assert.equal(mapKey(shown, '-1h..', 0), '', 'not before the hosts are known');
  assert.deepEqual([steps.steps, steps.value, steps.axis], [{ begin: '10', end: '21' }, 'BUCKET_VALUE_MAX', 'AXIS_STEP']);
});

const span = (bucket: string, begin: number, end: number, steps?: [number, number], attempt = 0): LedgerSpan => ({
  bucket: `GOODPUT_BUCKET_${bucket}` as LedgerSpan['bucket'], beginUnixNs: at(begin), endUnixNs: at(end), attempt,
  ...(steps ? { firstStep: String(steps[0]), lastStep: String(steps[1]) } : {}),
});
const SPANS = [span('INITIALIZING', 1000, 3000), span('PRODUCTIVE_STEP', 3000, 13_000, [0, 9]), span('STALLED', 13_000, 20_000), span('PRODUCTIVE_STEP', 20_000, 25_000, [5, 9], 1)];

test('the ledger of a part counts what lies within it', () => {
  assert.deepEqual(sumsOf(SPANS, 2000, 14_000), [
    { bucket: 'productive_step', seconds: 10 }, { bucket: 'initializing', seconds: 1 }, { bucket: 'stalled', seconds: 1 },
  ]);
  assert.deepEqual(sumsOf(SPANS, 30_000, 40_000), []);
  assert.deepEqual(bucketsOf({ buckets: [{ bucket: 'GOODPUT_BUCKET_DOWN' }, { bucket: 'GOODPUT_BUCKET_WASTED', ns: '2000000000' }] }), [{ bucket: 'wasted', seconds: 2 }]);
});

test('a step has the time of its newest attempt', () => {
  assert.equal(timeAt(SPANS, 2), 5000);
  assert.equal(timeAt(SPANS, 5), 20_000);
  assert.equal(timeAt(SPANS, 50), 25_000);
  assert.equal(timeAt([], 5), null);
  assert.deepEqual(timesOf('step', [2, 7], { spans: SPANS }, 0), [5000, 22_000]);
  assert.deepEqual(timesOf('elapsed', [1, 2], {}, 500), [1500, 2500]);
});

test('the slowest host of each column is charged with what it took above the median', () => {
  const costs = hostCosts(map([[1, 1], [1.5, 1], [1, 1.25]]));
  assert.deepEqual(costs.map((c) => [c.host, c.seconds, c.slowest]), [['host-1', 5, 0.5], ['host-2', 2.5, 0.5], ['host-0', 0, 0]]);
});

test('subjects survive the URL, whatever their names', () => {
  const subjects = [{ job: 'a,b@2%2Cc', attempt: null }, { job: 'plain', attempt: 0 }, { job: 'plain', attempt: null }];
  assert.deepEqual(parseSubjects(formatSubjects(subjects)), subjects);
  assert.deepEqual(parseSubjects(undefined), []);
  assert.equal(parseSubjects(Array.from({ length: 30 }, (_, i) => `j${i}`).join()).length, 20);
});

test('twenty subjects are two calls that begin with the same', () => {
  const subjects = parseSubjects(Array.from({ length: 20 }, (_, i) => `j${i}`).join());
  const parts = calls(subjects);
  assert.deepEqual(parts.map((p) => p.length), [16, 5]);
  assert.deepEqual([parts[1][0].job, parts[1][1].job], ['j0', 'j16']);
  const answer = (lasts: number[]) => ({ subjects: {}, metrics: [{ metric: { name: 'loss' }, positions: ['0'], columns: lasts.map((last) => ({ summary: { last } })) }] });
  const rows = merged([answer(Array.from({ length: 16 }, (_, i) => i)), answer([0, 16, 17, 18, 19])], [16, 5]);
  assert.deepEqual(rows[0].columns.map((c) => c?.summary?.last), Array.from({ length: 20 }, (_, i) => i));
});

test('attributes that differ, positions, changes', () => {
  assert.deepEqual(differences([{ a: '1', b: 'x' }, { a: '2', b: 'x' }, { a: '1', b: 'x', c: 'only' }]), {
    different: [{ name: 'a', values: ['1', '2', '1'] }, { name: 'c', values: ['', '', 'only'] }], equal: 1,
  });
  assert.deepEqual([placed('step', 7, 100), placed('tokens', 7, 100), placed('elapsed', 7e9, 100)], [7, 700, 7]);
  const summary = (relativeDifference: number | string | undefined, shared = '5') => ({ positions: [], summary: { shared, relativeDifference } });
  assert.deepEqual([0.0042, -0.31, undefined, 'NaN'].map((v) => change(summary(v))), ['+0.42 %', '−31 %', '0 %', '–']);
  assert.equal(change(summary(0, '0')), '–', 'nothing is shared');
  assert.deepEqual(commonMetrics([{ metrics: [{ name: 'b' }, { name: 'a' }] }, { metrics: [{ name: 'a' }] }]), ['a']);
});

test('poles of a sweep: numbers by size, powers by their logarithm, words in order', () => {
  assert.deepEqual(poleOf('lr', ['1e-4', '1e-2', '1e-3', undefined]).at.map((v) => v === null ? null : Math.round(v * 100)), [0, 100, 50, null]);
  assert.deepEqual(poleOf('batch', ['1', '3', '2']).at, [0, 1, 0.5]);
  assert.deepEqual(poleOf('kind', ['H200', 'H100']).at, [1, 0]);
});

test('series that turned at one step are one turn', () => {
  const one = (metric: string, task: number, step: number, finiteAfter = '0'): NonFinite => ({
    series: { metric: { name: metric }, task, host: `h${task}` }, step: String(step), timeUnixNs: at(step), value: 'NaN', finiteAfter,
  });
  const found = turns([one('grad', 3, 10), one('loss', 3, 11), one('loss', 0, 11, '4'), one('loss', 1, 11)]);
  assert.deepEqual(found.map((t) => [t.metric, t.step, t.tasks, t.stays]), [['grad', 10, [3], true], ['loss', 11, [3, 0, 1], false]]);
  assert.deepEqual(found.map(whose), ['task 3 on h3', 'tasks 0-1,3']);
});

const sample = (metric: string, ms: number, value: number, labels: Record<string, string> = {}, host = 'h'): LatestSample => ({
  series: { metric: { name: `tacho_agent_${metric}` }, host, labels: Object.entries(labels).map(([name, v]) => ({ name, value: v })) }, timeUnixNs: at(ms),
  ...(value ? { value } : {}),
});

test('agents: state, sources, losses, as tachoctl agents has them', () => {
  const latest = [
    sample('info', 100_000, 1, { agent_id: 'id', version: '0.2' }), sample('info', 99_000, 1, { agent_id: 'id', version: '0.1' }),
    sample('lost_rows_total', 100_000, 2), sample('source_lost_rows_total', 100_000, 3, { source: 'tpu' }), sample('source_up', 100_000, 0, { source: 'tpu' }),
    sample('source_failing', 100_000, 1, { source: 'tpu', reason: 'UNAVAILABLE' }), sample('source_failing_seconds', 100_000, 40, { source: 'tpu' }),
    sample('source_retry_seconds', 100_000, 12, { source: 'tpu' }), sample('source_up', 100_000, 1, { source: 'host' }),
    sample('source_up', 20_000, 0, { source: 'gone' }), sample('rows_total', 30_000, 5, {}, 'quiet'), sample('rows_total', 99_000, 5, {}, 'a'),
  ];
  const agents = assessAgents(latest, 101_000);
  assert.deepEqual(agents.map((a) => [a.host, a.state]), [['quiet', 'silent'], ['h', 'failing'], ['a', 'ok']]);
  const [, h] = agents;
  assert.deepEqual([h.version, h.lostRows, h.sources.map((s) => s.name)], ['0.2', 5, ['host', 'tpu']]);
  assert.equal(firstFailure(agents, 101_000), 60_000);
  const old = assessAgents([sample('source_up', 1e9, 0, { source: 'tpu' })], 1e9);
  assert.equal(firstFailure(old, 1e9), 1e9 - 86_400_000, 'not since ever');
  assert.equal(firstFailure([], 1e9), null);
  addReasons([{ source: { host: 'h' }, fields: { source: 'tpu' }, message: 'no libtpu' }], agents);
  assert.equal(failureText(failing(h)[0], 101_000), 'tpu fails for 41s, again in 11s: UNAVAILABLE: no libtpu');
});

test('chips side by side: a zero is a value, and the odd one is marked', () => {
  const chip = (metric: string, name: string, value?: number): LatestSample => ({ series: { metric: { name: metric }, labels: [{ name: 'chip', value: name }] }, value });
  const table = chipTable([chip('chip_xid_errors_total', '0'), chip('chip_clock_hertz', '10', 1.2e9), chip('chip_clock_hertz', '2', 1.9e9), chip('chip_clock_hertz', '0', 1.9e9)]);
  assert.deepEqual(table.chips, ['0', '2', '10']);
  assert.deepEqual(table.rows.map((r) => [r.metric, r.values]), [['chip_clock_hertz', [1.9e9, 1.9e9, 1.2e9]], ['chip_xid_errors_total', [0, null, null]]]);
  assert.deepEqual(outliers([100, 100, 60, 130, null]), [0, 0, -1, 1, 0]);
  assert.deepEqual(outliers([0.01, 0.01, 0.05, 0.01]), [0, 0, 1, 0]);
  assert.deepEqual(outliers([0, 0, 63, 0]), [0, 0, 1, 0]);
});

test('hosts: who runs there, and which verdicts name it', () => {
  const served = servedBy([{ job: { name: 'j' }, tasks: [{ task: 1, host: 'h', state: 'JOB_STATE_RUNNING', firstSeenUnixNs: at(5), lastSeenUnixNs: at(9) }, { task: 0, host: 'h', state: 'JOB_STATE_ENDED', firstSeenUnixNs: at(2), lastSeenUnixNs: at(3) }] }]);
  assert.deepEqual(served.get('h'), [{ job: 'j', running: true, tasks: [1, 0], beginMs: 2, endMs: 9 }]);
  const named = namedBy([{ condition: 'A', severity: 'CONDITION_SEVERITY_WARNING', culprits: [{ host: 'h' }, { host: 'h', task: 1 }] }, { condition: 'B', severity: 'CONDITION_SEVERITY_CRITICAL', culprits: [{ host: 'h' }] }]);
  assert.deepEqual(named.get('h')?.map((c) => c.condition), ['B', 'A']);
});

test('hosts: every page of jobs is read, those that run are asked first, and one that is gone is left out', async () => {
  const asked: string[] = [];
  const answers: Record<string, (request: { states?: string[]; pageToken?: string; job?: string }) => unknown> = {
    Conditions: () => ({}),
    ListJobs: ({ states, pageToken }) => {
      if (states?.[0] !== 'JOB_STATE_RUNNING') return { jobs: Array.from({ length: 250 }, (_, i) => ({ name: `old-${i}` })) };
      return pageToken ? { jobs: [{ name: 'second' }, { name: 'gone' }] } : { jobs: [{ name: 'first' }, { name: 'hosts' }], nextPageToken: 'more' };
    },
    GetJob: ({ job }) => {
      asked.push(job ?? '');
      return job === 'gone' ? null : { job: { name: job }, tasks: [{ task: 0, host: `of-${job}`, state: 'JOB_STATE_RUNNING' }] };
    },
  };
  const real = globalThis.fetch;
  globalThis.fetch = async (url, init) => {
    const answer = answers[String(url).split('/').pop() ?? ''](JSON.parse(String(init?.body)));
    return answer ? Response.json(answer) : Response.json({ code: 'not_found', message: 'no such job' }, { status: 404 });
  };
  try {
    const use = await fetchUse();
    assert.deepEqual(asked.slice(0, 3), ['first', 'second', 'gone']);
    assert.equal(asked.length, 200);
    assert.ok(use.served.has('of-second') && !use.served.has('of-gone'));
    assert.equal(leftOutText(use), '53 jobs were not asked for their tasks');
  } finally {
    globalThis.fetch = real;
  }
});

test('a runbook that the collector does not have is not found; a collector that is busy is busy', async () => {
  const real = globalThis.fetch;
  try {
    for (const [status, code] of [[404, 'not_found'], [503, 'unavailable'], [401, 'unauthenticated']] as const) {
      globalThis.fetch = async () => new Response('', { status });
      await assert.rejects(read('TachoJobStalled', new AbortController().signal), { code, status });
    }
  } finally {
    globalThis.fetch = real;
  }
});

test('phases are bars from their beginnings, and hosts with failures come first', () => {
  const place = (time: number | null) => time;
  const event = (kind: string, ms: number, host = 'h', task = 0) => ({ kind, timeUnixNs: at(ms), source: { host, task } });
  const lane = phaseLane('checkpoints', ['checkpoint_saved'], [event('checkpoint_started', 1000), event('checkpoint_saved', 4000), event('checkpoint_saved', 9000), event('eval_ended', 9500)], place);
  assert.deepEqual(lane.spans.map((s) => [s.from, s.to, s.kind]), [[1000, 4000, 'checkpoint'], [9000, 9000, 'checkpoint']]);
  const lanes = hostLanes([event('attempt_started', 1, 'a'), event('exited', 2, 'b'), event('checkpoint_saved', 3, 'c')], place);
  assert.deepEqual(lanes.map((l) => l.host), ['b', 'a']);
});

test('rates between two answers of one start, and bytes of nothing', () => {
  const answer = (ms: number, samples: number) => ({ clockUnixNs: at(ms), samplesAppended: String(samples) });
  assert.equal(rate({ now: answer(5000, 300), before: answer(3000, 100) }, 'samplesAppended'), 100);
  assert.equal(rate({ now: answer(5000, 300), before: null }, 'samplesAppended'), null);
  assert.equal(fmt.bytes(0), '0 B');
});

test('a caller of the collector has the address without port and kind', () => {
  assert.equal(addressOf('ipv4:10.0.0.7:51234'), '10.0.0.7');
  assert.equal(addressOf('http:10.0.0.7'), '10.0.0.7');
  assert.equal(addressOf('http:fe80::1'), 'fe80::1');
  assert.equal(addressOf('ipv6:%5B::1%5D:51234'), '::1');
  assert.equal(addressOf('unix:/run/tacho.sock'), '/run/tacho.sock');
  assert.equal(addressOf(''), '');
});
