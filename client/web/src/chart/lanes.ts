import type { Axis } from './axis';
import { clipToPlot, fitted, gutterLabel, xOf, type Surface } from './canvas';
import { inkOn } from './palette';
import type { Lane, LaneLayer, Span } from './types';

// Draws what happened as bars and diamonds in named lanes.

export const LANE_HEIGHT = 22;
const THINNEST = 1.5; // Pixels, so that a short span is seen.
const HALF = 5; // Of a diamond.
const CLOSE = 2 * HALF; // Nearer moments of one kind are ticks, or they would hide each other.

export function laneHeight(layer: LaneLayer): number {
  return layer.lanes.length * (layer.rowHeight ?? LANE_HEIGHT);
}

export function paintLanes(s: Surface, axis: Axis, layer: LaneLayer): void {
  const tall = layer.rowHeight ?? LANE_HEIGHT;
  layer.lanes.forEach((lane, i) => {
    gutterLabel(s, lane.name, (i + 0.5) * tall);
    s.g.fillStyle = s.scheme.lane;
    s.g.fillRect(s.gutter, i * tall + 2, s.plot, tall - 4);
  });
  clipToPlot(s, 0, s.height);
  layer.lanes.forEach((lane, i) => paintLane(s, axis, lane, i * tall, tall));
  s.g.restore();
}

function paintLane(s: Surface, axis: Axis, lane: Lane, top: number, tall: number): void {
  s.g.textAlign = 'left';
  s.g.textBaseline = 'middle';
  let filled = -1; // The last pixel column with a thin bar or diamond of `kind`.
  let kind = '';
  const crowded = crowdedKinds(s, axis, lane);
  for (const span of lane.spans) {
    if (span.to < axis.from || span.from > axis.to) continue;
    const a = xOf(s, axis, span.from);
    const b = xOf(s, axis, span.to);
    // Of thousands of short spans in one pixel, the first stands for those of its kind.
    if (b - a < THINNEST && Math.floor(a) === filled && span.kind === kind) continue;
    if (b - a < THINNEST) [filled, kind] = [Math.floor(a), span.kind];
    if (span.from === span.to) paintMoment(s, span, a, top + tall / 2, crowded.has(span.kind));
    else paintBar(s, span, Math.max(s.gutter, a), Math.min(s.width, b), top, tall);
  }
}

function fillOf(s: Surface, kind: string): string {
  return s.scheme.kinds[kind] ?? s.scheme.kinds.other;
}

function paintBar(s: Surface, span: Span, a: number, b: number, top: number, tall: number): void {
  const fill = fillOf(s, span.kind);
  s.g.fillStyle = fill;
  const width = Math.max(THINNEST, b - a);
  s.g.fillRect(a, top + 2, width > 6 ? width - 0.75 : width, tall - 4);
  if (width < 24 || !span.text) return;
  const text = fitted(s.g, span.text, width - 10);
  if (text.length < 3 && text !== span.text) return;
  s.g.fillStyle = inkOn(fill);
  s.g.fillText(text, a + 5, top + tall / 2 + 0.5);
}

// Kinds of which most moments in view lie close to another.
function crowdedKinds(s: Surface, axis: Axis, lane: Lane): Set<string> {
  const seen = new Map<string, { x: number; count: number; close: number }>();
  for (const span of lane.spans) {
    if (span.from !== span.to || span.to < axis.from || span.from > axis.to) continue;
    const x = xOf(s, axis, span.from);
    const last = seen.get(span.kind);
    if (!last) seen.set(span.kind, { x, count: 1, close: 0 });
    else seen.set(span.kind, { x, count: last.count + 1, close: last.close + Number(x - last.x < CLOSE) });
  }
  return new Set([...seen].filter(([, k]) => k.close * 2 > k.count).map(([kind]) => kind));
}

function paintMoment(s: Surface, span: Span, x: number, y: number, crowded: boolean): void {
  s.g.fillStyle = fillOf(s, span.kind);
  if (crowded) {
    s.g.fillRect(x - 0.5, y - HALF, 1, 2 * HALF);
    return;
  }
  s.g.beginPath();
  s.g.moveTo(x, y - HALF - 1);
  s.g.lineTo(x + HALF, y);
  s.g.lineTo(x, y + HALF + 1);
  s.g.lineTo(x - HALF, y);
  s.g.fill();
}

// The span at x, or the moment within `reach` of it. Later spans lie above earlier ones.
export function spanAt(lane: Lane, x: number, reach: number): Span | null {
  let best: Span | null = null;
  let distance = reach;
  for (const span of lane.spans) {
    if (span.from - reach > x) break;
    if (span.from < span.to) {
      if (x >= span.from && x <= span.to && (best === null || best.from < best.to)) best = span;
    } else if (Math.abs(span.from - x) <= distance) {
      best = span;
      distance = Math.abs(span.from - x);
    }
  }
  return best;
}
