import type { Curve } from './types';

// Reduces a curve to one entry for each pixel column: a million samples become as many as can be
// seen, and no extreme and no NaN is lost.

export interface Columns {
  x: Float64Array;
  low: Float64Array;
  mid: Float64Array;
  high: Float64Array;
  bad: Uint32Array;
}

// The first index whose x is not below `x`.
export function lowerBound(xs: ArrayLike<number>, x: number): number {
  let a = 0;
  let b = xs.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (xs[m] < x) a = m + 1;
    else b = m;
  }
  return a;
}

// The index of the entry nearest to x, or -1 without any.
export function nearest(xs: ArrayLike<number>, x: number): number {
  if (!xs.length) return -1;
  const i = lowerBound(xs, x);
  if (i === 0) return 0;
  if (i === xs.length) return i - 1;
  return x - xs[i - 1] <= xs[i] - x ? i - 1 : i;
}

// What is in view, with one entry more on each side so that lines leave the picture, not end in it.
export function slice(curve: Curve, from: number, to: number): [number, number] {
  const a = lowerBound(curve.x, from);
  let b = lowerBound(curve.x, to);
  while (b < curve.x.length && curve.x[b] <= to) b++;
  return [Math.max(0, a - 1), Math.min(curve.x.length, b + 1)];
}

// At most 2 entries a pixel are drawn as they are; more are folded.
export function fold(curve: Curve, from: number, to: number, width: number): Columns {
  const [a, b] = slice(curve, from, to);
  return b - a <= 2 * width ? plain(curve, a, b) : folded(curve, a, b, from, to, width);
}

function plain(curve: Curve, a: number, b: number): Columns {
  const mid = curve.mid.subarray(a, b);
  return {
    x: curve.x.subarray(a, b),
    low: curve.low?.subarray(a, b) ?? mid,
    mid,
    high: curve.high?.subarray(a, b) ?? mid,
    bad: curve.bad?.subarray(a, b) ?? new Uint32Array(b - a),
  };
}

function folded(c: Curve, a: number, b: number, from: number, to: number, width: number): Columns {
  const low = new Float64Array(width).fill(Infinity);
  const high = new Float64Array(width).fill(-Infinity);
  const sum = new Float64Array(width);
  const count = new Uint32Array(width);
  const bad = new Uint32Array(width);
  const scale = width / (to - from);
  const lows = c.low ?? c.mid;
  const highs = c.high ?? c.mid;
  for (let i = a; i < b; i++) {
    const column = Math.floor((c.x[i] - from) * scale);
    if (column < 0 || column > width) continue;
    const k = column === width ? width - 1 : column;
    if (c.bad) bad[k] += c.bad[i];
    const mid = c.mid[i];
    if (mid - mid !== 0) {
      // Not finite. Without `bad`, NaN is a gap and infinity is a value that cannot be drawn.
      if (!c.bad && mid === mid) bad[k]++;
      continue;
    }
    sum[k] += mid;
    count[k]++;
    if (lows[i] < low[k]) low[k] = lows[i];
    if (highs[i] > high[k]) high[k] = highs[i];
  }
  return columns(low, high, sum, count, bad, from, (to - from) / width);
}

// Leaves out columns without anything, so that lines join across pixels without a sample.
function columns(
  low: Float64Array, high: Float64Array, sum: Float64Array, count: Uint32Array, bad: Uint32Array,
  from: number, step: number,
): Columns {
  const kept: number[] = [];
  for (let k = 0; k < count.length; k++) if (count[k] || bad[k]) kept.push(k);
  const pick = (f: (k: number) => number) => Float64Array.from(kept, f);
  return {
    x: pick((k) => from + (k + 0.5) * step),
    low: pick((k) => (count[k] ? low[k] : NaN)),
    mid: pick((k) => (count[k] ? sum[k] / count[k] : NaN)),
    high: pick((k) => (count[k] ? high[k] : NaN)),
    bad: Uint32Array.from(kept, (k) => bad[k]),
  };
}

// First and end of each run of finite values: what a line may connect.
export function runs(mid: ArrayLike<number>): [number, number][] {
  const out: [number, number][] = [];
  let start = -1;
  for (let i = 0; i <= mid.length; i++) {
    const finite = i < mid.length && Number.isFinite(mid[i]);
    if (finite && start < 0) start = i;
    if (!finite && start >= 0) {
      out.push([start, i]);
      start = -1;
    }
  }
  return out;
}
