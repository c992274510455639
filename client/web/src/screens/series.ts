// Curves of one metric, however they are folded and along whichever axis: which call answers, and
// what its answer means. Bands come from Compare with one subject: it has mean, lowest, highest and
// the count of values that are not finite in one pass, and by its beginning any time axis.
import { compare, range } from '../api/calls';
import { ms, ns, num } from '../api/json';
import type { CompareMetric, Matcher, RangeRequest } from '../api/types';
import type { Series } from '../api/wire';
import type { AxisKind } from '../chart/axis';
import { styles } from '../chart/palette';
import type { Curve } from '../chart/types';
import type { Extent } from './view';

export type Fold = 'band' | 'task' | 'host';
export type AttemptMode = 'effective' | 'all' | 'latest';

export interface CurveRequest {
  job: string;
  metric: string;
  kind: AxisKind;
  range: Extent | null; // In the axis' unit; null: everything.
  link: string; // The range as the URL has it: see View.range.
  origin: number; // Where elapsed time begins, ms since the Unix epoch.
  by: Fold;
  tasks: string[]; // Only these; empty: all.
  attempts: AttemptMode;
  superseded: Record<number, Extent[]>; // Of each attempt, the steps that a later one ran again.
  points: number;
  raw: boolean; // Every sample of every series.
}

export const MOST_CURVES = 32;
export const MOST_SAMPLES = 200_000;

// How an attempt mode is spelled in a request.
export function attemptsOf(mode: AttemptMode): 'ATTEMPTS_EFFECTIVE' | 'ATTEMPTS_LATEST' {
  return mode === 'latest' ? 'ATTEMPTS_LATEST' : 'ATTEMPTS_EFFECTIVE';
}

function matchers(tasks: string[]): Matcher[] {
  return tasks.length ? [{ label: 'task', op: 'OP_MATCHES', value: tasks.join('|') }] : [];
}

export async function curves(request: CurveRequest, signal?: AbortSignal): Promise<Curve[]> {
  if (request.raw) return rawCurves(request, signal);
  if (request.by !== 'band') return foldedCurves(request, signal);
  return request.kind === 'step' || request.range === null
    ? bandCurves(request, signal)
    : timeBand(request, signal);
}

// Positions of an answer in the axis' unit.
function placed(kind: AxisKind, times: Float64Array, steps: Float64Array, origin: number): Float64Array {
  if (kind === 'step') return steps;
  return kind === 'time' ? times : times.map((t) => (t - origin) / 1000);
}

// The part of an axis that a request asks for.
export function within({ range: r, kind, origin }: Pick<CurveRequest, 'range' | 'kind' | 'origin'>): Pick<RangeRequest, 'time' | 'steps'> {
  if (!r) return {};
  if (kind === 'step') return { steps: { begin: String(Math.floor(r[0])), end: String(Math.ceil(r[1])) } };
  const [a, b] = kind === 'time' ? r : r.map((s) => origin + s * 1000);
  return { time: { beginUnixNs: ns(a), endUnixNs: ns(b + 1) } };
}

// `upTo` is the last step; absent: no end.
export async function bandCurves(request: CurveRequest, signal?: AbortSignal, upTo?: number): Promise<Curve[]> {
  const { job, metric, kind, range: r, superseded } = request;
  const old = request.attempts === 'all' ? Object.keys(superseded).map(Number).slice(-15) : [];
  const answer = await compare({
    subjects: [{ job, attempts: attemptsOf(request.attempts) }, ...old.map((attempt) => ({ job, attempt }))],
    metrics: [metric],
    matchers: matchers(request.tasks),
    alignment: kind === 'step' ? 'ALIGNMENT_STEP' : 'ALIGNMENT_ELAPSED',
    ...(kind === 'step' && (r || upTo !== undefined) ? { steps: { ...within(request).steps, ...(upTo === undefined ? {} : { end: String(upTo) }) } } : {}),
    maxPoints: request.points,
    packed: true,
    comparedValues: ['COMPARED_VALUE_AVG', 'COMPARED_VALUE_MIN', 'COMPARED_VALUE_MAX'],
  }, signal);
  const subjects = answer.subjects.subjects ?? [];
  const found = answer.metrics[0];
  if (!found) return [];
  const [style] = styles([metric]);
  return subjects.flatMap((subject, i) => {
    const origin = ms(subject.firstUnixNs) ?? 0;
    const x = (p: number) => (kind === 'step' ? p : elapsedTo(kind, p, origin, request.origin));
    const curve = column(found, i, x, i ? `attempt ${old[i - 1]}` : metric);
    if (!i) return [{ ...curve, ...style }];
    const rerun = kind === 'step' ? superseded[old[i - 1]] : null;
    return [{ ...(rerun ? only(curve, rerun) : curve), ...style, low: undefined, high: undefined, faint: true }];
  });
}

