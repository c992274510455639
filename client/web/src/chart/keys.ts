import type { Axis } from './axis';
import { lowerBound } from './fold';
import { nextBad } from './readout';
import type { Layer, ZoomCause } from './types';

// What the keys do in a stack that has the focus. Returns what happened, or null for a key that is
// somebody else's.

export type KeyAct = 'cursor' | 'row' | 'pick' | 'leave' | ZoomCause;

export interface KeyTarget {
  axis: Axis;
  layers: Layer[];
  moveRow: (by: number) => boolean; // In the first heat map; false without one.
}

const ZOOM = 0.5; // What a press of W leaves of the view.
const PAN = 0.2; // How much of the view a press of A or D moves.

export function pressed(e: KeyboardEvent, t: KeyTarget): KeyAct | null {
  if (e.ctrlKey || e.metaKey || e.altKey) return null;
  const { axis } = t;
  const middle = axis.cursor ?? (axis.from + axis.to) / 2;
  switch (e.key.length === 1 ? e.key.toLowerCase() : e.key) {
    case 'ArrowLeft': return moveCursor(t, e.shiftKey ? -10 : -1);
    case 'ArrowRight': return moveCursor(t, e.shiftKey ? 10 : 1);
    case 'ArrowUp': return t.moveRow(e.shiftKey ? -10 : -1) ? 'row' : null;
    case 'ArrowDown': return t.moveRow(e.shiftKey ? 10 : 1) ? 'row' : null;
    case 'Home': return axis.point(axis.from, true), 'cursor';
    case 'End': return axis.point(axis.to, true), 'cursor';
    case 'w': case '+': case '=': return axis.zoom(ZOOM, middle), 'key';
    case 's': case '-': return axis.zoom(1 / ZOOM, middle), 'key';
    case 'a': return axis.pan(-PAN), 'key';
    case 'd': return axis.pan(PAN), 'key';
    case '0': return axis.showAll(), 'key';
    case 'n': return toBad(t, !e.shiftKey);
    case 'Enter': return 'pick';
    case 'Escape': return axis.cursor === null ? null : (axis.point(null, false), 'leave');
    default: return null;
  }
}

// From one place with data to the next; without curves, by a hundredth of the view.
function moveCursor(t: KeyTarget, by: number): KeyAct {
  const { axis } = t;
  const at = axis.cursor ?? (by > 0 ? axis.from : axis.to);
  const places = t.layers.find((l) => l.kind === 'curve' && l.curves.some((c) => c.x.length > 1));
  const hundredth = (axis.to - axis.from) / 100;
  let next = at + by * hundredth;
  if (places?.kind === 'curve') {
    const { x } = places.curves.find((c) => c.x.length > 1)!;
    // Where places are denser than pixels, stepping through each would take for ever.
    const dense = (lowerBound(x, axis.to) - lowerBound(x, axis.from)) > 1000;
    const i = lowerBound(x, at);
    const on = x[i] === at ? i : by > 0 ? i - 1 : i;
    if (!dense) next = x[Math.max(0, Math.min(x.length - 1, on + by))];
  }
  const whole = axis.kind === 'step' ? Math.round(next) : next;
  axis.point(Math.max(axis.from, Math.min(axis.to, whole)), true);
  return 'cursor';
}

function toBad(t: KeyTarget, forward: boolean): KeyAct | null {
  const at = t.axis.cursor ?? (forward ? -Infinity : Infinity);
  const next = nextBad(t.layers, at, forward);
  if (next === null) return null;
  const width = t.axis.to - t.axis.from;
  const outside = next < t.axis.from || next > t.axis.to;
  if (outside) t.axis.show(next - width / 2, next + width / 2);
  t.axis.point(next, true);
  return outside ? 'key' : 'cursor';
}
