import { useState } from 'preact/hooks';
import { fmt } from '../parts/format';
import type { Axis } from './axis';
import { curveGrid } from './csv';
import { rowName } from './heat';
import { useRangeInView } from './in_view';
import type { Show } from './readout';
import { elapsedLabel } from './ticks';
import type { CurveLayer, HeatLayer, LaneLayer, Layer } from './types';

// The data of a stack as tables, for whoever cannot see or will not read a picture. It is made when
// it is opened, and says what it leaves out.

const MOST_ROWS = 200;
const ZOOM = 'zoom in to see them';

interface Rows {
  caption: string;
  head: string[];
  rows: string[][];
  left: number; // Rows that are not shown.
  more: string; // How to see them.
}

export function place(axis: Axis, x: number): string {
  if (axis.kind === 'step') return fmt.count(x);
  return axis.kind === 'time' ? fmt.time(x) : elapsedLabel(x, 1);
}

function curveRows(layer: CurveLayer, axis: Axis, show: Show): Rows {
  const grid = curveGrid(layer.curves, axis.from, axis.to, axis.kind);
  const every = Math.max(1, Math.ceil(grid.rows.length / MOST_ROWS));
  const kept = grid.rows.filter((_, i) => i % every === 0 || i === grid.rows.length - 1);
  const cell = (v: number | string, column: number) =>
    typeof v === 'string' ? v || '–' : /not finite$/.test(grid.head[column]) ? fmt.count(v) : show(v, layer.unit);
  return {
    caption: layer.label,
    head: grid.head,
    rows: kept.map((row) => row.map((v, k) => (k ? cell(v, k) : place(axis, Number(v))))),
    left: grid.rows.length - kept.length,
    more: ZOOM,
  };
}

function heatRows(layer: HeatLayer): Rows {
  const order = Array.from(layer.rows ?? layer.matrix.rows.keys());
  return {
    caption: layer.label,
    head: ['row', 'mean ratio to the median', 'columns without a sample', 'not finite'],
    rows: order.slice(0, MOST_ROWS).map((r) => {
      const row = layer.matrix.rows[r];
      return [rowName(layer, r), fmt.num(row.score), fmt.count(row.holes), fmt.count(row.nonFinite)];
    }),
    left: Math.max(0, order.length - MOST_ROWS),
    more: 'filter to see them',
  };
}

// A lane without a name continues the one above it.
function laneName(layer: LaneLayer, i: number): string {
  while (i > 0 && !layer.lanes[i].name) i--;
  return layer.lanes[i].name || 'lane';
}

function laneRows(layer: LaneLayer, axis: Axis): Rows {
  const all = layer.lanes
    .flatMap((lane, i) => lane.spans.map((span) => ({ lane: laneName(layer, i), span })))
    .filter(({ span }) => span.to >= axis.from && span.from <= axis.to)
    .sort((a, b) => a.span.from - b.span.from);
  return {
    caption: layer.label ?? 'What happened',
    head: ['lane', 'from', 'to', 'what'],
    rows: all.slice(0, MOST_ROWS).map(({ lane, span }) => [
      lane, place(axis, span.from), span.to > span.from ? place(axis, span.to) : '', span.title ?? span.text,
    ]),
    left: Math.max(0, all.length - MOST_ROWS),
    more: ZOOM,
  };
}

function rowsOf(layer: Layer, axis: Axis, show: Show): Rows {
  if (layer.kind === 'heat') return heatRows(layer);
  if (layer.kind === 'lanes') return laneRows(layer, axis);
  if (layer.kind === 'curve') return curveRows(layer, axis, show);
  const curve = { name: layer.label, colour: 0, x: layer.x, mid: Float64Array.from(layer.y) };
  return curveRows({ ...layer, kind: 'curve', height: 0, y: 'all', curves: [curve] }, axis, show);
}

function One({ caption, head, rows, left, more }: Rows) {
  const words = head.indexOf('what'); // Sentences are read from the left, numbers from the right.
  return (
    <div class="chart-scroll" tabIndex={0} role="region" aria-label={`Table: ${caption}`}>
      <table>
        <caption>{fmt.text(caption)}{left ? <span class="dim"> · {fmt.plural(left, 'row')} left out: {more}</span> : null}</caption>
        <thead><tr>{head.map((h, k) => <th key={h} scope="col" class={k === words || k === 0 ? 'words' : undefined}>{fmt.text(h)}</th>)}</tr></thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>{row.map((v, k) => (k ? <td key={k} class={k === words ? 'words' : undefined}>{fmt.text(v)}</td> : <th key={k} scope="row">{fmt.text(v)}</th>))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function TableView({ layers, axis, show }: { layers: Layer[]; axis: Axis; show: Show }) {
  const [open, setOpen] = useState(false);
  useRangeInView(axis);
  return (
    <details class="chart-table" onToggle={(e) => setOpen((e.currentTarget as HTMLDetailsElement).open)}>
      <summary>Table</summary>
      {open ? layers.map((layer, i) => <One key={i} {...rowsOf(layer, axis, show)} />) : null}
    </details>
  );
}
