// What happened when, in lanes as trace viewers draw it, with the ledger of what is in view.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { getJob, listEvents } from '../api/calls';
import { maybe, ms, ns } from '../api/json';
import { usePoll } from '../api/poll';
import { isAbsent } from '../api/rpc';
import type { RecordedEvent } from '../api/types';
import { useKeys } from '../app/keys';
import { go, href, type Route } from '../app/route';
import type { TabProps } from '../app/screen';
import { Stack } from '../chart/stack';
import { place } from '../chart/table';
import type { Layer, Span } from '../chart/types';
import { copyText } from '../parts/copy';
import { fmt } from '../parts/format';
import { Empty, Failed, Loading, Stale } from '../parts/states';
import { DataTable } from '../parts/table';
import { Choice, one } from './choice';
import { CALM_MS, fullExtent, originOf, SOON_MS, useJobData, type JobData } from './jobdata';
import { jobFeed } from './jobfeed';
import { bucketsOf, sumsOf, timesOf, total } from './ledger';
import { Colour, sentence, Shares } from './ledger_view';
import './rows.css';
import { attemptLane, bucketTitle, ledgerLane, packed, placeOn, verdictSpans } from './spans';
import { hasOwnLane, hostLanes, kindOf, momentSpans, phaseLane } from './timeline_lanes';
import { useKept, useView, type Extent, type View } from './view';

const EVERY_MS = 10_000;
const NEWEST = 5000;
const MOST_HOST_LANES = 40;
const MOST_VERDICT_LANES = 4;
const TABLE_ROWS = 200;
const KINDS = ['time', 'step', 'elapsed'] as const;

interface Events {
  job: RecordedEvent[];
  hosts: RecordedEvent[]; // Of the agents on its hosts; empty if the caller may not read them.
}

async function fetchEvents(job: string, time: Extent | null, signal: AbortSignal): Promise<Events> {
  const within = time ? { time: { beginUnixNs: ns(time[0]), endUnixNs: ns(time[1] + 1) } } : {};
  const [own, detail] = await Promise.all([
    listEvents({ job, newest: NEWEST, ...within }, signal),
    getJob({ job, maxEntities: 4096 }, signal),
  ]);
  const hosts = new Set((detail.hosts ?? []).map((h) => h.name));
  const first = ms(detail.job?.firstSeenUnixNs) ?? 0;
  const begin = within.time?.beginUnixNs ?? ns(first);
  const agents = await listEvents({ job: 'hosts', newest: NEWEST, time: { ...within.time, beginUnixNs: begin } }, signal)
    .catch((error: unknown): RecordedEvent[] => {
      if (!isAbsent(error)) throw error;
      return []; // The job's own lanes are still worth a look.
    });
  return { job: own, hosts: agents.filter((e) => hosts.has(e.source?.host)) };
}

function layersOf(data: JobData, events: Events, kind: View['axis']['kind'], full: Extent, open: boolean): { layers: Layer[]; hosts: number } {
  const origin = originOf(data.detail);
  const place = placeOn(kind, data.detail, data.goodput, origin);
  const others = events.job.filter((e) => !hasOwnLane(e));
  const hosts = hostLanes([...events.job, ...events.hosts].sort((a, b) => (ms(a.timeUnixNs) ?? 0) - (ms(b.timeUnixNs) ?? 0)), place);
  const warnings = others.filter((e) => kindOf(e) === 'notice');
  const silent = events.hosts.filter((e) => /source_failed|agent_silent/.test(e.kind ?? ''));
  const phases: [string, string[]][] = [['checkpoints', ['checkpoint_saved', 'checkpoint_restored']], ['compile', ['compiled']], ['evaluation', ['eval_ended']]];
  const lanes = [
    attemptLane(data.detail, kind, origin),
    ...(data.goodput.spans?.length ? [ledgerLane(data.goodput, kind, place)] : []),
    ...packed('verdicts', verdictSpans(events.job, data.conditions, place, full[1]), MOST_VERDICT_LANES),
    ...phases.map(([name, ends]) => phaseLane(name, ends, events.job, place)),
    { name: 'events', spans: momentSpans(others.filter((e) => kindOf(e) !== 'notice'), place) },
    { name: 'preemption', spans: momentSpans(warnings, place) },
    { name: 'agents', spans: momentSpans(silent, place) },
  ].filter((lane, i) => i < 2 || lane.name === '' || lane.spans.length);
  const layers: Layer[] = [{ kind: 'lanes', label: 'Job', lanes }];
  if (open && hosts.length) layers.push({ kind: 'lanes', label: 'Hosts', lanes: hosts.slice(0, MOST_HOST_LANES).map((h) => h.lane), rowHeight: 16 });
  return { layers, hosts: hosts.length };
}

