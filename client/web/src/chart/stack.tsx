import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { choices } from '../app/theme';
import { fmt } from '../parts/format';
import type { Axis } from './axis';
import './chart.css';
import { allRows } from './heat';
import { pressed } from './keys';
import { spanAt } from './lanes';
import { Legend } from './legend';
import { layerHeight, Painter } from './painter';
import { position, readout, type Hit } from './readout';
import { beyond } from './robust';
import { TableView } from './table';
import { elapsedLabel } from './ticks';
import type { CurvePicture } from './curve';
import type { Layer, Pick, ZoomCause } from './types';

// Charts below each other on one axis, with one cursor and one zoom. Drag zooms, Ctrl and the wheel
// zoom, a click pins the cursor; the keys are in keys.ts. What the cursor meets is said above the
// charts, and to screen readers.

export interface StackProps {
  axis: Axis;
  label: string; // What all of it is, in a few words.
  layers: Layer[];
  onZoom?: (from: number, to: number, cause: ZoomCause) => void;
  onPick?: (pick: Pick) => void;
  gutter?: number; // Pixels in front of the plots; absent: wide enough for names of rows.
  hint?: string; // What the line above says without a cursor; absent: how to use the charts.
  table?: boolean; // false: without the table below.
  children?: ComponentChildren; // Beside the line above: controls.
}

const SPOKEN_EVERY_MS = 300;
const DRAG_FROM = 4; // Pixels; less is a click.
const WHEEL = 0.0018;
const HINT = 'Point at the charts, or use the arrow keys; drag to zoom';
const KEYS = 'Arrow keys move the cursor, W and S zoom, A and D pan, 0 shows all, N finds the next value that is not finite.';

const show = (v: number, unit?: string) => fmt.value(v, unit);

// Offsets of the chosen zone, so that ticks are at its round times.
const zone = (ms: number) => (fmt.zone === 'utc' ? 0 : -new Date(ms).getTimezoneOffset() * 60_000);

function gutterOf(props: StackProps, width: number): number {
  if (props.gutter !== undefined) return props.gutter;
  const named = props.layers.some((l) => l.kind === 'heat' && (l.rowHeight ?? 0) >= 11);
  if (width < 480) return named ? 84 : 56;
  return named ? 132 : 72;
}

// Says the text in a polite live region, but not more often than somebody can listen.
function useSpoken() {
  const ref = useRef<HTMLParagraphElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  useEffect(() => () => void (timer.current && clearTimeout(timer.current)), []);
  const say = (text: string) => {
    if (timer.current) clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      if (ref.current && ref.current.textContent !== text) ref.current.textContent = text;
    }, SPOKEN_EVERY_MS);
  };
  return { ref, say };
}

