// One metric as a chart: small in the grid, or as wide as the page with everything that can be done
// with it. It asks only while it is in view, and keeps its old picture until the new one is there.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Metric } from '../api/types';
import { fmt } from '../parts/format';
import { Stack } from '../chart/stack';
import { lowerBound } from '../chart/fold';
import { useRangeInView } from '../chart/in_view';
import { curveGrid, csv } from '../chart/csv';
import { Swatch, useDark } from '../chart/legend';
import type { Curve, CurveLayer, Mark, YMode } from '../chart/types';
import { picture } from '../chart/picture';
import { copyText, download, downloadBlob } from '../parts/copy';
import { Failed, Loading, Stale } from '../parts/states';
import { python, tachoctl } from './copyas';
import { useCurves } from './livecurves';
import { MOST_CURVES, type CurveRequest } from './series';
import type { View } from './view';

export interface PanelProps {
  request: CurveRequest; // Its points and `raw` are the panel's.
  info: Metric;
  view: View;
  y: YMode;
  smoothing: number;
  marks: Mark[];
  lastStep: number; // Of the job.
}

const HEIGHT = 130;
const FULL_HEIGHT = 340;

// Whether the element is in view, or nearly. Without layout it is not.
export function useInView() {
  const ref = useRef<HTMLDivElement>(null);
  const [seen, set] = useState(false);
  useEffect(() => {
    const watch = new IntersectionObserver((entries) => set(entries[entries.length - 1].isIntersecting), {
      rootMargin: '200px 0px',
    });
    if (ref.current) watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return { ref, seen };
}

function layerOf(props: PanelProps, found: Curve[], height: number): CurveLayer {
  const { info, y, smoothing, marks } = props;
  return { kind: 'curve', label: '', height, curves: found, y, smoothing, unit: info.unit ?? '', marks };
}

export function newest(found: Curve[]): number | null {
  const curve = found.find((c) => !c.faint && c.mid.length);
  return curve ? curve.mid[curve.mid.length - 1] : null;
}

export function Panel(props: PanelProps & { pinned: boolean; onPin: () => void; onEarlier?: () => void; onOpen: () => void }) {
  const { request, info, view } = props;
  const { ref, seen } = useInView();
  const polled = useCurves(request, seen, props.lastStep);
  const found = polled.kept;
  const layers = useMemo(
    () => (found ? [layerOf(props, found, HEIGHT)] : []),
    [found, props.y, props.smoothing, props.marks],
  );
  const name = info.name ?? '';
  const last = found ? newest(found) : null;
  const bad = found?.some((c) => c.bad?.some((n) => n > 0));
  return (
    <div class={polled.stale ? 'metric-panel old' : 'metric-panel'} ref={ref} data-metric={name}>
      <h3>
        <button class="plain name" onClick={props.onOpen} title={info.help}>{fmt.text(name)}</button>
        <span class="dim value">{last === null ? '' : fmt.value(last, info.unit)}{bad ? <span class="bad-word"> not finite</span> : null}</span>
        {props.onEarlier ? <button class="plain" aria-label={`Move ${name} forward`} title="Move forward" onClick={props.onEarlier}>◂</button> : null}
        <button class="plain" aria-pressed={props.pinned} aria-label={`Pin ${name}`} onClick={props.onPin}>
          {props.pinned ? '★' : '☆'}
        </button>
      </h3>
      {found ? (
        found.length ? (
          <Stack axis={view.axis} label={name} layers={layers} onZoom={view.onZoom} table={false} gutter={66} hint={'\u00a0'} />
        ) : (
          <p class="dim">No samples here.</p>
        )
      ) : polled.error ? (
        <Failed error={polled.error} retry={polled.reload} />
      ) : (
        <Loading height={HEIGHT + 40} label={name} />
      )}
    </div>
  );
}

interface Figures {
  last: number;
  low: number;
  high: number;
  bad: number;
}

// Of what is in view; the extremes are those of the band.
export function figures(c: Curve, from: number, to: number): Figures {
  const out = { last: NaN, low: Infinity, high: -Infinity, bad: 0 };
  for (let i = lowerBound(c.x, from); i < c.x.length && c.x[i] <= to; i++) {
    const [low, high] = [(c.low ?? c.mid)[i], (c.high ?? c.mid)[i]];
    if (Number.isFinite(low)) out.low = Math.min(out.low, low);
    if (Number.isFinite(high)) out.high = Math.max(out.high, high);
    if (c.bad) out.bad += c.bad[i];
    out.last = c.mid[i];
  }
  return out;
}

function FigureTable({ found, view, unit }: { found: Curve[]; view: View; unit: string }) {
  const dark = useDark();
  useRangeInView(view.axis);
  const cell = (v: number) => (Number.isFinite(v) ? fmt.value(v, unit) : Number.isNaN(v) ? 'NaN' : '–');
  return (
    <div class="figures" tabIndex={0} role="region" aria-label="Figures">
      <table class="data" aria-label="Figures of what is in view">
        <thead>
          <tr><th scope="col">Curve</th>{['Last', 'Lowest', 'Highest', 'Not finite'].map((h) => <th key={h} scope="col" class="n">{h}</th>)}</tr>
        </thead>
        <tbody>
          {found.map((c) => {
            const f = figures(c, view.axis.from, view.axis.to);
            return (
              <tr key={c.name}>
                <th scope="row">{c.faint ? null : <Swatch colour={c.colour} dash={c.dash ?? 0} dark={dark} />} {fmt.text(c.name)}{c.faint ? <span class="dim"> superseded: thin, dashed</span> : null}</th>
                <td class="n">{cell(f.last)}</td><td class="n">{cell(f.low)}</td><td class="n">{cell(f.high)}</td><td class="n">{fmt.count(f.bad)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

const fileName = (r: CurveRequest) => `${r.job}-${r.metric}`.replace(/[^\w.-]+/g, '_');

function savePicture(name: string): void {
  const root = document.querySelector<HTMLElement>('.metric-panel.full .stack');
  picture(root!).toBlob((blob) => blob && downloadBlob(name, blob));
}

function CopyBar({ props, found }: { props: PanelProps; found: Curve[] }) {
  const { request, view } = props;
  const text = () => csv(curveGrid(found, view.axis.from, view.axis.to, request.kind));
  const range = view.axis.zoomed ? ([view.axis.from, view.axis.to] as [number, number]) : null;
  const shown = { ...request, range };
  return (
    <p class="actions copy-bar">
      <span class="dim">Copy as</span>
      <button onClick={() => void copyText(text())}>CSV</button>
      <button onClick={() => void copyText(tachoctl(shown))}>tachoctl</button>
      <button onClick={() => void copyText(python(shown))}>Python</button>
      <button onClick={() => savePicture(`${fileName(request)}.png`)}>Save PNG</button>
      <button onClick={() => download(`${fileName(request)}.csv`, text())}>Save CSV</button>
    </p>
  );
}

export function FullPanel(props: PanelProps & { onClose: () => void; onRaw: () => void }) {
  const { request, info, view } = props;
  const polled = useCurves(request, true, props.lastStep);
  const found = polled.kept;
  const layers = useMemo(
    () => (found ? [{ ...layerOf(props, found, FULL_HEIGHT), label: info.name ?? '', note: info.help }] : []),
    [found, props.y, props.smoothing, props.marks],
  );
  const name = info.name ?? '';
  return (
    <section class="metric-panel full" aria-label={name}>
      <p class="actions">
        <button onClick={props.onClose}>◂ All metrics</button>
        <button aria-pressed={request.raw} onClick={props.onRaw}>Every sample</button>
        {request.raw ? <span class="dim">as recorded, of what is in view</span> : null}
      </p>
      {polled.error && !polled.data ? <Failed error={polled.error} retry={polled.reload} /> : null}
      {polled.stale ? <Stale ageMs={polled.ageMs} error={polled.error} /> : null}
      {found ? <Stack axis={view.axis} label={name} layers={layers} onZoom={view.onZoom} /> : polled.error ? null : <Loading height={FULL_HEIGHT + 60} />}
      {found && found.length >= MOST_CURVES ? <p class="dim">The first {MOST_CURVES} are shown. The Tasks view shows all of them at once.</p> : null}
      {found ? <FigureTable found={found} view={view} unit={info.unit ?? ''} /> : null}
      {found ? <CopyBar props={props} found={found} /> : null}
    </section>
  );
}
