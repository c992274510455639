// Rows × time or steps as colours: the median above, the worst rows named, then all of them.
import type { Layer, MatrixData } from '../chart/types';
import { fmt } from '../parts/format';
import { badness, ordered, scaleOf, type Order } from './matrixrows';

export type Colour = 'ratio' | 'raw' | 'late';

export interface MapOptions {
  matrix: MatrixData;
  metric: string;
  colour: Colour;
  low: boolean; // A low value is the bad one.
  order: Order;
  test: (row: MatrixData['rows'][number]) => boolean;
  selected: number | null;
  name: (row: number) => string;
  onRow: (row: number) => void;
  noun: string; // "task"
}

const WORST = 8;
const NAMED = 15; // Pixels of a row that has a name.
const MOST_NAMED = 28;
const HIGHEST = 560;

const NOTES: Record<Colour, string> = {
  ratio: 'ratio to the median of the column', raw: 'as recorded', late: 'above the median of the column',
};

export function scoreText(score: number): string {
  return Number.isFinite(score) ? `${score.toFixed(2)}×` : '–';
}

export function mapLayers(o: MapOptions): { layers: Layer[]; rows: Int32Array; worst: Int32Array } {
  const { matrix: m, metric, colour, low, selected, onRow } = o;
  const rows = ordered(m, o.order, low, o.test);
  const worst = ordered(m, 'worst', low, o.test).slice(0, WORST);
  if (!m.columns || !rows.length) return { layers: [], rows, worst };
  const x = Float64Array.from(m.median, (_, i) => m.first + (i + 0.5) * m.width);
  const scale = scaleOf(colour, low);
  const name = (row: number) => `${o.name(row)} ${scoreText(m.rows[row].score)}`;
  const heat = { kind: 'heat' as const, matrix: m, colour, selected, onRow, name, ...(scale ? { scale } : {}) };
  const layers: Layer[] = [{
    kind: 'strip', label: `median of ${metric}`, note: `over all ${o.noun}s: shows what slows all of them at once`, x, y: m.median,
    unit: m.metric.unit, height: 34,
  }];
  if (rows.length <= MOST_NAMED) {
    layers.push({ ...heat, label: `all ${fmt.plural(rows.length, o.noun)}`, note: NOTES[colour], rows, rowHeight: NAMED + 3 });
  } else {
    layers.push({ ...heat, label: `worst ${worst.length}`, note: NOTES[colour], rows: worst, rowHeight: NAMED });
    const height = Math.min(HIGHEST, Math.max(220, rows.length));
    layers.push({ ...heat, label: `all ${fmt.plural(rows.length, o.noun)}`, note: `by ${o.order}`, rows, height });
  }
  return { layers, rows, worst };
}

// The row in words, for tables: "1.61× the median".
export function standsOut(m: MatrixData, row: number, low: boolean): string {
  const bad = badness(m.rows[row], low);
  if (!Number.isFinite(bad)) return 'nothing to compare';
  return `${scoreText(m.rows[row].score)} the median`;
}