// The view while it changes, not only what the URL has.
function useShown(view: View): Extent {
  const [, draw] = useState(0);
  useEffect(() => {
    let last = '';
    return view.axis.on(() => {
      const now = `${view.axis.from} ${view.axis.to}`;
      if (now !== last) draw((n) => n + 1);
      last = now;
    });
  }, [view.axis]);
  return [view.axis.from, view.axis.to];
}

function InView({ data, view }: { data: JobData; view: View }) {
  const shown = useShown(view);
  const time = timesOf(view.axis.kind, shown, data.goodput, originOf(data.detail));
  if (!time) return null;
  const spans = data.goodput.spans ?? [];
  // An older collector has no spans, but the sum of all.
  const sums = spans.length || view.axis.zoomed ? sumsOf(spans, time[0], time[1]) : bucketsOf(data.goodput.total);
  const all = total(sums);
  return (
    <section class="section">
      <h2>{view.axis.zoomed ? 'In view' : 'All of it'}: {fmt.time(time[0])} to {fmt.time(time[1])} ({fmt.duration((time[1] - time[0]) / 1000)})</h2>
      {all ? (
        <>
          <p>{sentence(sums)} <button onClick={() => void copyText(location.href)}>Copy link</button></p>
          <Shares sums={sums} label="The ledger of what is in view" />
          <div class="wide" tabIndex={0}>
            <DataTable label="The ledger of what is in view" rows={sums} rowKey={(s) => s.bucket} columns={[
              { key: 'bucket', title: 'Time for', cell: (s) => <><Colour bucket={s.bucket} /> {bucketTitle(s.bucket)}</> },
              { key: 'time', title: 'Time', number: true, cell: (s) => fmt.seconds(s.seconds) },
              { key: 'share', title: 'Share', number: true, cell: (s) => fmt.percent(s.seconds / all) },
            ]} />
          </div>
        </>
      ) : <p class="dim">The ledger has nothing here.</p>}
    </section>
  );
}

function EventTable({ events }: { events: RecordedEvent[] }) {
  const rows = [...events].reverse().slice(0, TABLE_ROWS);
  if (!rows.length) return <p class="dim">Nothing was reported in this stretch of time.</p>;
  return (
    <>
      <div class="wide" tabIndex={0}>
        <DataTable label="Events, the newest first" rows={rows} rowKey={(e) => `${e.timeUnixNs} ${e.kind} ${e.source?.task} ${e.source?.host} ${e.message}`} columns={[
          { key: 'time', title: 'Time', cell: (e) => fmt.time(ms(e.timeUnixNs)) },
          { key: 'step', title: 'Step', number: true, cell: (e) => fmt.count(maybe(e.step)) },
          { key: 'kind', title: 'What', cell: (e) => fmt.text((e.kind ?? '').replace(/_/g, ' ')) },
          { key: 'who', title: 'Who', cell: (e) => fmt.text([e.source?.task === undefined ? '' : `task ${e.source.task}`, e.source?.host ?? ''].filter(Boolean).join(' on ')) },
          { key: 'message', title: 'Message', className: 'about-value', cell: (e) => fmt.text(e.message ?? '') },
        ]} />
      </div>
      {events.length > rows.length ? <p class="dim">The newest {rows.length} of {fmt.count(events.length)}; zoom in for others.</p> : null}
    </>
  );
}

function Verdicts({ data, events }: { data: JobData; events: RecordedEvent[] }) {
  const origin = originOf(data.detail);
  const end = fullExtent(data.detail, 'time')?.[1] ?? 0;
  const spans = verdictSpans(events, data.conditions, placeOn('time', data.detail, data.goodput, origin), end);
  if (!spans.length) return <p class="dim">No condition was raised.</p>;
  const zoom = (s: Span) => {
    const margin = Math.max(30_000, (s.to - s.from) * 0.2);
    return `${new Date(s.from - margin).toISOString().slice(0, 19)}Z..${new Date(s.to + margin).toISOString().slice(0, 19)}Z`;
  };
  return (
    <div class="wide" tabIndex={0}>
      <DataTable label="Verdicts" rows={spans} rowKey={(s) => `${s.from} ${s.text}`} columns={[
        { key: 'text', title: 'Verdict', cell: (s) => <a href={href({ q: { x: 'time', r: zoom(s) } })}>{fmt.text(s.text)}</a> },
        { key: 'from', title: 'From', cell: (s) => fmt.time(s.from) },
        { key: 'long', title: 'For', number: true, cell: (s) => fmt.duration((s.to - s.from) / 1000) },
        { key: 'title', title: 'Why', className: 'about-value', cell: (s) => s.title ?? '' },
      ]} />
    </div>
  );
}

