import type { Curve } from './types';

// Curves as text to paste elsewhere: one line for each place, one column for each curve.

export interface Grid {
  head: string[];
  rows: (number | string)[][];
}

export const csvCell = (value: number | string): string => {
  const text = String(value);
  // A cell that begins like a formula would be run by a spreadsheet.
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
};

export function csv(grid: Grid): string {
  return [grid.head, ...grid.rows].map((row) => row.map(csvCell).join(',')).join('\n') + '\n';
}

// Joined on x. A place that a curve has no entry for is an empty cell.
export function curveGrid(curves: Curve[], from: number, to: number, axis: string): Grid {
  const places = new Set<number>();
  for (const c of curves) for (const x of c.x) if (x >= from && x <= to) places.add(x);
  const xs = Float64Array.from(places).sort();
  const head = [axis];
  const columns: (Map<number, number | string>)[] = [];
  const add = (name: string, c: Curve, values: ArrayLike<number>) => {
    head.push(name);
    const at = new Map<number, number | string>();
    for (let i = 0; i < c.x.length; i++) at.set(c.x[i], values[i]);
    columns.push(at);
  };
  for (const c of curves) {
    add(c.name, c, c.mid);
    if (c.low) add(`${c.name} low`, c, c.low);
    if (c.high) add(`${c.name} high`, c, c.high);
    if (c.bad?.some((n) => n > 0)) add(`${c.name} not finite`, c, c.bad);
  }
  const rows = Array.from(xs, (x) => [x, ...columns.map((at) => at.get(x) ?? '')]);
  return { head, rows };
}
