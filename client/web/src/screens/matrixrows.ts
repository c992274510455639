// Rows of a matrix: which of them stand out, since when, in which order, and what a metric means
// for them.
import type { MatrixData, MatrixRow } from '../chart/types';
import { natural } from '../parts/order';
import { plainName } from './groups';

// Metrics of which a low value is the bad one: how busy a chip is, how fast it runs.
const LOW_IS_BAD = /duty|_active_ratio|tensor_active|utili[sz]ation|throughput|per_second|mfu|clock_hertz|clock_frequency|available_bytes|free_bytes|accuracy/;

export function lowIsBad(metric: string): boolean {
  return LOW_IS_BAD.test(plainName(metric));
}

export type Order = 'worst' | 'task' | 'host';

// Names with numbers in them by their numbers: host-2 before host-10.

// How far a row stands out on the bad side: 0 is like the others, 0.6 is 60 % worse.
export function badness(row: MatrixRow, low: boolean): number {
  if (!Number.isFinite(row.score)) return -Infinity;
  return low ? 1 - row.score : row.score - 1;
}

// Indices of the rows that `test` accepts. Worst: NaN first, then by badness.
export function ordered(m: MatrixData, order: Order, low: boolean, test: (row: MatrixRow) => boolean): Int32Array {
  const rows: number[] = [];
  m.rows.forEach((row, i) => test(row) && rows.push(i));
  const byTask = (a: MatrixRow, b: MatrixRow) => (a.task ?? -1) - (b.task ?? -1);
  const byHost = (a: MatrixRow, b: MatrixRow) => natural(a.host, b.host) || natural(a.chip, b.chip) || byTask(a, b);
  rows.sort((i, j) => {
    const [a, b] = [m.rows[i], m.rows[j]];
    if (order === 'task') return byTask(a, b) || byHost(a, b);
    if (order === 'host') return byHost(a, b);
    const bad = badness(b, low) - badness(a, low);
    return b.nonFinite - a.nonFinite || (Number.isNaN(bad) ? 0 : bad) || byHost(a, b);
  });
  return Int32Array.from(rows);
}

// Where a row begins to stand out and stays so: the first position from which on most columns lie
// beyond half of what the row reaches. Null: it does not stand out, or always did.
export function since(m: MatrixData, row: number, low: boolean): number | null {
  const off: number[] = [];
  for (let c = 0; c < m.columns; c++) {
    const ratio = m.values[row * m.columns + c] / m.median[c];
    off.push(low ? 1 - ratio : ratio - 1);
  }
  const finite = off.filter(Number.isFinite).sort((a, b) => a - b);
  if (finite.length < 4) return null;
  const limit = Math.max(0.05, finite[Math.floor(finite.length * 0.95)] / 2);
  let [beyond, all, best] = [0, 0, -1];
  for (let c = m.columns - 1; c >= 0; c--) {
    if (!Number.isFinite(off[c])) continue;
    all++;
    if (off[c] > limit) beyond++;
    if (off[c] > limit && beyond / all >= 0.8) best = c;
  }
  return best < 0 || best === off.findIndex(Number.isFinite) ? null : m.first + best * m.width;
}

// What a person wants to see of tasks first: their own work, their waiting, their steps.
const TASK_FIRST = [/^compute_(seconds|time)|forward_backward/, /comm.*(wait|seconds)|_wait/, /step_time|iter_time/, /data_wait|data_time|input/];

// The metrics of a job in that order; what never differs in time comes last.
export function byInterest(names: string[]): string[] {
  const rank = (name: string) => {
    const at = TASK_FIRST.findIndex((p) => p.test(plainName(name)));
    return at < 0 ? TASK_FIRST.length : at;
  };
  return [...names].sort((a, b) => rank(a) - rank(b) || natural(a, b));
}

// The same of chips.
const CHIP_FIRST = [/duty/, /hbm_used/, /clock_hertz/, /temperature/, /power_watts/, /tensor_active/];

export function chipMetrics(names: string[]): string[] {
  const chips = names.filter((name) => /^chip_/.test(name));
  const rank = (name: string) => {
    const at = CHIP_FIRST.findIndex((p) => p.test(name));
    return at < 0 ? CHIP_FIRST.length : at;
  };
  return chips.sort((a, b) => rank(a) - rank(b) || natural(a, b));
}

// How the ends of the colours are chosen: reversed where low is bad, so that red is always bad.
export function scaleOf(colour: 'ratio' | 'late' | 'raw', low: boolean): [number, number] | undefined {
  return colour === 'ratio' ? (low ? [1.1, 0.4] : [0.8, 2]) : undefined;
}

// "0-3,7", as tachoctl writes tasks.
export function ranges(numbers: number[]): string {
  const sorted = [...numbers].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length; i++) {
    const first = i;
    while (i + 1 < sorted.length && sorted[i + 1] === sorted[i] + 1) i++;
    parts.push(first === i ? String(sorted[i]) : `${sorted[first]}-${sorted[i]}`);
  }
  return parts.join(',');
}
