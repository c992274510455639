// All metrics of a job as small charts on one axis: found by a pattern, pinned, in groups.
import { useMemo, useState } from 'preact/hooks';
import { num } from '../api/json';
import type { Metric } from '../api/types';
import { useKeys } from '../app/keys';
import { go, type Route } from '../app/route';
import type { TabProps } from '../app/screen';
import { fmt } from '../parts/format';
import { pattern } from '../parts/pattern';
import { Empty } from '../parts/states';
import { one } from './choice';
import { GROUP_ORDER, groupOf } from './groups';
import { fullExtent, originOf, supersededOf, useEvents, useJobData, type JobData } from './jobdata';
import { Tools, y, useYKeys } from './overview';
import { FullPanel, Panel, type PanelProps } from './panel';
import { MOST_CURVES, type AttemptMode, type CurveRequest, type Fold } from './series';
import { eventLane, marksOf, placeOn } from './spans';
import { axisKind, useView, type Extent, type View } from './view';
import './metrics.css';

const POINTS = 400; // Of a small chart; the wide one has more.
const FULL_POINTS = 1500;
const OPEN_GROUPS = 24; // Metrics of a group that are shown without asking for more.

const FOLDS: [Fold, string][] = [['band', 'mean + band'], ['task', 'by task'], ['host', 'by host']];
const ATTEMPTS: AttemptMode[] = ['effective', 'all', 'latest'];

// Lists in the URL: a comma within a name is escaped once more.
export function pinsOf(route: Route): string[] {
  return (route.q.m ?? '').split(',').filter(Boolean).map((name) => name.replace(/%2C/g, ',').replace(/%25/g, '%'));
}

export function pinsText(names: string[]): string {
  return names.map((name) => name.replace(/%/g, '%25').replace(/,/g, '%2C')).join(',');
}

function requestOf(route: Route, data: JobData, view: View): Omit<CurveRequest, 'metric'> {
  const kind = axisKind(route);
  const by = one(route.q.by, ['band', 'task', 'host'] as const, 'band');
  return {
    job: data.detail.job?.name ?? '', kind, range: view.range, link: route.q.r ?? '', origin: originOf(data.detail), by,
    tasks: (route.q.t ?? '').split(',').filter((t) => /^\d+$/.test(t)),
    attempts: one(route.q.at, ATTEMPTS, 'effective'),
    superseded: supersededOf(data.detail), points: POINTS, raw: false,
  };
}

function Bar({ route, data, view, full }: { route: Route; data: JobData; view: View; full: Extent }) {
  const by = one(route.q.by, ['band', 'task', 'host'] as const, 'band');
  const at = one(route.q.at, ATTEMPTS, 'effective');
  const tasks = data.detail.job?.tasks ?? 0;
  const set = (key: string, value: string, usual: string) => go({ q: { [key]: value === usual ? '' : value } }, 'replace');
  return (
    <div class="metrics-bar">
      <label>Find <input type="search" id="find-metric" value={route.q.q ?? ''} placeholder="grad.*" aria-label="Find metrics by a pattern"
        onInput={(e) => set('q', e.currentTarget.value, '')} /></label>
      <fieldset class="choice"><legend>fold</legend>
        {FOLDS.map(([fold, word]) => <button key={fold} aria-pressed={fold === by} onClick={() => set('by', fold, 'band')}>{word}</button>)}
      </fieldset>
      {by === 'task' && tasks > MOST_CURVES ? (
        <label>tasks <input size={8} value={route.q.t ?? ''} placeholder="3,417" aria-label="Numbers of tasks to show"
          onChange={(e) => set('t', e.currentTarget.value.replace(/\s+/g, ''), '')} /></label>
      ) : null}
      {(data.detail.job?.attempts ?? 1) > 1 ? (
        <fieldset class="choice"><legend>attempts</legend>
          {ATTEMPTS.map((mode) => <button key={mode} aria-pressed={mode === at} onClick={() => set('at', mode, 'effective')}>{mode}</button>)}
        </fieldset>
      ) : null}
      <label class="smooth">smoothing <input type="range" min="0" max="0.99" step="0.01" value={route.q.sm ?? '0'}
        onInput={(e) => set('sm', e.currentTarget.value, '0')} /> <output>{route.q.sm ?? 'off'}</output></label>
      <Tools view={view} route={route} full={full} />
    </div>
  );
}

interface GridProps {
  metrics: Metric[];
  pins: string[];
  panel: (info: Metric) => PanelProps;
}

function togglePin(pins: string[], name: string): void {
  const next = pins.includes(name) ? pins.filter((p) => p !== name) : [...pins, name];
  go({ q: { m: pinsText(next) } }, 'replace');
}

