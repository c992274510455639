// The map of stragglers: tasks, or the chips of their hosts, against steps or time. A row is a bad
// host, a block a rack, a column a checkpoint or the network, a comb something periodic.
import { useEffect, useMemo } from 'preact/hooks';
import { getJob, matrix } from '../api/calls';
import { maybe } from '../api/json';
import { usePoll } from '../api/poll';
import type { MatrixRequest, Metric } from '../api/types';
import { useKeys } from '../app/keys';
import { go, href, type Route } from '../app/route';
import type { TabProps } from '../app/screen';
import { Axis } from '../chart/axis';
import { matrixRowName } from '../chart/heat';
import { Stack } from '../chart/stack';
import type { Layer, MatrixData } from '../chart/types';
import { fmt } from '../parts/format';
import { pattern } from '../parts/pattern';
import { Empty, Failed, Loading, Stale } from '../parts/states';
import { DataTable } from '../parts/table';
import { Choice, MetricChoice, one } from './choice';
import { workMetric } from './groups';
import { mapLayers, standsOut, type Colour } from './heatmap';
import { CHIP_METRICS, HOST_METRICS, HostCharts } from './hostcharts';
import { fullExtent, originOf, useJobData, type JobData } from './jobdata';
import { byInterest, chipMetrics, lowIsBad, ordered, since, type Order } from './matrixrows';
import { timesOf } from './ledger';
import './rows.css';
import { within } from './series';
import { axisKind, useView, type Extent, type View } from './view';

const EVERY_MS = 10_000;
const HOSTS_EVERY_MS = 60_000;
const COLUMNS = 500;
const MOST_HOSTS = 4096;
const ORDERS: readonly Order[] = ['worst', 'task', 'host'];
const COLOURS: readonly Colour[] = ['ratio', 'raw', 'late'];
const TABLE_ROWS = 20;

interface Shown {
  job: string;
  metric: string;
  chips: boolean; // A metric of chips of the job's hosts.
  kind: 'step' | 'time' | 'elapsed';
  info: Metric | undefined;
}

// Chips know no steps, and elapsed time is the page's own idea.
function shownOf(job: string, route: Route, data: JobData): Shown {
  const names = (data.detail.metrics ?? []).map((m) => m.name ?? '');
  const metric = route.q.m || workMetric(names) || names[0] || '';
  const info = data.detail.metrics?.find((m) => m.name === metric);
  const chips = !info && metric.startsWith('chip_');
  const kind = axisKind(route);
  return { job, metric, chips, kind: chips && kind === 'step' ? 'time' : kind, info };
}