export function Stack(props: StackProps) {
  const { axis, layers } = props;
  const root = useRef<HTMLDivElement>(null);
  const line = useRef<HTMLOutputElement>(null);
  const painter = useRef<Painter | null>(null);
  const spoken = useSpoken();
  const latest = useRef(props);
  latest.current = props;

  const read = () => {
    const p = painter.current;
    if (!p || !line.current) return;
    const x = axis.cursor;
    const where = x === null ? '' : position(axis, x, (ms) => fmt.time(ms), (s) => elapsedLabel(s, 1));
    const text = readout(latest.current.layers, axis, p.hit, p.plot, where, show);
    line.current.textContent = text || (latest.current.hint ?? HINT);
    line.current.classList.toggle('dim', !text);
    if (text && document.activeElement === root.current) spoken.say(text);
  };
  const paint = () => {
    const p = painter.current;
    if (!p || !root.current) return;
    p.layers = latest.current.layers;
    p.gutter = gutterOf(latest.current, root.current.clientWidth);
    p.paint();
    read();
  };

  useLayoutEffect(() => {
    const p = (painter.current = new Painter(root.current!, axis, show, zone));
    p.onPicture = (i, picture) => note(root.current!, i, picture, latest.current.layers);
    const size = new ResizeObserver(paint);
    size.observe(root.current!);
    const offs = [axis.on(paint), choices.on(paint), () => size.disconnect()];
    const wheel = onWheel(root.current!, p, axis, () => latest.current.onZoom?.(axis.from, axis.to, 'wheel'));
    return () => [...offs, wheel].forEach((off) => off());
  }, [axis]);
  useLayoutEffect(paint);

  const pointer = useMemo(() => pointerHandlers(axis, painter, latest, read), [axis]);
  const key = (e: KeyboardEvent) => {
    const act = pressed(e, { axis, layers, moveRow: (by) => moveRow(painter.current!, by) });
    if (act === null) return;
    e.preventDefault();
    e.stopPropagation();
    if (act === 'key') props.onZoom?.(axis.from, axis.to, 'key');
    else if (act === 'pick') pick(painter.current!, axis, latest.current);
    else if (act === 'row') {
      if (axis.cursor === null) axis.point((axis.from + axis.to) / 2, true);
      painter.current!.paintOver();
      read();
    }
  };

  return (
    <section class="stack-box">
      <div class="stack-head">
        <output class="stack-read dim" ref={line} aria-live="off" />
        {props.children}
      </div>
      <div
        ref={root} class="stack" tabIndex={0} role="group" aria-roledescription="chart"
        aria-label={`${props.label}. ${KEYS}`} onKeyDown={key} {...pointer}
      >
        {layers.map((layer, i) => <LayerBox key={i} layer={layer} />)}
        <canvas class="axis" aria-hidden="true" />
        <canvas class="over" aria-hidden="true" />
      </div>
      <p class="vh" aria-live="polite" ref={spoken.ref} />
      {props.table === false ? null : <TableView layers={layers} axis={axis} show={show} />}
    </section>
  );
}

function LayerBox({ layer }: { layer: Layer }) {
  const height = `${layerHeight(layer)}px`;
  return (
    <div class={`layer-box ${layer.kind}`}>
      {layer.label ? (
        <div class="layer-label">
          <b>{fmt.text(layer.label)}</b>
          {'note' in layer && layer.note ? <span class="dim"> {fmt.text(layer.note)}</span> : null}
          <span class="beyond" />
          <Legend layer={layer} />
        </div>
      ) : null}
      <canvas class="layer" aria-hidden="true" style={{ height }} />
    </div>
  );
}

// What a curve's picture leaves out, beside its label.
function note(root: HTMLElement, i: number, picture: CurvePicture, layers: Layer[]): void {
  const layer = layers[i];
  if (layer?.kind !== 'curve') return;
  const place = root.querySelectorAll('.layer-box')[i]?.querySelector('.beyond');
  if (!place) return;
  const bad = picture.bad ? `${fmt.plural(picture.bad, 'value')} not finite` : '';
  const texts = [bad, beyond(picture.extent, (v) => show(v, layer.unit))].filter(Boolean);
  place.textContent = texts.length ? ` ${texts.join('; ')}` : '';
}

function moveRow(p: Painter, by: number): boolean {
  const at = p.layers.findIndex((l) => l.kind === 'heat' && allRows(l).length > 0);
  const layer = p.layers[at];
  if (layer?.kind !== 'heat') return false;
  const rows = Array.from(allRows(layer));
  const now = p.hit?.layer === at && p.hit.row !== null ? rows.indexOf(p.hit.row) : by > 0 ? -1 : rows.length;
  p.hit = { layer: at, row: rows[Math.max(0, Math.min(rows.length - 1, now + by))], lane: null };
  return true;
}

