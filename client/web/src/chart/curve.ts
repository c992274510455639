import type { Axis } from './axis';
import { clipToPlot, gutterLabel, xOf, type Surface } from './canvas';
import { fold, runs, type Columns } from './fold';
import { DASHES } from './palette';
import { extent, type Extent } from './robust';
import { smooth, spacing } from './smooth';
import { logTicks, unitTicks } from './ticks';
import type { Curve, CurveLayer } from './types';

// Draws curves: the band, the line broken at every gap, red ticks where values are not finite, and
// triangles where something lies beyond the scale.

const TOP = 14; // Room for ticks and triangles.
const BOTTOM = 4;

interface Drawn {
  curve: Curve;
  columns: Columns;
  line: ArrayLike<number>; // What is drawn strongly: smoothed, or the columns' mid.
}

export interface CurvePicture {
  extent: Extent;
  bad: number; // Samples in view that are not finite.
  columns: Columns[]; // In the order of the layer's curves.
}

export function paintCurves(
  s: Surface, axis: Axis, layer: CurveLayer, num: (v: number) => string,
): CurvePicture {
  const drawn = layer.curves.map((curve) => prepare(curve, axis, s.plot, layer.smoothing ?? 0));
  const loud = drawn.filter((d) => !d.curve.faint);
  const range = extent((loud.length ? loud : drawn).map((d) => d.columns), layer.y);
  const y = scaleOf(range, s.height);
  if (range.empty) paintNothing(s, drawn.some((d) => d.columns.x.length > 0));
  else paintGrid(s, range, y, layer.unit, num);
  clipToPlot(s, 0, s.height);
  paintMarks(s, axis, layer);
  const sole = loud.length <= 4;
  for (const d of drawn) if (!d.curve.faint && sole) paintBand(s, axis, d, y);
  for (const d of loud) {
    if (d.line !== d.columns.mid) paintLine(s, axis, d, d.columns.mid, y, 0.28, 1);
    paintLine(s, axis, d, d.line, y, 1, 1.5);
  }
  // Above, as they nearly coincide with what replaced them.
  for (const d of drawn) if (d.curve.faint) paintLine(s, axis, d, d.columns.mid, y, 0.8, 1);
  for (const d of loud) paintBeyond(s, axis, d, range);
  for (const d of drawn) paintBad(s, axis, d);
  s.g.restore();
  return { extent: range, bad: countBad(drawn, axis), columns: drawn.map((d) => d.columns) };
}

function prepare(curve: Curve, axis: Axis, width: number, weight: number): Drawn {
  const columns = fold(curve, axis.from, axis.to, Math.round(width));
  if (!(weight > 0) || curve.faint) return { curve, columns, line: columns.mid };
  const all = smoothed(curve, weight);
  const line = fold({ ...curve, mid: all, low: undefined, high: undefined }, axis.from, axis.to, Math.round(width));
  return { curve, columns, line: line.mid.length === columns.mid.length ? line.mid : columns.mid };
}

const kept = new WeakMap<Curve, { weight: number; values: Float64Array }>();

// From the curve's beginning, so that the line does not change with the view.
function smoothed(curve: Curve, weight: number): Float64Array {
  const old = kept.get(curve);
  if (old?.weight === weight) return old.values;
  const values = smooth(curve.x, curve.mid, weight, spacing(curve.x));
  kept.set(curve, { weight, values });
  return values;
}

type Scale = (value: number) => number;

function scaleOf(range: Extent, height: number): Scale {
  const tall = height - TOP - BOTTOM;
  const at = (v: number) => (range.log ? Math.log(v) : v);
  const low = at(range.low);
  const part = tall / (at(range.high) - low);
  return (value) => TOP + tall - (at(value) - low) * part;
}

function paintGrid(s: Surface, range: Extent, y: Scale, unit: string | undefined, num: (v: number) => string): void {
  const count = Math.max(2, Math.min(6, Math.floor(s.height / 36)));
  const at = range.log ? logTicks(range.low, range.high, count) : unitTicks(range.low, range.high, count, unit);
  s.g.strokeStyle = s.scheme.grid;
  s.g.lineWidth = 1;
  let last = Infinity;
  for (const value of at) {
    const line = Math.round(y(value)) + 0.5;
    s.g.beginPath();
    s.g.moveTo(s.gutter, line);
    s.g.lineTo(s.width, line);
    s.g.stroke();
    if (last - line < 12) continue;
    gutterLabel(s, num(value), line);
    last = line;
  }
}

