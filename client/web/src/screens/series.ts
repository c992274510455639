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

function within(request: CurveRequest): Pick<RangeRequest, 'time' | 'steps'> {
  const { range: r, kind, origin } = request;
  if (!r) return {};
  if (kind === 'step') return { steps: { begin: String(Math.floor(r[0])), end: String(Math.ceil(r[1])) } };
  const [a, b] = kind === 'time' ? r : r.map((s) => origin + s * 1000);
  return { time: { beginUnixNs: ns(a), endUnixNs: ns(b + 1) } };
}

async function bandCurves(request: CurveRequest, signal?: AbortSignal): Promise<Curve[]> {
  const { job, metric, kind, range: r, superseded } = request;
  const old = request.attempts === 'all' ? Object.keys(superseded).map(Number).slice(-15) : [];
  const answer = await compare({
    subjects: [{ job, attempts: attemptsOf(request.attempts) }, ...old.map((attempt) => ({ job, attempt }))],
    metrics: [metric],
    matchers: matchers(request.tasks),
    alignment: kind === 'step' ? 'ALIGNMENT_STEP' : 'ALIGNMENT_ELAPSED',
    ...(r && kind === 'step' ? { steps: within(request).steps! } : {}),
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

async function foldedCurves(request: CurveRequest, signal?: AbortSignal): Promise<Curve[]> {
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