function pick(p: Painter, axis: Axis, props: StackProps): void {
  const { hit } = p;
  const layer = hit ? p.layers[hit.layer] : undefined;
  if (axis.cursor === null && !hit) return;
  const x = axis.cursor ?? (axis.from + axis.to) / 2;
  if (layer?.kind === 'heat' && hit!.row !== null) layer.onRow?.(hit!.row);
  const lane = layer?.kind === 'lanes' && hit!.lane !== null ? layer.lanes[hit!.lane] : undefined;
  const span = lane ? spanAt(lane, x, ((axis.to - axis.from) / p.plot) * 6) : null;
  props.onPick?.({
    layer: hit?.layer ?? 0, x,
    ...(hit?.row != null ? { row: hit.row } : {}),
    ...(hit?.lane != null ? { lane: hit.lane } : {}),
    ...(span ? { span } : {}),
  });
}

function onWheel(root: HTMLElement, p: Painter, axis: Axis, changed: () => void): () => void {
  const wheel = (e: WheelEvent) => {
    const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY);
    // The bare wheel scrolls the page, as everywhere.
    if (!(e.ctrlKey || e.metaKey) && !(sideways && axis.zoomed)) return;
    e.preventDefault();
    const { x } = p.at(e.clientX - root.getBoundingClientRect().left, -1);
    if (sideways) axis.pan(e.deltaX / p.plot);
    else axis.zoom(Math.exp(Math.max(-200, Math.min(200, e.deltaY)) * WHEEL), x);
    changed();
  };
  root.addEventListener('wheel', wheel, { passive: false });
  return () => root.removeEventListener('wheel', wheel);
}

function pointerHandlers(
  axis: Axis, painter: { current: Painter | null }, latest: { current: StackProps }, read: () => void,
) {
  let start: number | null = null; // Where a drag began, in pixels of the root.
  let from = 0;
  const where = (e: PointerEvent) => {
    const box = (e.currentTarget as HTMLElement).getBoundingClientRect();
    const left = e.clientX - box.left;
    return { left, ...painter.current!.at(left, e.clientY - box.top) };
  };
  const follow = (hit: Hit | null) => {
    painter.current!.hit = hit;
    painter.current!.paintOver();
    read();
  };
  const end = (e: PointerEvent, take: boolean) => {
    const p = painter.current!;
    const selection = p.selection;
    p.selection = null;
    const clicked = start !== null && !selection;
    start = null;
    if (selection && take) {
      axis.show(Math.min(...selection), Math.max(...selection));
      latest.current.onZoom?.(axis.from, axis.to, 'drag');
    } else if (clicked && take) {
      const { x, hit } = where(e);
      p.hit = hit;
      axis.point(axis.kind === 'step' ? Math.round(x) : x, true);
      pick(p, axis, latest.current);
    }
    p.paintOver();
  };
  return {
    onPointerDown: (e: PointerEvent) => {
      if (e.button !== 0 || !e.isPrimary) return;
      const at = where(e);
      if (at.left < painter.current!.gutter && at.hit?.row == null) return;
      start = at.left;
      from = at.x;
    },
    onPointerMove: (e: PointerEvent) => {
      const { left, x, hit } = where(e);
      const p = painter.current!;
      if (start !== null && !(e.buttons & 1)) {
        start = null; // The button was let go where nobody told us.
        p.selection = null;
      }
      if (start !== null && Math.abs(left - start) >= DRAG_FROM) {
        if (!p.selection) (e.currentTarget as HTMLElement).setPointerCapture(e.pointerId);
        p.selection = [from, x];
      }
      if (!axis.pinned) axis.point(x);
      follow(hit);
    },
    onPointerUp: (e: PointerEvent) => end(e, true),
    onPointerCancel: (e: PointerEvent) => end(e, false),
    onPointerLeave: () => {
      if (start === null) {
        if (!axis.pinned) axis.point(null);
        follow(null);
      }
    },
    onDblClick: () => {
      axis.showAll();
      axis.point(null, false);
      latest.current.onZoom?.(axis.from, axis.to, 'drag');
    },
  };
}
