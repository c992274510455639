import type { Axis } from './axis';
import { lowerBound, nearest } from './fold';
import { cellValue, rowName } from './heat';
import { spanAt } from './lanes';
import { spacing } from './smooth';
import type { Curve, HeatLayer, Layer, Span } from './types';

// What a stack shows at one position, in words: for the line above it, and for screen readers.

export type Show = (value: number, unit?: string) => string;

// Where the pointer is within the layers; absent parts were not met.
export interface Hit {
  layer: number;
  row: number | null; // Of the matrix.
  lane: number | null;
}

const MOST_CURVES = 4;

// Entries further away than this do not speak for a position.
export function reachOf(curve: Curve, axis: Axis, width: number): number {
  return Math.max(spacing(curve.x) * 1.01, ((axis.to - axis.from) / Math.max(1, width)) * 4);
}

export function entryAt(curve: Curve, x: number, reach: number): number {
  const i = nearest(curve.x, x);
  return i >= 0 && Math.abs(curve.x[i] - x) <= reach ? i : -1;
}

export function curveText(curve: Curve, i: number, unit: string | undefined, show: Show): string {
  if (i < 0) return `${curve.name} –`;
  const { low, high, bad } = curve;
  const banded = low && high && Number.isFinite(low[i]) && low[i] < high[i];
  const band = banded ? ` (${show(low[i], unit)} to ${show(high[i], unit)})` : '';
  const wrong = bad?.[i] ? `, ${bad[i]} not finite` : '';
  const missing = Number.isNaN(curve.mid[i]) && !bad?.[i];
  return `${curve.name} ${missing ? '–' : show(curve.mid[i], unit)}${band}${wrong}`;
}

// The row that stands out most in the column at x, or -1.
export function worstRow(layer: HeatLayer, column: number): number {
  const m = layer.matrix;
  let worst = -1;
  for (let r = 0; r < m.rows.length; r++) {
    const value = m.values[r * m.columns + column];
    if (value === value && (worst < 0 || value > m.values[worst * m.columns + column])) worst = r;
  }
  return worst;
}

export function heatText(layer: HeatLayer, x: number, row: number | null, show: Show): string {
  const m = layer.matrix;
  const column = Math.floor((x - m.first) / m.width);
  if (column < 0 || column >= m.columns) return '';
  const r = row ?? worstRow(layer, column);
  if (r < 0 || r >= m.rows.length) return '';
  const value = m.values[r * m.columns + column];
  const name = `${row === null ? 'highest ' : ''}${rowName(layer, r)}`;
  const cell = r * m.columns + column;
  if (m.nonFinite[lowerBound(m.nonFinite, cell)] === cell) return `${name}, not finite`;
  if (value !== value) {
    const alive = column >= m.rows[r].firstColumn && column <= m.rows[r].lastColumn;
    return `${name}, ${alive ? 'no sample' : 'not there'}`;
  }
  const ratio = cellValue(m, 'ratio', r, column);
  const times = Number.isFinite(ratio) ? `, ${show(Number(ratio.toPrecision(3)))}× the median` : '';
  return `${name} ${show(value, m.metric.unit)}${times}`;
}

function spanText(name: string, span: Span): string {
  return `${name}: ${span.title ?? (span.text || span.kind)}`;
}

function layerTexts(layer: Layer, at: number, hit: Hit | null, axis: Axis, width: number, show: Show): string[] {
  const x = axis.cursor!;
  const here = hit?.layer === at ? hit : null;
  if (layer.kind === 'heat') return [heatText(layer, x, here?.row ?? null, show)];
  if (layer.kind === 'strip') {
    const i = nearest(layer.x, x);
    return i < 0 ? [] : [`${layer.label} ${show(layer.y[i], layer.unit)}`];
  }
  if (layer.kind === 'lanes') {
    if (here === null || here.lane === null) return [];
    const lane = layer.lanes[here.lane];
    const span = spanAt(lane, x, ((axis.to - axis.from) / Math.max(1, width)) * 6);
    return span ? [spanText(lane.name, span)] : [];
  }
  const loud = layer.curves.filter((c) => !c.faint);
  const texts = (loud.length ? loud : layer.curves)
    .slice(0, MOST_CURVES)
    .map((c) => curveText(c, entryAt(c, x, reachOf(c, axis, width)), layer.unit, show));
  const rest = loud.length - MOST_CURVES;
  return rest > 0 ? [...texts, `${rest} more in the table`] : texts;
}

// What the pointer is on comes first, then the layers from top to bottom.
export function readout(
  layers: Layer[], axis: Axis, hit: Hit | null, width: number, position: string, show: Show,
): string {
  if (axis.cursor === null) return '';
  const order = layers.map((_, i) => i).sort((a, b) => Number(b === hit?.layer) - Number(a === hit?.layer) || a - b);
  const texts = order.flatMap((i) => layerTexts(layers[i], i, hit, axis, width, show));
  return [position, ...texts.filter(Boolean)].join(' · ');
}

export function position(axis: Axis, x: number, time: (ms: number) => string, label: (x: number) => string): string {
  if (axis.kind === 'step') return `step ${Math.round(x).toLocaleString('en')}`;
  return axis.kind === 'time' ? time(x) : `${label(x)} after the beginning`;
}

// The next place after x (or before it) at which a value is not finite; null without one.
export function nextBad(layers: Layer[], x: number, forward: boolean): number | null {
  let best: number | null = null;
  for (const layer of layers) {
    if (layer.kind !== 'curve') continue;
    for (const c of layer.curves) {
      for (let i = 0; c.bad && i < c.x.length; i++) {
        const beyond = forward ? c.x[i] > x : c.x[i] < x;
        if (!c.bad[i] || !beyond) continue;
        if (best === null || (forward ? c.x[i] < best : c.x[i] > best)) best = c.x[i];
      }
    }
  }
  return best;
}
