// What a stack of charts shows. Every layer hangs on one Axis, and positions are in its unit:
//   step     the step's number
//   time     milliseconds since the Unix epoch, with fractions
//   elapsed  seconds since the beginning
// NaN in `mid` is a gap. Arrays of one curve have equal lengths, and x ascends.

export interface Curve {
  name: string;
  colour: number; // Index into the palette: see styles() in palette.ts.
  dash?: number; // Index into its dash patterns; 0 is a solid line.
  x: Float64Array;
  mid: Float64Array;
  low?: Float64Array; // With `high`: the band around the line.
  high?: Float64Array;
  bad?: Uint32Array; // Samples at x that are NaN or infinite.
  faint?: boolean; // Thin, and without a say in the scale: superseded steps, other tasks.
}

export type YMode = 'robust' | 'all' | 'log';

// A moment that every curve shows as a thin line: a checkpoint, a restart.
export interface Mark {
  x: number;
  kind: string; // As Span.kind.
  text: string;
}

export interface CurveLayer {
  kind: 'curve';
  label: string;
  note?: string; // Behind the label, dimmed.
  height: number;
  curves: Curve[];
  y: YMode;
  smoothing?: number; // From 0 (none) to below 1: the weight of the past, as TensorBoard has it.
  unit?: string; // UCUM, as of metrics.
  marks?: Mark[];
}

export interface MatrixRow {
  task: number | null;
  host: string;
  chip: string;
  label: string;
  firstColumn: number;
  lastColumn: number;
  holes: number;
  score: number;
  nonFinite: number;
}

// View.Matrix with typed arrays. Column i begins at first + i * width.
export interface MatrixData {
  metric: { name: string; unit: string; help: string };
  first: number;
  width: number;
  columns: number;
  median: Float32Array;
  low: Float32Array;
  high: Float32Array;
  rowsTotal: number;
  samples: number;
  rows: MatrixRow[];
  values: Float32Array; // Row by row; NaN: no finite value.
  nonFinite: Uint32Array; // Positions in `values` of cells with a NaN or infinite sample.
}

export interface HeatLayer {
  kind: 'heat';
  label: string;
  note?: string;
  matrix: MatrixData;
  // ratio: value / median of the column. late: value - median. raw: the value.
  colour: 'ratio' | 'late' | 'raw';
  scale?: [number, number]; // What the ends of the colours mean; absent: chosen by `colour`.
  rows?: ArrayLike<number>; // Which rows, from top to bottom; absent: all of them.
  rowHeight?: number; // CSS pixels; absent: `height` is shared by all rows.
  height?: number;
  name?: (row: number) => string; // In front of rows that are high enough; absent: task and host.
  selected?: number | null; // A row of the matrix.
  onRow?: (row: number) => void; // A click, or Enter on the row under the keyboard's cursor.
}

export interface Span {
  from: number;
  to: number; // Equal to `from`: a moment, drawn as a diamond.
  kind: string; // A key of `kinds` in palette.ts; any other is neutral.
  text: string;
  title?: string; // The whole sentence, for the readout and the table.
}

export interface Lane {
  name: string;
  spans: Span[]; // Ascending.
}

export interface LaneLayer {
  kind: 'lanes';
  label?: string;
  lanes: Lane[];
  rowHeight?: number; // 22 pixels if absent.
}

// A small curve without a scale of its own, such as the median above a heat map.
export interface StripLayer {
  kind: 'strip';
  label: string;
  note?: string;
  x: Float64Array;
  y: ArrayLike<number>;
  unit?: string;
  height?: number;
}

export type Layer = CurveLayer | HeatLayer | LaneLayer | StripLayer;

// What a click met.
export interface Pick {
  layer: number;
  x: number;
  row?: number; // Of a heat map: a row of the matrix.
  lane?: number;
  span?: Span;
}

// How the view changed. A screen asks for finer data at once after a drag, which Back undoes, and when
// the wheel and the keys have rested.
export type ZoomCause = 'drag' | 'wheel' | 'key';
