import type { Axis } from './axis';
import { scheme, type Scheme } from './palette';

// What all layers draw on: a canvas with a gutter for labels on its left, and the plot beside it.

export interface Surface {
  g: CanvasRenderingContext2D;
  width: number; // Of the whole, in CSS pixels.
  height: number;
  gutter: number;
  plot: number; // Width of the plot.
  ratio: number; // Device pixels in a CSS pixel.
  scheme: Scheme;
}

export const FONT = '11px system-ui, sans-serif';

// A canvas of more pixels than this on one side is refused by some browsers.
const LARGEST = 16_384;

// Makes the canvas as large as its box, and clears it.
export function surface(canvas: HTMLCanvasElement, height: number, gutter: number, dark: boolean): Surface {
  const width = Math.max(1, canvas.clientWidth);
  const ratio = Math.min(window.devicePixelRatio || 1, LARGEST / Math.max(width, height, 1));
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = `${height}px`;
  }
  const g = canvas.getContext('2d')!;
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = FONT;
  return { g, width, height, gutter, plot: Math.max(1, width - gutter), ratio, scheme: scheme(dark) };
}

export function xOf(s: Surface, axis: Axis, x: number): number {
  return s.gutter + axis.px(x, s.plot);
}

export function clipToPlot(s: Surface, top: number, height: number): void {
  s.g.save();
  s.g.beginPath();
  s.g.rect(s.gutter, top, s.plot, height);
  s.g.clip();
}

// A label in the gutter, shortened at its end if it is too long.
export function gutterLabel(s: Surface, text: string, y: number): void {
  const room = s.gutter - 8;
  if (room < 12) return;
  s.g.fillStyle = s.scheme.dim;
  s.g.textAlign = 'right';
  s.g.textBaseline = 'middle';
  s.g.fillText(fitted(s.g, text, room), s.gutter - 6, y);
}

export function fitted(g: CanvasRenderingContext2D, text: string, room: number): string {
  if (g.measureText(text).width <= room) return text;
  let a = 0;
  let b = text.length;
  while (a < b) {
    const m = (a + b + 1) >> 1;
    if (g.measureText(`${text.slice(0, m)}…`).width <= room) a = m;
    else b = m - 1;
  }
  return a ? `${text.slice(0, a)}…` : '';
}