// Compare counts from each subject's own beginning.
function elapsedTo(kind: AxisKind, positionNs: number, subjectMs: number, originMs: number): number {
  const time = subjectMs + positionNs / 1e6;
  return kind === 'time' ? time : (time - originMs) / 1000;
}

// One subject's rows that have samples.
export function column(metric: CompareMetric, i: number, x: (position: number) => number, name: string): Curve {
  const c = metric.columns?.[i] ?? {};
  const kept: number[] = [];
  (c.counts ?? []).forEach((count, k) => num(count) > 0 && kept.push(k));
  const pick = (values: (number | string)[] | undefined) => Float64Array.from(kept, (k) => (values ? num(values[k]) : NaN));
  return {
    name,
    colour: 0,
    x: Float64Array.from(kept, (k) => x(num(metric.positions?.[k]))),
    mid: pick(c.avg),
    low: pick(c.min),
    high: pick(c.max),
    bad: Uint32Array.from(kept, (k) => num(c.nonFinite?.[k])),
  };
}

function only(curve: Curve, ranges: Extent[]): Curve {
  const kept = Array.from(curve.x.keys()).filter((i) => ranges.some(([a, b]) => curve.x[i] >= a && curve.x[i] <= b));
  return {
    ...curve,
    x: Float64Array.from(kept, (i) => curve.x[i]),
    mid: Float64Array.from(kept, (i) => curve.mid[i]),
    bad: curve.bad && Uint32Array.from(kept, (i) => curve.bad![i]),
  };
}

function rangeRequest(request: CurveRequest): RangeRequest {
  return {
    selector: { job: request.job, metrics: [request.metric], matchers: matchers(request.tasks) },
    axis: request.kind === 'step' ? 'AXIS_STEP' : 'AXIS_TIME',
    ...within(request),
    attempts: attemptsOf(request.attempts),
    packed: true,
  };
}

// A part of the time: Compare knows no such part, so three aggregates on one grid make the band.
async function timeBand(request: CurveRequest, signal?: AbortSignal): Promise<Curve[]> {
  const ask = (fn: 'AVG' | 'MIN' | 'MAX') => range({
    ...rangeRequest(request),
    maxPoints: request.points,
    aggregation: { function: `AGGREGATE_FUNCTION_${fn}` },
    bucketValues: [`BUCKET_VALUE_${fn}`],
  }, signal);
  const [avg, min, max] = await Promise.all([ask('AVG'), ask('MIN'), ask('MAX')]);
  if (!avg.length) return [];
  const [style] = styles([request.metric]);
  const curve = seriesCurve(avg[0], request, request.metric);
  const equal = min[0]?.min.length === curve.x.length && max[0]?.max.length === curve.x.length;
  return [{ ...curve, ...style, ...(equal ? { low: min[0].min, high: max[0].max } : {}) }];
}

function seriesCurve(s: Series, request: CurveRequest, name: string): Curve {
  const bad = s.buckets ? Uint32Array.from(s.nonFinite) : Uint32Array.from(s.values, (v) => (Number.isFinite(v) ? 0 : 1));
  return { name, colour: 0, x: placed(request.kind, s.times, s.steps, request.origin), mid: s.values, bad };
}

function nameOf(s: Series): string {
  const labels = Object.entries(s.labels).map(([k, v]) => `${k}=${v}`);
  const task = s.task === null ? '' : `task ${s.task}`;
  return [task, s.host, ...labels].filter(Boolean).join(' ') || s.metric.name;
}

// Of a job with thousands of tasks, no more are asked for than are shown.
const FIRST_TASKS = Array.from({ length: MOST_CURVES }, (_, i) => String(i));

