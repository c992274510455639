// All hosts against time by one metric, the worst first, and what each of them does.
import { useMemo } from 'preact/hooks';
import { matrix } from '../api/calls';
import { ns } from '../api/json';
import { usePoll } from '../api/poll';
import type { MatrixRequest } from '../api/types';
import { go, href, type Route } from '../app/route';
import type { ScreenProps } from '../app/screen';
import { Stack } from '../chart/stack';
import type { MatrixData } from '../chart/types';
import { fmt } from '../parts/format';
import { pattern } from '../parts/pattern';
import { Empty, Failed, Loading, Stale } from '../parts/states';
import { DataTable } from '../parts/table';
import { severityOf, Sign, verdictRoute } from '../parts/verdict';
import { Choice, MetricChoice, one } from './choice';
import { mapLayers, standsOut, type Colour } from './heatmap';
import { leftOutText, useHostUse, weight, type HostUse } from './hostjobs';
import { badness, chipMetrics, lowIsBad, ordered, ranges, type Order } from './matrixrows';
import './rows.css';
import { LASTS, spanOf, useHostsJob } from './span_choice';
import { useView, type Extent } from './view';

const EVERY_MS = 15_000;
const COLUMNS = 400;
const COLOURS: readonly Colour[] = ['ratio', 'raw', 'late'];
const ORDERS: readonly Order[] = ['worst', 'host'];

export function hostMetricChoice(names: string[]): { title: string; names: string[] }[] {
  return [
    { title: 'Of chips', names: chipMetrics(names) },
    { title: 'Of hosts', names: names.filter((n) => /^host_/.test(n)) },
    { title: 'Of agents', names: names.filter((n) => /^tacho_agent_/.test(n)) },
  ];
}

export function hostsRequest(metric: string, time: Extent, rows: 'host' | 'chip', host = ''): MatrixRequest {
  return {
    selector: { job: 'hosts', metrics: [metric], ...(host ? { matchers: [{ label: 'host', op: 'OP_EQUAL', value: host }] } : {}) },
    rows, axis: 'AXIS_TIME', maxColumns: COLUMNS, value: lowIsBad(metric) ? 'BUCKET_VALUE_MIN' : 'BUCKET_VALUE_MAX',
    time: { beginUnixNs: ns(time[0]), endUnixNs: ns(time[1]) },
    ...(/_total$/.test(metric) ? { counter: 'COUNTER_FUNCTION_RATE' as const } : {}),
  };
}

interface HostRow {
  host: string;
  row: number; // Of the matrix; -1: not in it.
}

function Jobs({ use, host }: { use: HostUse | null; host: string }) {
  const served = use?.served.get(host)?.filter((s) => s.running) ?? [];
  return (
    <>
      {served.map((s, i) => <span key={s.job}>{i ? ', ' : ''}<a href={href({ screen: 'job', name: s.job, tab: 'tasks' })}>{fmt.text(s.job)}</a> {ranges(s.tasks)}</span>)}
      {use && !served.length ? <span class="dim">{use.leftOut ? 'not known' : 'idle'}</span> : null}
    </>
  );
}

function Why({ use, host }: { use: HostUse | null; host: string }) {
  return (
    <>
      {(use?.conditions.get(host) ?? []).slice(0, 2).map((c) => (
        <div key={`${c.job} ${c.condition}`}>
          <a href={href(verdictRoute(c, true))}><Sign severity={severityOf(c.severity)}>{c.condition}</Sign></a> {fmt.text(c.message ?? '')}
        </div>
      ))}
    </>
  );
}

function HostTable({ rows, found, use, low }: { rows: HostRow[]; found: MatrixData; use: HostUse | null; low: boolean }) {
  return (
    <div class="wide section" tabIndex={0}>
      <DataTable label="Hosts, the worst first" rows={rows} rowKey={(r) => r.host} virtual={rows.length > 100} rowHeight={34} columns={[
        { key: 'host', title: 'Host', cell: (r) => <a href={href({ screen: 'host', name: r.host })}>{fmt.text(r.host)}</a> },
        { key: 'jobs', title: 'Jobs and tasks', cell: (r) => <Jobs use={use} host={r.host} /> },
        { key: 'score', title: `${found.metric.name}, on average`, number: true, cell: (r) => (r.row < 0 ? '–' : standsOut(found, r.row, low)) },
        { key: 'holes', title: 'Without a row', number: true, hint: 'Columns within its life that have no sample', cell: (r) => (r.row < 0 ? '–' : fmt.count(found.rows[r.row].holes)) },
        { key: 'why', title: 'Why', className: 'why', cell: (r) => <Why use={use} host={r.host} /> },
      ]} />
    </div>
  );
}