export function requestOf(s: Shown, range: Extent | null, full: Extent | null, origin: number, hosts: string[]): MatrixRequest {
  const byStep = s.kind === 'step';
  const escaped = hosts.map((h) => h.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return {
    selector: {
      job: s.chips ? 'hosts' : s.job, metrics: [s.metric],
      ...(s.chips ? { matchers: [{ label: 'host', op: 'OP_MATCHES', value: escaped.join('|') }] } : {}),
    },
    rows: s.chips ? 'chip' : 'task',
    axis: byStep ? 'AXIS_STEP' : 'AXIS_TIME',
    maxColumns: COLUMNS,
    // The worst of a cell must not vanish: the lowest where low is bad.
    value: lowIsBad(s.metric) ? 'BUCKET_VALUE_MIN' : 'BUCKET_VALUE_MAX',
    ...(s.chips ? {} : { attempts: 'ATTEMPTS_EFFECTIVE' as const }),
    ...(!byStep && /_total$/.test(s.metric) ? { counter: 'COUNTER_FUNCTION_RATE' as const } : {}),
    // Hosts live longer than the job.
    ...within({ range: range ?? (s.chips ? full : null), kind: s.kind, origin }),
  };
}

// What a map is known by: see View.range.
export function mapKey(s: Shown, link: string | undefined, hosts: number): string {
  return s.metric && (!s.chips || hosts) ? `${s.job} ${s.metric} ${s.kind} ${link ?? ''} ${hosts}` : '';
}

function elapsed(m: MatrixData, kind: string, origin: number): MatrixData {
  return kind === 'elapsed' ? { ...m, first: (m.first - origin) / 1000, width: m.width / 1000 } : m;
}

function useHosts(job: string, wanted: boolean): string[] {
  const fetch = (signal: AbortSignal) => getJob({ job, maxEntities: MOST_HOSTS }, signal);
  const { data } = usePoll(wanted ? `hosts of ${job}` : '', fetch, HOSTS_EVERY_MS);
  return (data?.hosts ?? []).map((h) => h.name ?? '');
}

function useHostMetrics(): string[] {
  const { data } = usePoll('metrics of hosts', (signal) => getJob({ job: 'hosts', maxEntities: 1 }, signal), 0);
  return chipMetrics((data?.metrics ?? []).map((m) => m.name ?? ''));
}

// A row as the URL names it: the number of a task, or HOST/CHIP.
const rowKey = (r: MatrixData['rows'][number]): string => (r.task !== null ? String(r.task) : `${r.host}/${r.chip}`);

function Bar({ route, shown, data, chips, rows, total }: {
  route: Route; shown: Shown; data: JobData; chips: string[]; rows: number; total: number;
}) {
  const names = byInterest((data.detail.metrics ?? []).map((m) => m.name ?? ''));
  const set = (key: string, usual: string) => (value: string) => go({ q: { [key]: value === usual ? '' : value } }, 'replace');
  return (
    <div class="bar-row">
      <MetricChoice now={shown.metric} set={(m) => go({ q: { m, row: '', r: shown.chips === m.startsWith('chip_') ? (route.q.r ?? '') : '' } })}
        groups={[{ title: 'Of the tasks', names }, { title: 'Of the chips on its hosts', names: chips }]} />
      <Choice legend="colour" values={COLOURS} now={one(route.q.col, COLOURS, 'ratio')} set={set('col', 'ratio')} words={{ late: 'lateness' }} />
      <Choice legend="order" values={ORDERS} now={one(route.q.order, ORDERS, 'worst')} set={set('order', 'worst')} />
      <label>host <input type="search" size={14} value={route.q.host ?? ''} placeholder="rack7-.*" aria-label="Only hosts that match a pattern"
        onInput={(e) => set('host', '')(e.currentTarget.value)} /></label>
      <span class="dim">{fmt.count(rows)} of {fmt.plural(total, 'row')}</span>
      {route.q.r ? <button onClick={() => go({ q: { r: '' } })}>Show all</button> : null}
    </div>
  );
}

export function Tasks({ job, route }: TabProps) {
  const data = useJobData();
  const shown = shownOf(job, route, data);
  const origin = originOf(data.detail);
  const full = fullExtent(data.detail, shown.kind);
  const view = useView(route, shown.kind, full);
  const chips = useHostMetrics();
  const hosts = useHosts(job, shown.chips);
  const polled = usePoll(mapKey(shown, route.q.r, hosts.length), (signal) => matrix(requestOf(shown, view.range, full, origin, hosts), signal), EVERY_MS);
  const found = useMemo(() => (polled.data ? elapsed(polled.data, shown.kind, origin) : null), [polled.data, shown.kind]);
  const test = useMemo(() => {
    const accepts = pattern(route.q.host ?? '');
    return (row: MatrixData['rows'][number]) => accepts(row.host);
  }, [route.q.host]);
  if (!shown.metric || !full) {
    return <Empty title={full ? 'No metrics recorded' : 'No steps recorded'} hint="The trainer records its own work of each step: recorder.Log(step, {{&quot;compute_seconds&quot;, s}}), docs/notation.md." />;
  }
  const visible = found ? ordered(found, 'task', false, test).length : 0;
  return (
    <>
      <Bar route={route} shown={shown} data={data} chips={chips} rows={visible} total={found?.rowsTotal ?? 0} />
      {polled.error && !found ? <Failed error={polled.error} retry={polled.reload} /> : null}
      {polled.stale ? <Stale ageMs={polled.ageMs} error={polled.error} /> : null}
      {found ? <Map route={route} shown={shown} data={data} found={found} test={test} view={view} /> : polled.error ? null : <Loading height={420} label="Loading the map" />}
    </>
  );
}

interface MapProps {
  route: Route;
  shown: Shown;
  data: JobData;
  found: MatrixData;
  test: (row: MatrixData['rows'][number]) => boolean;
  view: View;
}

function Map({ route, shown, data, found, test, view }: MapProps) {
  const low = lowIsBad(shown.metric);
  const selected = found.rows.findIndex((r) => rowKey(r) === route.q.row);
  const select = (row: number) => go({ q: { row: row === selected ? '' : rowKey(found.rows[row]) } }, 'replace');
  const colour = one(route.q.col, COLOURS, 'ratio');
  const order = one(route.q.order, ORDERS, 'worst');
  const { layers, worst } = useMemo(() => mapLayers({
    matrix: found, metric: shown.metric, colour, low, order, test, selected: selected < 0 ? null : selected,
    name: (i) => matrixRowName(found, i), onRow: select, noun: shown.chips ? 'chip' : 'task',
  }), [found, colour, order, test, selected]);
  const step = (by: number) => {
    const rows = Array.from(ordered(found, order, low, test));
    if (!rows.length) return;
    const at = rows.indexOf(selected);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))];
    go({ q: { row: rowKey(found.rows[next]) } }, 'replace');
  };
  useKeys([
    { keys: 'j', help: 'Next row', run: () => step(1) },
    { keys: 'k', help: 'Row before', run: () => step(-1) },
    { keys: 'Escape', help: 'Close the row', run: () => (selected < 0 ? false : go({ q: { row: '' } }, 'replace')) },
  ]);
  if (!layers.length) {
    return found.rows.length
      ? <Empty title={`No host matches “${fmt.text(route.q.host ?? '')}”`} hint={`The map has ${fmt.plural(found.rows.length, 'row')}.`} />
      : <Empty title={`Nothing of ${fmt.text(shown.metric)} here`} hint="Choose another metric, or show all of the job." />;
  }
  return (
    <>
      <Stack axis={view.axis} label={`${shown.metric} of each ${shown.chips ? 'chip' : 'task'} by ${shown.kind}`} layers={layers}
        onZoom={view.onZoom} hint="Point at a row, click it for its own chart; j and k go through the rows" />
      {selected >= 0 ? <RowDetail found={found} row={selected} shown={shown} data={data} view={view} link={route.q.r ?? ''} /> : null}
      <WorstTable found={found} worst={worst} shown={shown} low={low} />
    </>
  );
}

