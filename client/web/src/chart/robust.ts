import type { Columns } from './fold';
import type { YMode } from './types';

// The y range in which most of a curve lies, so that one spike does not flatten the rest, and what
// lies outside, so that nothing is hidden silently.

export interface Extent {
  low: number;
  high: number;
  log: boolean;
  above: number; // Places beyond the scale, and the most extreme value there.
  below: number;
  highest: number;
  lowest: number;
  empty: boolean; // Nothing finite: the range means nothing.
  notPositive: number; // Places that a logarithmic scale cannot show.
}

const CUT = 0.005; // Of the places, at each end.
const MARGIN = 0.06; // Of the range, at each end.

function quantile(sorted: Float64Array, q: number): number {
  return sorted[Math.max(0, Math.min(sorted.length - 1, Math.round(q * (sorted.length - 1))))];
}

function finite(columns: Columns[], of: (c: Columns) => ArrayLike<number>, positive: boolean): Float64Array {
  const out: number[] = [];
  for (const c of columns) {
    const values = of(c);
    for (let i = 0; i < values.length; i++) {
      if (Number.isFinite(values[i]) && (!positive || values[i] > 0)) out.push(values[i]);
    }
  }
  return Float64Array.from(out).sort();
}

export function extent(columns: Columns[], mode: YMode): Extent {
  const log = mode === 'log';
  const lows = finite(columns, (c) => c.low, log);
  const highs = finite(columns, (c) => c.high, log);
  const mids = log ? finite(columns, (c) => c.mid, false) : lows;
  const notPositive = log ? mids.findIndex((v) => v > 0) : 0;
  const base = { log, above: 0, below: 0, highest: NaN, lowest: NaN, empty: true };
  if (!lows.length || !highs.length) {
    return { ...base, low: log ? 1 : 0, high: log ? 10 : 1, notPositive: log ? mids.length : 0 };
  }
  const [low, high] = widen(...range(lows, highs, mode), log);
  return {
    low, high, log, empty: false,
    above: highs.length - countUpTo(highs, high),
    below: countUpTo(lows, low, true),
    highest: highs[highs.length - 1],
    lowest: lows[0],
    notPositive: notPositive < 0 ? mids.length : notPositive,
  };
}

// Quantiles that nearly reach the extremes are replaced by them: a triangle for a hair's breadth
// would be noise.
function range(lows: Float64Array, highs: Float64Array, mode: YMode): [number, number] {
  const all: [number, number] = [lows[0], highs[highs.length - 1]];
  if (mode !== 'robust') return all;
  const low = quantile(lows, CUT);
  const high = quantile(highs, 1 - CUT);
  const slack = (high - low) * 0.5;
  return [all[0] >= low - slack ? all[0] : low, all[1] <= high + slack ? all[1] : high];
}

function widen(low: number, high: number, log: boolean): [number, number] {
  if (log) {
    const factor = high > low ? (high / low) ** MARGIN : 2;
    return [low / factor, high * factor];
  }
  // A flat line stands in the middle. A range narrower than the digits of its values is flat too.
  const flat = high - low <= Math.abs(high) * 1e-12;
  const pad = flat ? Math.abs(high) * 0.05 || 1 : (high - low) * MARGIN;
  return [low - pad, high + pad];
}

function countUpTo(sorted: Float64Array, value: number, below = false): number {
  let a = 0;
  let b = sorted.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (below ? sorted[m] < value : sorted[m] <= value) a = m + 1;
    else b = m;
  }
  return a;
}

// "1 place beyond the scale, up to 61": empty if everything is shown.
export function beyond(e: Extent, num: (v: number) => string): string {
  const places = e.above + e.below;
  const parts: string[] = [];
  if (places) {
    const ends = [
      e.below ? `down to ${num(e.lowest)}` : '',
      e.above ? `up to ${num(e.highest)}` : '',
    ].filter(Boolean);
    parts.push(`${places} ${places === 1 ? 'place' : 'places'} beyond the scale, ${ends.join(' and ')}`);
  }
  if (e.notPositive) {
    const values = e.notPositive === 1 ? '1 value' : `${e.notPositive} values`;
    parts.push(`${values} of 0 or below, which a log scale cannot show`);
  }
  return parts.join('; ');
}