// Hosts that a condition names first, then those that stand out.
export function worstHosts(found: MatrixData, rows: Int32Array, use: HostUse | null, low: boolean): HostRow[] {
  const all = Array.from(rows, (row): HostRow => ({ host: found.rows[row].host, row }));
  const sick = (r: HostRow) => weight(use?.conditions.get(r.host)?.[0]);
  return all.sort((a, b) => {
    const bad = badness(found.rows[b.row], low) - badness(found.rows[a.row], low);
    return sick(b) - sick(a) || (Number.isNaN(bad) ? 0 : bad);
  });
}

function Map({ route, metric, found, full, use }: { route: Route; metric: string; found: MatrixData; full: Extent; use: HostUse | null }) {
  const low = lowIsBad(metric);
  const view = useView(route, 'time', full);
  const colour = one(route.q.col, COLOURS, 'ratio');
  const order = one(route.q.order, ORDERS, 'worst');
  const job = route.q.job;
  const test = useMemo(() => {
    const named = pattern(route.q.q ?? '');
    return (row: MatrixData['rows'][number]) => named(row.host) && (!job || Boolean(use?.served.get(row.host)?.some((s) => s.job === job)));
  }, [route.q.q, job, use]);
  const layers = useMemo(() => mapLayers({
    matrix: found, metric, colour, low, order, test, selected: null, noun: 'host',
    name: (i) => found.rows[i].host, onRow: (i) => go({ screen: 'host', name: found.rows[i].host }),
  }).layers, [found, colour, order, test]);
  if (!layers.length) return <Empty title={found.rows.length ? 'No host matches' : `Nothing of ${fmt.text(metric)} in this stretch of time`} hint="Choose another metric, or a longer time." />;
  return (
    <>
      <Stack axis={view.axis} label={`${metric} of each host by time`} layers={layers} onZoom={view.onZoom} hint="Click a row to open its host; drag to zoom" />
      <HostTable rows={worstHosts(found, ordered(found, order, low, test), use, low)} found={found} use={use} low={low} />
    </>
  );
}

export function Hosts({ route }: ScreenProps) {
  const hosts = useHostsJob();
  const use = useHostUse();
  const names = (hosts.data?.metrics ?? []).map((m) => m.name ?? '');
  const metric = route.q.m || chipMetrics(names)[0] || names.find((n) => /^host_cpu_utilization/.test(n)) || names[0] || '';
  const { full, shown, last } = spanOf(route, hosts.data);
  const key = metric ? `hosts ${metric} ${last} ${route.q.r ?? ''}` : '';
  const { data, error, stale, ageMs, reload } = usePoll(key, (signal) => matrix(hostsRequest(metric, shown, 'host'), signal), EVERY_MS);
  if (!hosts.data) {
    return (
      <>
        <h1>Hosts</h1>
        {hosts.error?.code === 'not_found' ? <Empty title="No host reports" hint="An agent on each host sends what its chips and its machine do: deploy/README.md." />
          : hosts.error ? <Failed error={hosts.error} retry={hosts.reload} /> : <Loading height={420} label="Loading the hosts" />}
      </>
    );
  }
  const jobs = [...new Set([...(use.data?.served.values() ?? [])].flat().map((s) => s.job))].sort();
  const set = (k: string, usual: string) => (v: string) => go({ q: { [k]: v === usual ? '' : v } }, 'replace');
  return (
    <>
      <h1>Hosts</h1>
      <div class="bar-row">
        <MetricChoice groups={hostMetricChoice(names)} now={metric} set={(m) => go({ q: { m } })} />
        <Choice legend="last" values={LASTS} now={last} set={(v) => go({ q: { last: v === '1h' ? '' : v, r: '' } })} />
        <Choice legend="colour" values={COLOURS} now={one(route.q.col, COLOURS, 'ratio')} set={set('col', 'ratio')} words={{ late: 'above median' }} />
        <Choice legend="order" values={ORDERS} now={one(route.q.order, ORDERS, 'worst')} set={set('order', 'worst')} />
        <MetricChoice label="job" groups={[{ title: 'Hosts of', names: ['', ...jobs] }]} now={route.q.job ?? ''} set={set('job', '')} />
        <label>host <input type="search" size={14} value={route.q.q ?? ''} placeholder="rack7-.*" aria-label="Only hosts that match a pattern" onInput={(e) => set('q', '')(e.currentTarget.value)} /></label>
        {route.q.r ? <button onClick={() => go({ q: { r: '' } })}>Show all</button> : null}
      </div>
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      {use.error && !use.data ? <Failed error={use.error} retry={use.reload} /> : null}
      {use.stale ? <Stale ageMs={use.ageMs} error={use.error} /> : null}
      {use.data?.leftOut ? <p class="dim">{leftOutText(use.data)}.</p> : null}
      {data ? <Map route={route} metric={metric} found={data} full={full} use={use.data} /> : error ? <Failed error={error} retry={reload} /> : <Loading height={420} label="Loading the hosts" />}
    </>
  );
}
