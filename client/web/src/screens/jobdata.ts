// What every tab of a job needs to know of it, asked once for all of them.
import { createContext } from 'preact';
import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { conditions, getJob, goodput, listEvents } from '../api/calls';
import { maybe, ms, ns, num } from '../api/json';
import { usePoll, type Polled } from '../api/poll';
import type { Condition, GetJobResponse, GoodputResponse, RecordedEvent } from '../api/types';
import { jobFeed } from './jobfeed';
import { mainMetric } from './groups';
import type { AxisKind } from '../chart/axis';
import { severityOf } from '../parts/verdict';
import type { Extent } from './view';

export interface JobData {
  detail: GetJobResponse;
  goodput: GoodputResponse;
  conditions: Condition[]; // Those that are true, the worst first.
}

// Within a job's screen: what its head asked for.
export const JobContext = createContext<JobData | null>(null);
export function useJobData(): JobData {
  const data = useContext(JobContext);
  if (!data) throw new Error('useJobData() outside of a job screen');
  return data;
}

const EVERY_MS = 5000;
const EVENTS_EVERY_MS = 10_000;
// While the stream is live: the ledger, times and shares, which the collector computes.
export const CALM_MS = 30_000;
// After an event, which may have changed all of them.
export const SOON_MS = 1000;
const MOST_SPANS = 1000;
const MOST_EVENTS = 2000;

// Kinds that lanes show. The beginnings of phases are left out: their ends say the same.
const KINDS = [
  'attempt_started', 'checkpoint_saved', 'checkpoint_restored', 'compiled', 'ended', 'exited', 'preempted',
  'maintenance_started', 'condition_raised', 'condition_cleared', 'task_added', 'task_removed', 'text',
];

const WEIGHT: Record<string, number> = { critical: 3, warning: 2, info: 1, '': 0 };

export async function fetchJob(job: string, signal: AbortSignal): Promise<JobData> {
  const [detail, ledger, found] = await Promise.all([
    getJob({ job, maxEntities: 1 }, signal, 2),
    goodput({ job, maxSpans: MOST_SPANS }, signal, 1),
    conditions({ job, statuses: ['CONDITION_STATUS_TRUE'] }, signal, 2),
  ]);
  return { detail, goodput: ledger, conditions: worstFirst(found.conditions ?? []) };
}

// By severity; of equals, those that name a culprit, as the others follow from them; then the oldest.
export function worstFirst(found: Condition[]): Condition[] {
  const weight = (c: Condition) => WEIGHT[severityOf(c.severity)] * 2 + Number((c.culprits ?? []).length > 0);
  return [...found].sort((a, b) => weight(b) - weight(a) || (ms(a.sinceUnixNs) ?? 0) - (ms(b.sinceUnixNs) ?? 0));
}

// What the rows of the stream say of the job since the collector described it.
function moved(data: JobData): JobData {
  const { job } = data.detail;
  const step = Math.max(maybe(job?.lastStep) ?? -Infinity, jobFeed.lastStep);
  const seen = Math.max(ms(job?.lastSeenUnixNs) ?? 0, jobFeed.lastSeenMs);
  const steps = Number.isFinite(step) ? { lastStep: String(step) } : {};
  return { ...data, detail: { ...data.detail, job: { ...job, ...steps, lastSeenUnixNs: ns(seen) } } };
}

// Also opens the page's stream of the job, and ends it with the screen.
export function useJob(job: string): Polled<JobData> {
  const polled = usePoll(`job ${job}`, (signal) => fetchJob(job, signal), EVERY_MS, CALM_MS);
  const [tip, draw] = useState(0);
  useEffect(() => {
    jobFeed.open(job);
    const off = jobFeed.onTip(() => draw((n) => n + 1));
    return () => {
      off();
      jobFeed.close();
    };
  }, [job]);
  const nudge = useRef(polled.nudge);
  nudge.current = polled.nudge;
  useEffect(() => jobFeed.onEvent(() => nudge.current(SOON_MS)), [job]);
  const main = mainMetric((polled.data?.detail.metrics ?? []).map((m) => m.name ?? ''));
  useEffect(() => (main ? jobFeed.want(main, () => undefined) : undefined), [job, main]);
  const data = useMemo(() => polled.data && moved(polled.data), [polled.data, tip]);
  return { ...polled, data };
}

const identity = (e: RecordedEvent): string => JSON.stringify([e.timeUnixNs, e.kind, e.source, e.message]);

// The listed events, and those of the stream that are not among them.
export function withNewer(listed: RecordedEvent[], newer: RecordedEvent[]): RecordedEvent[] {
  const known = new Set(listed.map(identity));
  const more = newer.filter((e) => KINDS.includes(e.kind ?? '') && !known.has(identity(e)));
  return more.length ? [...listed, ...more] : listed;
}

export function useEvents(job: string): Polled<RecordedEvent[]> {
  const fetch = (signal: AbortSignal) => listEvents({ job, kinds: KINDS, newest: MOST_EVENTS }, signal);
  const polled = usePoll(`events ${job}`, fetch, EVENTS_EVERY_MS, 0);
  const [, draw] = useState(0);
  useEffect(() => jobFeed.onEvent(() => draw((n) => n + 1)), [job]);
  const newer = jobFeed.events;
  const data = useMemo(() => polled.data && withNewer(polled.data, newer), [polled.data, newer]);
  return { ...polled, data };
}

// Where elapsed time begins.
export function originOf(detail: GetJobResponse): number {
  return ms(detail.job?.firstSeenUnixNs) ?? 0;
}

// Everything there is of the job along an axis; null without any.
export function fullExtent(detail: GetJobResponse, kind: AxisKind): Extent | null {
  const first = ms(detail.job?.firstSeenUnixNs);
  const last = ms(detail.job?.lastSeenUnixNs);
  if (kind === 'step') {
    const end = maybe(detail.job?.lastStep);
    if (end === null) return null;
    const starts = (detail.attempts ?? []).map((a) => maybe(a.firstStep) ?? 0);
    return [Math.min(end, ...starts), end];
  }
  if (!first || !last) return null;
  return kind === 'time' ? [first, last] : [0, (last - first) / 1000];
}

// Of each attempt, the steps that a later one ran again.
export function supersededOf(detail: GetJobResponse): Record<number, Extent[]> {
  const out: Record<number, Extent[]> = {};
  for (const a of detail.attempts ?? []) {
    const ranges = (a.superseded ?? []).map((r): Extent => [num(r.begin), num(r.end)]);
    if (ranges.length) out[a.attempt ?? 0] = ranges;
  }
  return out;
}
