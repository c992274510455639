import type { Axis } from './axis';
import { gutterLabel, type Surface } from './canvas';
import { ramp, type Rgb, type Scheme } from './palette';
import type { HeatLayer, MatrixData } from './types';

// Draws a matrix as coloured cells. Where several cells share a pixel, the one that matters most is
// shown: NaN before a hole, a hole before the highest value. A hole is a column without a sample
// within the row's own life; a mean would hide each of these in a thousand healthy tasks.

// The highest code of a pixel's cells is the one that matters most.
export const EMPTY = 0;
const COLOURS = 253; // Codes 1 to 253.
export const HOLE = 254;
export const NAN = 255;

export interface Cells {
  codes: Uint8Array; // One a cell, row by row, of the whole matrix.
  scale: [number, number];
}

const prepared = new WeakMap<MatrixData, Map<string, Cells>>();

// The code of every cell; kept as long as the matrix is.
export function cells(layer: HeatLayer): Cells {
  const key = `${layer.colour} ${layer.scale ?? ''}`;
  let known = prepared.get(layer.matrix);
  if (!known) prepared.set(layer.matrix, (known = new Map()));
  let made = known.get(key);
  if (!made) known.set(key, (made = encode(layer.matrix, layer.colour, layer.scale)));
  return made;
}

export function cellValue(m: MatrixData, colour: HeatLayer['colour'], row: number, column: number): number {
  const value = m.values[row * m.columns + column];
  if (colour === 'ratio') return value / m.median[column];
  return colour === 'late' ? value - m.median[column] : value;
}

export function encode(m: MatrixData, colour: HeatLayer['colour'], fixed?: [number, number]): Cells {
  const codes = new Uint8Array(m.values.length);
  const scale = fixed ?? scaleFor(m, colour);
  const part = (COLOURS - 1) / (scale[1] - scale[0]);
  for (let r = 0; r < m.rows.length; r++) {
    const { firstColumn, lastColumn } = m.rows[r];
    for (let c = 0, i = r * m.columns; c < m.columns; c++, i++) {
      const value = m.values[i];
      if (value !== value) {
        if (c >= firstColumn && c <= lastColumn) codes[i] = HOLE;
        continue;
      }
      const v = colour === 'ratio' ? value / m.median[c] : colour === 'late' ? value - m.median[c] : value;
      const place = (v - scale[0]) * part;
      // NaN is 0 / 0: a median of 0, from which nothing stands out.
      codes[i] = place > 0 ? 1 + (place < COLOURS - 1 ? (place + 0.5) | 0 : COLOURS - 1) : 1;
    }
  }
  for (const i of m.nonFinite) codes[i] = NAN;
  return { codes, scale };
}

export function scaleFor(m: MatrixData, colour: HeatLayer['colour']): [number, number] {
  if (colour === 'ratio') return [0.8, 2];
  const sample: number[] = [];
  const stride = Math.max(1, Math.floor(m.values.length / 50_000));
  for (let i = 0; i < m.values.length; i += stride) {
    const v = colour === 'late' ? m.values[i] - m.median[i % m.columns] : m.values[i];
    if (Number.isFinite(v)) sample.push(v);
  }
  if (!sample.length) return [0, 1];
  sample.sort((a, b) => a - b);
  const at = (q: number) => sample[Math.round(q * (sample.length - 1))];
  const low = colour === 'late' ? 0 : at(0.005);
  const high = Math.max(at(0.995), colour === 'late' ? at(1) / 2 : -Infinity);
  return high > low ? [low, high] : [low, low + (Math.abs(low) * 0.1 || 1)];
}

// Codes of a picture of width x height. Column k of the picture shows the matrix' columns from
// edges[k] up to edges[k + 1], and at least one.
export function pool(
  codes: Uint8Array, columns: number, rows: ArrayLike<number>, edges: Int32Array, height: number,
): Uint8Array {
  const width = edges.length - 1;
  const out = new Uint8Array(width * height);
  const [left, right] = [Math.max(0, edges[0]), Math.min(columns, edges[width] + 1)];
  const line = new Uint8Array(columns);
  let before = -1;
  let end = -1;
  for (let y = 0; y < height; y++) {
    const r0 = Math.floor((y * rows.length) / height);
    const r1 = Math.max(r0 + 1, Math.floor(((y + 1) * rows.length) / height));
    if (r0 === before && r1 === end) {
      out.copyWithin(y * width, (y - 1) * width, y * width);
      continue;
    }
    [before, end] = [r0, r1];
    poolRows(codes, columns, rows, r0, Math.min(r1, rows.length), left, right, line);
    poolColumns(line, columns, edges, out, y * width);
  }
  return out;
}