async function foldedCurves(request: CurveRequest, signal?: AbortSignal): Promise<Curve[]> {
  if (request.by === 'task' && !request.tasks.length) {
    const first = await foldedCurves({ ...request, tasks: FIRST_TASKS }, signal);
    if (first.length) return first; // Else only later tasks record the metric.
  }
  const found = await range({
    ...rangeRequest(request),
    maxPoints: request.points,
    aggregation: { function: 'AGGREGATE_FUNCTION_AVG', by: [request.by] },
    bucketValues: ['BUCKET_VALUE_AVG'],
  }, signal);
  return named(found, request);
}

function named(found: Series[], request: CurveRequest): Curve[] {
  const shown = found.slice(0, MOST_CURVES);
  const names = shown.map(nameOf);
  const look = styles(names);
  return shown.map((s, i) => ({ ...seriesCurve(s, request, names[i]), ...look[i] }));
}

async function rawCurves(request: CurveRequest, signal?: AbortSignal): Promise<Curve[]> {
  const found = await range({ ...rangeRequest(request), maxSamples: String(MOST_SAMPLES) }, signal);
  return named(found, request);
}

// The same curves with what came since, or null if that takes a whole new answer. Columns of the
// tail are as wide as the others, so that the curve does not change its look while it grows.
export async function latestCurves(request: CurveRequest, old: Curve[], signal?: AbortSignal): Promise<Curve[] | null> {
  const [main, ...rest] = old;
  if (request.kind !== 'step' || request.range || request.raw || request.by !== 'band') return null;
  if (!main || main.x.length < 20 || main.x.length > 2 * request.points) return null;
  const from = main.x[main.x.length - 1];
  const width = Math.max(1, from - main.x[main.x.length - 2]);
  const tail = await bandCurves({ ...request, attempts: request.attempts === 'all' ? 'effective' : request.attempts,
    range: [from, from + width * 1000], points: 1000 }, signal);
  return tail[0] ? [joined(main, regrouped(tail[0], from, width)), ...rest] : old;
}

// Entries of the tail in columns of `width` from `from` on.
export function regrouped(c: Curve, from: number, width: number): Curve {
  const starts: number[] = [];
  const groups: number[][] = [];
  for (let i = 0; i < c.x.length; i++) {
    const start = from + Math.floor((c.x[i] - from) / width) * width;
    if (starts[starts.length - 1] !== start) {
      starts.push(start);
      groups.push([]);
    }
    groups[groups.length - 1].push(i);
  }
  const fold = (f: (group: number[]) => number) => Float64Array.from(groups, f);
  const finite = (values: Float64Array, group: number[]) => group.map((i) => values[i]).filter(Number.isFinite);
  return {
    ...c,
    x: Float64Array.from(starts),
    mid: fold((g) => mean(finite(c.mid, g))),
    low: c.low && fold((g) => lowest(finite(c.low!, g))),
    high: c.high && fold((g) => -lowest(finite(c.high!, g).map((v) => -v))),
    bad: c.bad && Uint32Array.from(groups, (g) => g.reduce((sum, i) => sum + c.bad![i], 0)),
  };
}

const mean = (values: number[]) => values.reduce((sum, v) => sum + v, 0) / values.length; // NaN of none.
const lowest = (values: number[]) => (values.length ? Math.min(...values) : NaN);

// `tail` replaces what `old` has from its first entry on.
export function joined(old: Curve, tail: Curve): Curve {
  if (!tail.x.length) return old;
  let end = old.x.length;
  while (end > 0 && old.x[end - 1] >= tail.x[0]) end--;
  const glue = (a: Float64Array | undefined, b: Float64Array | undefined) => {
    if (!a || !b) return undefined;
    const out = new Float64Array(end + b.length);
    out.set(a.subarray(0, end));
    out.set(b, end);
    return out;
  };
  const bad = old.bad && tail.bad && Uint32Array.from([...old.bad.subarray(0, end), ...tail.bad]);
  return {
    ...old, bad, x: glue(old.x, tail.x)!, mid: glue(old.mid, tail.mid)!,
    low: glue(old.low, tail.low), high: glue(old.high, tail.high),
  };
}