// The row on the band of its peers, from the cells of the map.
function detailLayer(m: MatrixData, row: number, metric: string): Layer {
  const x = Float64Array.from(m.median, (_, i) => m.first + (i + 0.5) * m.width);
  const own = Float64Array.from(m.values.subarray(row * m.columns, (row + 1) * m.columns));
  const bad = new Uint32Array(m.columns);
  for (const cell of m.nonFinite) if (Math.floor(cell / m.columns) === row) bad[cell % m.columns]++;
  return {
    kind: 'curve', label: metric, note: 'the row, and the median of all with the band from lowest to highest', height: 150, y: 'robust', unit: m.metric.unit,
    curves: [
      { name: 'median of all', colour: 0, x, mid: Float64Array.from(m.median), low: Float64Array.from(m.low), high: Float64Array.from(m.high) },
      { name: matrixRowName(m, row), colour: 1, x, mid: own, bad },
    ],
  };
}

// Of the others, the one that is most like the median.
function typical(m: MatrixData, row: number): number | null {
  let best: number | null = null;
  m.rows.forEach((r, i) => {
    if (i === row || !Number.isFinite(r.score) || r.task === null) return;
    if (best === null || Math.abs(r.score - 1) < Math.abs(m.rows[best].score - 1)) best = i;
  });
  return best;
}

