// Sums of the ledger over a part of the time, and where steps lie in time.
import { maybe, ms, num } from '../api/json';
import type { Goodput, GoodputResponse, LedgerSpan } from '../api/types';
import type { AxisKind } from '../chart/axis';
import { bucketWord } from './spans';
import type { Extent } from './view';

export interface BucketSum {
  bucket: string; // "productive_step"
  seconds: number;
}

// The order in which buckets are always named.
export const BUCKETS = [
  'productive_step', 'initializing', 'compiling', 'restoring', 'data_wait', 'waiting_for_others', 'checkpoint', 'evaluation',
  'wasted', 'stalled', 'down', 'other',
];

function sorted(sums: Map<string, number>): BucketSum[] {
  const order = (b: string) => (BUCKETS.includes(b) ? BUCKETS.indexOf(b) : BUCKETS.length);
  return [...sums].filter(([, s]) => s > 0).map(([bucket, seconds]) => ({ bucket, seconds })).sort((a, b) => order(a.bucket) - order(b.bucket));
}

// What the ledger says of from..to (ms): a span counts with the part of it that lies within.
export function sumsOf(spans: LedgerSpan[], from: number, to: number): BucketSum[] {
  const sums = new Map<string, number>();
  for (const span of spans) {
    const [begin, end] = [Math.max(from, ms(span.beginUnixNs) ?? 0), Math.min(to, ms(span.endUnixNs) ?? 0)];
    if (end <= begin) continue;
    const bucket = bucketWord(span.bucket ?? '');
    sums.set(bucket, (sums.get(bucket) ?? 0) + (end - begin) / 1000);
  }
  return sorted(sums);
}

// The same of a whole ledger.
export function bucketsOf(goodput: Goodput | undefined): BucketSum[] {
  return sorted(new Map((goodput?.buckets ?? []).map((b) => [bucketWord(b.bucket ?? ''), num(b.ns) / 1e9])));
}

export const total = (sums: BucketSum[]): number => sums.reduce((sum, b) => sum + b.seconds, 0);

// When a step began, between the ends of the ledger's spans; null: the ledger has no such steps.
// After a restart the newest time counts.
export function timeAt(spans: LedgerSpan[], step: number): number | null {
  let before: [number, number] | null = null; // Step and time of the nearest end below.
  for (let i = spans.length - 1; i >= 0; i--) {
    const [first, last] = [maybe(spans[i].firstStep), maybe(spans[i].lastStep)];
    const [begin, end] = [ms(spans[i].beginUnixNs), ms(spans[i].endUnixNs)];
    if (first === null || last === null || begin === null || end === null) continue;
    if (step >= first && step <= last + 1) return begin + ((step - first) / Math.max(1, last + 1 - first)) * (end - begin);
    if (last < step && (before === null || last > before[0])) before = [last, end];
  }
  return before?.[1] ?? null;
}

// A range of an axis as times, ms; null where that is not known.
export function timesOf(kind: AxisKind, range: Extent | null, goodput: GoodputResponse, origin: number): Extent | null {
  if (!range) return null;
  if (kind === 'time') return range;
  if (kind === 'elapsed') return [origin + range[0] * 1000, origin + range[1] * 1000];
  const spans = goodput.spans ?? [];
  const [a, b] = [timeAt(spans, range[0]) ?? ms(spans[0]?.beginUnixNs) ?? ms(goodput.total?.beginUnixNs), timeAt(spans, range[1]) ?? ms(goodput.total?.endUnixNs)];
  return a !== null && b !== null && b > a ? [a, b] : null;
}