function paintNothing(s: Surface, samples: boolean): void {
  s.g.fillStyle = s.scheme.dim;
  s.g.textAlign = 'center';
  s.g.textBaseline = 'middle';
  s.g.fillText(samples ? 'no finite value here' : 'no samples here', s.gutter + s.plot / 2, s.height / 2);
}

function paintMarks(s: Surface, axis: Axis, layer: CurveLayer): void {
  s.g.lineWidth = 1;
  for (const mark of layer.marks ?? []) {
    if (mark.x < axis.from || mark.x > axis.to) continue;
    const x = Math.round(xOf(s, axis, mark.x)) + 0.5;
    s.g.strokeStyle = s.scheme.kinds[mark.kind] ?? s.scheme.dim;
    s.g.globalAlpha = 0.45;
    s.g.beginPath();
    s.g.moveTo(x, TOP - 4);
    s.g.lineTo(x, s.height);
    s.g.stroke();
    s.g.globalAlpha = 1;
  }
}

function paintBand(s: Surface, axis: Axis, d: Drawn, y: Scale): void {
  const { x, low, high, mid } = d.columns;
  if (low === mid && high === mid) return;
  s.g.fillStyle = s.scheme.series[d.curve.colour];
  s.g.globalAlpha = s.scheme.dark ? 0.26 : 0.18;
  for (const [a, b] of runs(low)) {
    s.g.beginPath();
    // A run of one place would have no width.
    const half = b - a === 1 ? 0.75 : 0;
    for (let i = a; i < b; i++) s.g.lineTo(xOf(s, axis, x[i]) - half, bounded(y(high[i]), s));
    for (let i = b - 1; i >= a; i--) s.g.lineTo(xOf(s, axis, x[i]) + half, bounded(y(low[i]), s));
    s.g.fill();
  }
  s.g.globalAlpha = 1;
}

// Far outside the canvas some browsers draw wrongly. NaN is the logarithm of a negative number.
function bounded(y: number, s: Surface): number {
  return y === y ? Math.max(-s.height, Math.min(2 * s.height, y)) : 2 * s.height;
}

function paintLine(
  s: Surface, axis: Axis, d: Drawn, values: ArrayLike<number>, y: Scale, alpha: number, width: number,
): void {
  const g = s.g;
  g.strokeStyle = g.fillStyle = d.curve.faint ? s.scheme.text : s.scheme.series[d.curve.colour];
  g.globalAlpha = alpha;
  g.lineWidth = width;
  g.lineJoin = 'round';
  g.setLineDash(d.curve.faint ? [3, 2] : [...DASHES[d.curve.dash ?? 0]]);
  for (const [a, b] of runs(values)) {
    g.beginPath();
    for (let i = a; i < b; i++) g.lineTo(xOf(s, axis, d.columns.x[i]), bounded(y(values[i]), s));
    if (b - a > 1) g.stroke();
    else g.fillRect(xOf(s, axis, d.columns.x[a]) - 1.5, bounded(y(values[a]), s) - 1.5, 3, 3);
  }
  g.setLineDash([]);
  g.globalAlpha = 1;
}

function paintBeyond(s: Surface, axis: Axis, d: Drawn, range: Extent): void {
  s.g.fillStyle = s.scheme.warn;
  const { x, low, high } = d.columns;
  for (let i = 0; i < x.length; i++) {
    if (high[i] > range.high) triangle(s.g, xOf(s, axis, x[i]), TOP - 7, 7);
    if (low[i] < range.low) triangle(s.g, xOf(s, axis, x[i]), s.height, -7);
  }
}

function triangle(g: CanvasRenderingContext2D, x: number, tip: number, height: number): void {
  g.beginPath();
  g.moveTo(x, tip);
  g.lineTo(x - 4, tip + height);
  g.lineTo(x + 4, tip + height);
  g.fill();
}

function paintBad(s: Surface, axis: Axis, d: Drawn): void {
  s.g.fillStyle = s.scheme.bad;
  const { x, bad } = d.columns;
  for (let i = 0; i < x.length; i++) if (bad[i]) s.g.fillRect(xOf(s, axis, x[i]) - 1, 0, 2, 9);
}

function countBad(drawn: Drawn[], axis: Axis): number {
  let count = 0;
  for (const { columns } of drawn) {
    for (let i = 0; i < columns.x.length; i++) {
      if (columns.x[i] >= axis.from && columns.x[i] <= axis.to) count += columns.bad[i];
    }
  }
  return count;
}