function poolRows(
  codes: Uint8Array, columns: number, rows: ArrayLike<number>, r0: number, r1: number,
  left: number, right: number, line: Uint8Array,
): void {
  line.fill(EMPTY);
  for (let r = r0; r < r1; r++) {
    const base = rows[r] * columns;
    for (let c = left; c < right; c++) {
      const code = codes[base + c];
      if (code > line[c]) line[c] = code;
    }
  }
}

function poolColumns(
  line: Uint8Array, columns: number, edges: Int32Array, out: Uint8Array, base: number,
): void {
  for (let k = 0; k + 1 < edges.length; k++) {
    let worst = EMPTY;
    const end = Math.min(columns, Math.max(edges[k + 1], edges[k] + 1));
    for (let c = Math.max(0, edges[k]); c < end; c++) if (line[c] > worst) worst = line[c];
    out[base + k] = worst;
  }
}

export function heatHeight(layer: HeatLayer): number {
  const rows = layer.rows?.length ?? layer.matrix.rows.length;
  return layer.rowHeight ? Math.max(1, rows) * layer.rowHeight : (layer.height ?? 240);
}

function table(s: Scheme): Uint32Array {
  const pack = ([r, g, b]: Rgb) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  const out = new Uint32Array(256);
  out[EMPTY] = pack(s.empty);
  out[NAN] = pack(s.nan);
  out[HOLE] = pack(s.hole);
  ramp(s.heat, COLOURS).forEach((colour, i) => (out[1 + i] = pack(colour)));
  return out;
}

export function allRows(layer: HeatLayer): ArrayLike<number> {
  return layer.rows ?? Int32Array.from(layer.matrix.rows, (_, i) => i);
}

export function paintHeat(s: Surface, axis: Axis, layer: HeatLayer): void {
  const m = layer.matrix;
  const rows = allRows(layer);
  if (!rows.length || !m.columns) return;
  const left = Math.round(s.gutter * s.ratio);
  const [width, height] = [Math.max(1, s.g.canvas.width - left), s.g.canvas.height];
  const edges = new Int32Array(width + 1);
  for (let k = 0; k <= width; k++) edges[k] = Math.floor((axis.at(k, width) - m.first) / m.width);
  const picture = pool(cells(layer).codes, m.columns, rows, edges, height);
  const image = s.g.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const colours = table(s.scheme);
  for (let i = 0; i < picture.length; i++) pixels[i] = colours[picture[i]];
  s.g.putImageData(image, left, 0);
  paintNames(s, layer, rows);
  paintSelected(s, layer, rows);
}

export function rowName(layer: HeatLayer, row: number): string {
  if (layer.name) return layer.name(row);
  return matrixRowName(layer.matrix, row);
}

export function matrixRowName(matrix: MatrixData, row: number): string {
  const r = matrix.rows[row];
  const parts = [r.task === null ? '' : String(r.task), r.host, r.chip && `chip ${r.chip}`, r.label];
  return parts.filter(Boolean).join(' ');
}

function paintNames(s: Surface, layer: HeatLayer, rows: ArrayLike<number>): void {
  const tall = s.height / rows.length;
  if (tall >= 11) {
    if (tall >= 14) {
      // A hair between high rows, so that neighbours of one colour stay apart.
      s.g.fillStyle = s.scheme.background;
      for (let i = 1; i < rows.length; i++) s.g.fillRect(s.gutter, Math.round(i * tall) - 1, s.plot, 1);
    }
    for (let i = 0; i < rows.length; i++) gutterLabel(s, rowName(layer, rows[i]), (i + 0.5) * tall);
    return;
  }
  const every = Math.ceil(rows.length / Math.max(1, Math.floor(s.height / 34)));
  for (let i = 0; i < rows.length; i += every) {
    gutterLabel(s, rowName(layer, rows[i]), Math.max(6, Math.min(s.height - 6, (i + 0.5) * tall)));
  }
}

function paintSelected(s: Surface, layer: HeatLayer, rows: ArrayLike<number>): void {
  if (layer.selected === undefined || layer.selected === null) return;
  const at = Array.prototype.indexOf.call(rows, layer.selected);
  if (at < 0) return;
  const tall = s.height / rows.length;
  s.g.strokeStyle = s.scheme.select;
  s.g.lineWidth = 1.5;
  const y = Math.max(1, Math.round(at * tall) - 0.5);
  s.g.strokeRect(s.gutter + 0.75, y, s.plot - 1.5, Math.max(4, Math.min(tall + 1, s.height - y - 1)));
}
