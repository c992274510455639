import { dark } from '../app/theme';
import { fmt } from '../parts/format';
import type { Axis } from './axis';
import { gutterLabel, surface, xOf, type Surface } from './canvas';
import { paintCurves, type CurvePicture } from './curve';
import { allRows, heatHeight, paintHeat } from './heat';
import { LANE_HEIGHT, laneHeight, paintLanes } from './lanes';
import type { Hit, Show } from './readout';
import { paintStrip } from './strip';
import { axisTicks } from './ticks';
import type { Layer } from './types';

// Paints the layers of one stack. Each layer keeps its canvas until its data, the view, the size or
// the colours change; what follows the pointer is on a canvas of its own above them, so that moving
// the cursor paints one line.

export const AXIS_HEIGHT = 20;
const LABEL_DISTANCE = 96;
const SHORTENED = 10_000; // From here on, labels of y axes have a prefix.

export function layerHeight(layer: Layer): number {
  if (layer.kind === 'heat') return heatHeight(layer);
  if (layer.kind === 'lanes') return laneHeight(layer);
  return layer.kind === 'strip' ? (layer.height ?? 28) : layer.height;
}

export class Painter {
  gutter = 64;
  layers: Layer[] = [];
  selection: [number, number] | null = null; // While the pointer is dragged.
  hit: Hit | null = null;
  onPicture: (layer: number, picture: CurvePicture) => void = () => {};
  private painted: { layer: Layer; view: string }[] = [];

  constructor(
    private readonly root: HTMLElement,
    private readonly axis: Axis,
    private readonly show: Show,
    private readonly zone: (ms: number) => number, // How far local time is ahead of UTC, ms.
  ) {}

  get plot(): number {
    return Math.max(1, this.root.clientWidth - this.gutter);
  }

  private canvases(): HTMLCanvasElement[] {
    return [...this.root.querySelectorAll<HTMLCanvasElement>('canvas.layer')];
  }

  paint(): void {
    const night = dark();
    const ratio = window.devicePixelRatio;
    const view = [this.axis.from, this.axis.to, this.root.clientWidth, this.gutter, ratio, night].join(' ');
    this.canvases().forEach((canvas, i) => {
      const layer = this.layers[i];
      if (!layer || (this.painted[i]?.layer === layer && this.painted[i].view === view)) return;
      const s = surface(canvas, layerHeight(layer), this.gutter, night);
      this.paintLayer(s, layer, i);
      this.painted[i] = { layer, view };
    });
    this.painted.length = Math.min(this.painted.length, this.layers.length);
    this.paintAxis(night);
    this.paintOver(night);
  }

  private paintLayer(s: Surface, layer: Layer, i: number): void {
    const unit = layer.kind === 'curve' || layer.kind === 'strip' ? layer.unit : undefined;
    // Beside a scale, words such as "nats" only repeat themselves.
    const num = (v: number) =>
      unit === 's' || unit === 'By' ? this.show(v, unit) : Math.abs(v) >= SHORTENED ? fmt.si(v) : this.show(v);
    if (layer.kind === 'curve') this.onPicture(i, paintCurves(s, this.axis, layer, num));
    else if (layer.kind === 'heat') paintHeat(s, this.axis, layer);
    else if (layer.kind === 'lanes') paintLanes(s, this.axis, layer);
    else paintStrip(s, this.axis, layer, num);
  }

  private paintAxis(night: boolean): void {
    const canvas = this.root.querySelector<HTMLCanvasElement>('canvas.axis');
    if (!canvas) return;
    const s = surface(canvas, AXIS_HEIGHT, this.gutter, night);
    const { from, to, kind } = this.axis;
    const { at, label } = axisTicks(kind, from, to, s.plot / LABEL_DISTANCE, this.zone(from));
    s.g.strokeStyle = s.scheme.dim;
    s.g.fillStyle = s.scheme.dim;
    s.g.textBaseline = 'top';
    for (const x of at) {
      const px = Math.round(xOf(s, this.axis, x)) + 0.5;
      if (px < s.gutter || px > s.width) continue;
      s.g.beginPath();
      s.g.moveTo(px, 0);
      s.g.lineTo(px, 4);
      s.g.stroke();
      const text = label(x);
      const half = s.g.measureText(text).width / 2;
      s.g.textAlign = px + half > s.width ? 'right' : px - half < s.gutter ? 'left' : 'center';
      s.g.fillText(text, px, 6);
    }
    gutterLabel(s, kind, 11);
  }

  // The cursor, the row under it, and the range that is being dragged.
  paintOver(night = dark()): void {
    const canvas = this.root.querySelector<HTMLCanvasElement>('canvas.over');
    if (!canvas) return;
    const s = surface(canvas, this.root.clientHeight, this.gutter, night);
    if (this.selection) {
      const [a, b] = this.selection.map((x) => xOf(s, this.axis, x)).sort((p, q) => p - q);
      s.g.globalAlpha = 0.16;
      s.g.fillStyle = s.scheme.series[0];
      s.g.fillRect(a, 0, b - a, s.height);
      s.g.globalAlpha = 1;
    }
    this.paintRow(s);
    const x = this.axis.cursor;
    if (x === null || x < this.axis.from || x > this.axis.to) return;
    const px = Math.round(xOf(s, this.axis, x)) + 0.5;
    s.g.strokeStyle = s.scheme.text;
    s.g.lineWidth = 1;
    s.g.setLineDash(this.axis.pinned ? [] : [3, 3]);
    s.g.beginPath();
    s.g.moveTo(px, 0);
    s.g.lineTo(px, s.height);
    s.g.stroke();
    s.g.setLineDash([]);
  }

  private paintRow(s: Surface): void {
    if (this.hit === null || this.hit.row === null) return;
    const layer = this.layers[this.hit.layer];
    const canvas = this.canvases()[this.hit.layer];
    if (layer?.kind !== 'heat' || !canvas) return;
    const rows = allRows(layer);
    const at = Array.prototype.indexOf.call(rows, this.hit.row);
    if (at < 0) return;
    const tall = heatHeight(layer) / rows.length;
    s.g.strokeStyle = s.scheme.select;
    s.g.lineWidth = 1;
    s.g.strokeRect(s.gutter + 0.5, Math.round(canvas.offsetTop + at * tall) - 0.5, s.plot - 1, Math.max(4, tall + 1));
  }

  // What is at a point of the root, in CSS pixels.
  at(left: number, top: number): { x: number; hit: Hit | null } {
    const x = this.axis.at(Math.max(0, Math.min(this.plot, left - this.gutter)), this.plot);
    let hit: Hit | null = null;
    this.canvases().forEach((canvas, i) => {
      const y = top - canvas.offsetTop;
      const layer = this.layers[i];
      if (!layer || y < 0 || y >= canvas.clientHeight) return;
      hit = { layer: i, row: null, lane: null };
      if (layer.kind === 'heat') {
        const rows = allRows(layer);
        hit.row = rows[Math.min(rows.length - 1, Math.floor((y / canvas.clientHeight) * rows.length))] ?? null;
      } else if (layer.kind === 'lanes') {
        const lane = Math.floor(y / (layer.rowHeight ?? LANE_HEIGHT));
        hit.lane = lane < layer.lanes.length ? lane : null;
      }
    });
    return { x, hit };
  }
}
