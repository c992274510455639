// The x axis of a screen as the URL has it: x (step, time, elapsed), r (the range in view) and c
// (the pinned cursor). Times are ISO 8601 in UTC without fractions that are zero; `-1h..` is relative
// to now and stays so.
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { collectorNow } from '../api/live';
import { useKeys } from '../app/keys';
import { go, type Route } from '../app/route';
import { Axis, type AxisKind } from '../chart/axis';
import type { ZoomCause } from '../chart/types';

export type Extent = [number, number];

export function axisKind(route: Route, fallback: AxisKind = 'step'): AxisKind {
  const x = route.q.x;
  return x === 'step' || x === 'time' || x === 'elapsed' ? x : fallback;
}

const STEP_MS = 10_000;

// Now, in steps of ten seconds: what is relative to it does not change with each repaint.
export const steppedNow = (now = collectorNow()): number => Math.ceil(now / STEP_MS) * STEP_MS;

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400 };

// One end of a range; null: the end of everything.
function parseEnd(text: string, kind: AxisKind, now: number): number | null {
  if (!text) return null;
  if (kind !== 'time') return Number.isFinite(Number(text)) ? Number(text) : null;
  const relative = /^-(\d+(?:\.\d+)?)([smhd])$/.exec(text);
  if (relative) return now - Number(relative[1]) * SECONDS[relative[2]] * 1000;
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return null; // A step, say, of a link along another axis.
  const time = Date.parse(/[Z+]|\d-\d\d:\d\d$/.test(text) ? text : `${text}Z`);
  return Number.isNaN(time) ? null : time;
}

// null: everything. A range of another axis has no end that is one of this axis.
export function parseRange(text: string | undefined, kind: AxisKind, full: Extent, now: number): Extent | null {
  const cut = text?.indexOf('..') ?? -1;
  if (!text || cut < 0) return null;
  const ends = [parseEnd(text.slice(0, cut), kind, now), parseEnd(text.slice(cut + 2), kind, now)];
  if (ends[0] === null && ends[1] === null) return null;
  const [a, b] = [ends[0] ?? full[0], ends[1] ?? full[1]];
  return b > a ? [a, b] : null;
}

function position(x: number, kind: AxisKind, width: number): string {
  if (kind === 'step') return String(Math.round(x));
  if (kind === 'elapsed') return String(Number(x.toFixed(width < 60 ? 3 : 0)));
  const text = new Date(Math.round(x)).toISOString();
  return width < 60_000 ? text : text.replace(/\.\d+Z$/, 'Z');
}

export function formatRange(range: Extent, kind: AxisKind): string {
  const width = range[1] - range[0];
  return `${position(range[0], kind, width)}..${position(range[1], kind, width)}`;
}

export interface View {
  axis: Axis;
  // What the URL says is in view; null: everything. The ends of `-1h..` move on, so a call is known by
  // the text of the URL and not by these numbers: a key of them would be a new one with each answer.
  range: Extent | null;
  onZoom: (from: number, to: number, cause: ZoomCause) => void;
}

const SETTLED_MS = 250; // After keys and the wheel; a drag is settled at once.

// An axis whose view and pinned cursor are those of the URL. `full` is everything there is; null
// while that is not known. `beside` is what the URL gets together with a range.
export function useView(route: Route, kind: AxisKind, full: Extent | null, beside: Record<string, string> = {}): View {
  const axis = useMemo(() => new Axis(kind, full ?? [0, 1]), [kind]);
  const ofRange = useRef<Timer | null>(null);
  const ofCursor = useRef<Timer | null>(null);
  const range = full ? parseRange(route.q.r, kind, full, steppedNow()) : null;
  useEffect(() => {
    if (!full) return;
    axis.setFull(...full);
    if (range) axis.show(...range);
    else axis.showAll();
  }, [axis, full?.[0], full?.[1], route.q.r]);
  useEffect(() => {
    const x = parseEnd(route.q.c ?? '', kind, collectorNow());
    if (x !== null) axis.point(x, true);
    else if (axis.pinned) axis.point(null, false);
  }, [axis, route.q.c]);
  useEffect(() => {
    let last = route.q.c ?? '';
    const off = axis.on(() => {
      const now = axis.pinned && axis.cursor !== null ? position(axis.cursor, kind, axis.to - axis.from) : '';
      if (now === last) return;
      last = now;
      later(ofCursor, () => go({ q: { c: now } }, 'replace'));
    });
    return () => {
      off();
      for (const timer of [ofRange, ofCursor]) if (timer.current) clearTimeout(timer.current);
    };
  }, [axis]);
  const onZoom = (from: number, to: number, cause: ZoomCause): void => {
    const text = axis.zoomed ? formatRange([from, to], kind) : '';
    const write = () => go({ q: { ...(text ? beside : {}), r: text } }, cause === 'drag' ? 'push' : 'replace');
    if (ofRange.current) clearTimeout(ofRange.current);
    if (cause === 'drag') write();
    else later(ofRange, write);
  };
  useAxisKeys(axis, onZoom);
  return { axis, range, onZoom };
}

// W S A D and 0 without the focus in a chart; with it, the chart takes them and the arrows itself.
function useAxisKeys(axis: Axis, onZoom: View['onZoom']): void {
  const act = (change: () => void) => () => {
    change();
    onZoom(axis.from, axis.to, 'key');
  };
  const middle = () => axis.cursor ?? (axis.from + axis.to) / 2;
  useKeys([
    { keys: 'w +', help: 'Zoom in', run: act(() => axis.zoom(0.5, middle())) },
    { keys: 's -', help: 'Zoom out', run: act(() => axis.zoom(2, middle())) },
    { keys: 'a', help: 'Pan to the left', run: act(() => axis.pan(-0.2)) },
    { keys: 'd', help: 'Pan to the right', run: act(() => axis.pan(0.2)) },
    { keys: '0', help: 'Show all of the axis', run: act(() => axis.showAll()) },
  ]);
}

type Timer = ReturnType<typeof setTimeout>;

function later(timer: { current: Timer | null }, act: () => void): void {
  if (timer.current) clearTimeout(timer.current);
  timer.current = setTimeout(act, SETTLED_MS);
}

// The newest data that is not null: what a refresh, or a closer look at the same thing, replaces.
// `identity` says what the same thing is.
export function useKept<T>(data: T | null, identity: string): T | null {
  const kept = useRef<{ identity: string; data: T } | null>(null);
  if (data !== null) kept.current = { identity, data };
  return kept.current?.identity === identity ? kept.current.data : null;
}