function Controls({ route, kind, hosts, open }: { route: Route; kind: (typeof KINDS)[number]; hosts: number; open: boolean }) {
  return (
    <div class="bar-row">
      <Choice legend="x axis" values={KINDS} now={kind} set={(v) => go({ q: { x: v === 'time' ? '' : v, r: '', c: '' } })} />
      {hosts ? (
        <button aria-expanded={open} onClick={() => go({ q: { hosts: open ? '' : '1' } }, 'replace')}>
          {open ? '▾' : '▸'} {fmt.plural(hosts, 'host')} with events{open && hosts > MOST_HOST_LANES ? `, the first ${MOST_HOST_LANES}` : ''}
        </button>
      ) : null}
      {route.q.r ? <button onClick={() => go({ q: { r: '' } })}>Show all</button> : null}
      <span class="dim">Drag to select a stretch, or press M at both ends: its ledger is summed below. W S zoom, A D move, 0 shows all.</span>
    </div>
  );
}

// M at the cursor begins a stretch, a second M ends it: what a drag does, by keys.
function useMarkKey(view: View): number | null {
  const [begin, set] = useState<number | null>(null);
  const mark = (): void | boolean => {
    const { axis } = view;
    if (axis.cursor === null) return false;
    if (begin === null || begin === axis.cursor) return set(axis.cursor);
    set(null);
    axis.show(Math.min(begin, axis.cursor), Math.max(begin, axis.cursor));
    view.onZoom(axis.from, axis.to, 'drag');
  };
  useKeys([{ keys: 'm', help: 'Begin or end a stretch at the cursor', run: mark }]);
  return begin;
}

export function Timeline({ job, route }: TabProps) {
  const data = useJobData();
  const kind = one(route.q.x, KINDS, 'time');
  const full = fullExtent(data.detail, kind);
  // The other tabs are by step, unless the URL says otherwise.
  const view = useView(route, kind, full, { x: kind });
  const begin = useMarkKey(view);
  const time = timesOf(kind, view.range, data.goodput, originOf(data.detail));
  const what = `timeline ${job} ${kind}`;
  const polled = usePoll(`${what} ${route.q.r ?? ''}`, (signal) => fetchEvents(job, time, signal), EVERY_MS, CALM_MS);
  const nudge = useRef(polled.nudge);
  nudge.current = polled.nudge;
  useEffect(() => jobFeed.onEvent(() => nudge.current(SOON_MS)), [job]);
  const { error, stale, ageMs, reload } = polled;
  const events = useKept(polled.data, what);
  const open = route.q.hosts === '1';
  const { layers, hosts } = useMemo(
    () => (full && events ? layersOf(data, events, kind, full, open) : { layers: [], hosts: 0 }),
    [data, events, kind, open, full?.[0], full?.[1]],
  );
  if (!full) return <Empty title={kind === 'step' ? 'No steps recorded' : 'Nothing recorded'} hint="Events come from the trainer (recorder.Event), from tacho-run and from the collector." />;
  return (
    <>
      <Controls route={route} kind={kind} hosts={hosts} open={open} />
      {begin === null ? null : <p class="dim" role="status">The stretch begins at {place(view.axis, begin)}: move the cursor to its end, and press M.</p>}
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      {events && error && !polled.data ? <Failed error={error} retry={reload} /> : null}
      {events ? (
        <>
          <Stack axis={view.axis} label={`Timeline of ${job} by ${kind}`} layers={layers} onZoom={view.onZoom} />
          {events.job.length >= NEWEST ? <p class="dim">The newest {fmt.count(NEWEST)} events; zoom in for older ones.</p> : null}
        </>
      ) : error ? <Failed error={error} retry={reload} /> : <Loading height={300} label="Loading the timeline" />}
      <InView data={data} view={view} />
      {events ? <section class="section"><h2>Verdicts</h2><Verdicts data={data} events={events.job} /></section> : null}
      {events ? <section class="section"><h2>Events</h2><EventTable events={events.job.filter((e) => !/^condition_/.test(e.kind ?? ''))} /></section> : null}
    </>
  );
}
