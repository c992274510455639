import type { Axis } from './axis';
import { clipToPlot, gutterLabel, xOf, type Surface } from './canvas';
import { fold, runs } from './fold';
import { extent } from './robust';
import type { StripLayer } from './types';

// A filled line without a grid, with its highest value in the gutter.

export function paintStrip(s: Surface, axis: Axis, layer: StripLayer, num: (v: number) => string): void {
  const mid = Float64Array.from(layer.y);
  const columns = fold({ name: layer.label, colour: 0, x: layer.x, mid }, axis.from, axis.to, Math.round(s.plot));
  const range = extent([columns], 'robust');
  // From 0, so that a third more looks like a third more, and noise like noise.
  const low = Math.min(0, range.low);
  const y = (v: number) => s.height - 1 - ((v - low) / (range.high - low)) * (s.height - 4);
  const label = Number.isFinite(range.highest) ? num(range.highest) : '';
  gutterLabel(s, label, s.height / 2);
  clipToPlot(s, 0, s.height);
  s.g.fillStyle = s.g.strokeStyle = s.scheme.dim;
  for (const [a, b] of runs(columns.mid)) {
    s.g.beginPath();
    s.g.moveTo(xOf(s, axis, columns.x[a]), s.height);
    for (let i = a; i < b; i++) s.g.lineTo(xOf(s, axis, columns.x[i]), y(columns.high[i]));
    s.g.lineTo(xOf(s, axis, columns.x[b - 1]), s.height);
    s.g.globalAlpha = 0.25;
    s.g.fill();
    s.g.globalAlpha = 1;
    s.g.beginPath();
    for (let i = a; i < b; i++) s.g.lineTo(xOf(s, axis, columns.x[i]), y(columns.high[i]));
    s.g.lineWidth = 1.25;
    s.g.stroke();
  }
  s.g.restore();
}