// A place earlier among the pinned ones.
export function earlier(pins: string[], name: string): string[] {
  const at = pins.indexOf(name);
  return at < 1 ? pins : [...pins.slice(0, at - 1), name, pins[at - 1], ...pins.slice(at + 1)];
}

function Group({ title, metrics, pins, panel }: GridProps & { title: string }) {
  const [shown, setShown] = useState(OPEN_GROUPS);
  const [open, setOpen] = useState(true);
  return (
    <section class="metric-group">
      <h2>
        <button class="plain" aria-expanded={open} onClick={() => setOpen(!open)}>
          <span aria-hidden="true">{open ? '▾' : '▸'}</span> {title} <span class="dim">{metrics.length}</span>
        </button>
      </h2>
      {open ? (
        <div class="metric-panels">
          {metrics.slice(0, shown).map((info) => {
            const name = info.name ?? '';
            return (
              <Panel key={name} {...panel(info)} pinned={pins.includes(name)}
                onPin={() => togglePin(pins, name)}
                onEarlier={pins.indexOf(name) > 0 ? () => go({ q: { m: pinsText(earlier(pins, name)) } }, 'replace') : undefined}
                onOpen={() => go({ q: { full: name } })} />
            );
          })}
        </div>
      ) : null}
      {open && metrics.length > shown ? (
        <button onClick={() => setShown(shown + OPEN_GROUPS)}>{metrics.length - shown} more</button>
      ) : null}
    </section>
  );
}

function Grid({ metrics, pins, panel }: GridProps) {
  const groups = new Map<string, Metric[]>();
  const known = new Map(metrics.map((m) => [m.name ?? '', m]));
  const pinned = pins.flatMap((name) => known.get(name) ?? []);
  if (pinned.length) groups.set('Pinned', pinned);
  for (const metric of metrics) {
    if (pins.includes(metric.name ?? '')) continue;
    const group = groupOf(metric.name ?? '');
    groups.set(group, [...(groups.get(group) ?? []), metric]);
  }
  const place = (title: string) => (GROUP_ORDER.includes(title) ? GROUP_ORDER.indexOf(title) : title === 'Other' ? 99 : 50);
  const order = [...groups].sort(([a], [b]) => place(a) - place(b) || a.localeCompare(b));
  return <>{order.map(([title, mine]) => <Group key={title} title={title} metrics={mine} pins={pins} panel={panel} />)}</>;
}

export function Metrics({ job, route }: TabProps) {
  const data = useJobData();
  const kind = axisKind(route);
  const full = fullExtent(data.detail, kind);
  const view = useView(route, kind, full);
  const { data: events } = useEvents(job);
  const marks = useMemo(
    () => marksOf(eventLane(events ?? [], placeOn(kind, data.detail, data.goodput, originOf(data.detail)))),
    [events, kind],
  );
  useYKeys(route);
  useKeys([
    { keys: 'Escape', help: 'Back to all metrics', run: () => (route.q.full ? go({ q: { full: '', raw: '' } }) : false) },
    { keys: 'f', help: 'Find a metric', run: () => document.getElementById('find-metric')?.focus() },
  ]);
  const all = data.detail.metrics ?? [];
  if (!all.length || !full) {
    return <Empty title="No metrics recorded along this axis" hint="The trainer records them with recorder.Log(); docs/notation.md has the names that conditions understand." />;
  }
  const base = requestOf(route, data, view);
  const smoothing = Math.min(0.99, Math.max(0, num(route.q.sm)));
  const panel = (info: Metric): PanelProps => ({
    request: { ...base, metric: info.name ?? '' }, info, view, y: y(route), smoothing, marks, lastStep: num(data.detail.job?.lastStep),
  });
  const open = all.find((m) => m.name === route.q.full);
  const wanted = pattern(route.q.q ?? '');
  const found = all.filter((m) => wanted(m.name ?? ''));
  const wide = open ? panel(open) : null;
  return (
    <>
      <Bar route={route} data={data} view={view} full={full} />
      {wide ? (
        <FullPanel key={route.q.full} {...wide} request={{ ...wide.request, points: FULL_POINTS, raw: route.q.raw === '1' }}
          onClose={() => go({ q: { full: '', raw: '' } })} onRaw={() => go({ q: { raw: route.q.raw ? '' : '1' } }, 'replace')} />
      ) : found.length ? (
        <Grid metrics={found} pins={pinsOf(route)} panel={panel} />
      ) : (
        <Empty title={`No metric matches “${fmt.text(route.q.q ?? '')}”`} hint={`The job has ${fmt.plural(all.length, 'metric')}.`} />
      )}
    </>
  );
}