function RowDetail({ found, row, shown, data, view, link }: {
  found: MatrixData; row: number; shown: Shown; data: JobData; view: View; link: string;
}) {
  const r = found.rows[row];
  const layers = useMemo(() => [detailLayer(found, row, shown.metric)], [found, row]);
  const peer = typical(found, row);
  const charts = (t: string) => href({ tab: 'metrics', q: { by: 'task', t, full: shown.metric } });
  return (
    <section class="row-detail" aria-label={matrixRowName(found, row)}>
      <h2>{r.task === null ? fmt.text(matrixRowName(found, row)) : `Task ${r.task} on ${fmt.text(r.host)}`}</h2>
      <p class="actions">
        {r.task === null ? null : <a href={charts(String(r.task))}>Its own charts</a>}
        {r.task === null || peer === null ? null : <a href={charts(`${r.task},${found.rows[peer].task}`)}>Compare with task {found.rows[peer].task}, which is like the median</a>}
        {r.host ? <a href={href({ screen: 'host', name: r.host, q: r.chip ? { chip: r.chip } : {} })}>Host {fmt.text(r.host)}</a> : null}
        <button onClick={() => go({ q: { row: '' } }, 'replace')}>Close</button>
      </p>
      <Stack axis={view.axis} label={`${shown.metric} of ${matrixRowName(found, row)}`} layers={layers} onZoom={view.onZoom} />
      {r.host ? <HostNow host={r.host} shown={shown} data={data} view={view} link={link} /> : null}
    </section>
  );
}

// The host's signals in the time that is in view.
function HostNow({ host, shown, data, view, link }: { host: string; shown: Shown; data: JobData; view: View; link: string }) {
  const time = timesOf(shown.kind, view.range ?? fullExtent(data.detail, shown.kind), data.goodput, originOf(data.detail));
  // An axis of its own, which the URL knows nothing of.
  const axis = useMemo(() => new Axis('time', time ?? [0, 1]), []);
  useEffect(() => {
    if (time) axis.setFull(...time);
  }, [time?.[0], time?.[1]]);
  if (!time) return null;
  return (
    <>
      <h3 class="section">{fmt.text(host)} from {fmt.time(time[0])} to {fmt.time(time[1])}</h3>
      <HostCharts host={host} time={time} link={`${shown.kind} ${link}`} axis={axis} metrics={[...CHIP_METRICS.slice(0, 3), HOST_METRICS[0]]} />
    </>
  );
}

function WorstTable({ found, worst, shown, low }: { found: MatrixData; worst: Int32Array; shown: Shown; low: boolean }) {
  const rows = Array.from(worst).slice(0, TABLE_ROWS);
  const at = (row: number): string => {
    const x = since(found, row, low);
    if (x === null) return '–';
    return shown.kind === 'step' ? `step ${fmt.count(x)}` : shown.kind === 'time' ? fmt.time(x) : fmt.duration(x);
  };
  return (
    <section class="section wide" tabIndex={0}>
      <h2>Worst {shown.chips ? 'chips' : 'tasks'}</h2>
      <DataTable label="Rows that stand out most" rows={rows} rowKey={(i) => rowKey(found.rows[i])} columns={[
        { key: 'row', title: shown.chips ? 'Chip' : 'Task', cell: (i) => (
          <a href={href({ q: { row: rowKey(found.rows[i]) } })}>{fmt.text(shown.chips ? `${found.rows[i].host} chip ${found.rows[i].chip}` : String(found.rows[i].task))}</a>
        ) },
        { key: 'host', title: 'Host', cell: (i) => <a href={href({ screen: 'host', name: found.rows[i].host })}>{fmt.text(found.rows[i].host)}</a> },
        { key: 'score', title: 'On average', number: true, cell: (i) => standsOut(found, i, low) },
        { key: 'since', title: 'Stands out since', cell: (i) => at(i) },
        { key: 'holes', title: 'Without a row', number: true, hint: 'Columns within its life that have no sample', cell: (i) => fmt.count(found.rows[i].holes) },
        { key: 'nan', title: 'Not finite', number: true, cell: (i) => fmt.count(maybe(found.rows[i].nonFinite)) },
      ]} />
    </section>
  );
}
