// Everything of one machine: its chips side by side, its signals, the jobs that it served, its
// agent, and the conditions that name it.
import { useMemo } from 'preact/hooks';
import { latest, matrix } from '../api/calls';
import { ms, num } from '../api/json';
import { usePoll, type Polled } from '../api/poll';
import type { GetJobResponse, LatestSample } from '../api/types';
import { go, href, type Route } from '../app/route';
import type { ScreenProps } from '../app/screen';
import { Stack } from '../chart/stack';
import type { Layer } from '../chart/types';
import { fmt } from '../parts/format';
import { natural } from '../parts/order';
import { Empty, Failed, Loading, Stale } from '../parts/states';
import { DataTable } from '../parts/table';
import { Verdict } from '../parts/verdict';
import { AgentSign, Remarks, useAgents } from './agents';
import { Choice, MetricChoice } from './choice';
import { mapLayers } from './heatmap';
import { CHIP_METRICS, HOST_COUNTERS, HOST_METRICS, HostCharts } from './hostcharts';
import { leftOutText, useHostUse, type HostUse, type Served } from './hostjobs';
import { hostsRequest } from './hosts';
import { chipMetrics, lowIsBad, ranges } from './matrixrows';
import './rows.css';
import { LASTS, spanOf, useHostsJob } from './span_choice';
import { useKept, useView, type Extent, type View } from './view';

const EVERY_MS = 10_000;

export interface ChipRow {
  metric: string;
  unit: string;
  values: (number | null)[]; // One a chip.
  off: (-1 | 0 | 1)[]; // Whether a chip lies clearly below or above the others.
}
const OFF = 0.12; // Of the median.

// The newest samples as a table of metrics by chips.
export function chipTable(samples: LatestSample[]): { chips: string[]; rows: ChipRow[] } {
  const chipOf = (s: LatestSample) => s.series?.labels?.find((l) => l.name === 'chip')?.value ?? '';
  const chips = [...new Set(samples.map(chipOf))].filter(Boolean).sort(natural);
  const names = chipMetrics([...new Set(samples.map((s) => s.series?.metric?.name ?? ''))]);
  const rows = names.map((metric): ChipRow => {
    const mine = samples.filter((s) => s.series?.metric?.name === metric);
    const values = chips.map((chip) => {
      const sample = mine.find((s) => chipOf(s) === chip);
      return sample ? num(sample.value) : null; // JSON leaves out a value of 0.
    });
    return { metric, unit: mine[0]?.series?.metric?.unit ?? '', values, off: outliers(values) };
  });
  return { chips, rows };
}

export function outliers(values: (number | null)[]): (-1 | 0 | 1)[] {
  const finite = values.filter((v): v is number => v !== null && Number.isFinite(v)).sort((a, b) => a - b);
  const median = finite[Math.floor((finite.length - 1) / 2)];
  return values.map((v) => {
    if (v === null || finite.length < 3) return 0;
    const limit = Math.abs(median) * OFF;
    return v - median > limit ? 1 : median - v > limit ? -1 : 0;
  });
}

function Chips({ host, chip, metrics }: { host: string; chip: string; metrics: string[] }) {
  const { data, error, stale, ageMs, reload } = usePoll(metrics.length ? `chips of ${host}` : '', (signal) => latest({
    selector: { job: 'hosts', metrics, matchers: [{ label: 'host', op: 'OP_EQUAL', value: host }] },
  }, signal), EVERY_MS);
  const { chips, rows } = useMemo(() => chipTable(data ?? []), [data]);
  if (!data) return error ? <Failed error={error} retry={reload} /> : <Loading height={200} label="Loading the chips" />;
  if (!chips.length) return <p class="dim">The agent found no chips here. The Agents screen says whether one of its sources fails.</p>;
  return (
    <>
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      <div class="wide" tabIndex={0}>
        <DataTable label="Chips side by side" rows={rows} rowKey={(r) => r.metric} columns={[
          { key: 'metric', title: 'Newest', cell: (r) => <a href={href({ q: { m: r.metric } })}>{fmt.text(r.metric)}</a> },
          ...chips.map((name, i) => ({
            key: name, title: `chip ${name}${name === chip ? ' ◂' : ''}`, number: true,
            cell: (r: ChipRow) => <span class={r.off[i] ? 'off-high' : ''}>{r.unit === 'Hz' ? fmt.si(r.values[i], 'Hz') : fmt.value(r.values[i], r.unit)}{r.off[i] > 0 ? ' ▲' : r.off[i] < 0 ? ' ▼' : ''}</span>,
          })),
        ]} />
      </div>
      <p class="dim">▲▼: more than {fmt.percent(OFF)} above or below the median of the chips.</p>
    </>
  );
}

function ChipMap({ host, metric, time, link, view, chip }: {
  host: string; metric: string; time: Extent; link: string; view: View; chip: string;
}) {
  const what = `chip map ${host} ${metric}`;
  const polled = usePoll(`${what} ${link}`, (signal) => matrix(hostsRequest(metric, time, 'chip', host), signal), EVERY_MS);
  const data = useKept(polled.data, what);
  const layers = useMemo(() => (data ? mapLayers({
    matrix: data, metric, colour: 'ratio', low: lowIsBad(metric), order: 'host', test: () => true, noun: 'chip',
    selected: data.rows.findIndex((r) => r.chip === chip), name: (i) => `chip ${data.rows[i].chip}`,
    onRow: (i) => go({ q: { chip: data.rows[i].chip === chip ? '' : data.rows[i].chip } }, 'replace'),
  }).layers : []), [data, chip]);
  const { error, stale, ageMs, reload } = polled;
  const failed = error && !polled.data ? <Failed error={error} retry={reload} /> : null;
  if (!layers.length) return failed ?? (data ? null : <Loading height={140} label="Loading the map of chips" />);
  return (
    <>
      {failed}
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      <Stack axis={view.axis} label={`${metric} of each chip by time`} layers={layers} onZoom={view.onZoom} />
    </>
  );
}

export function jobLanes(served: Served[]): Layer {
  return {
    kind: 'lanes', label: 'Jobs here',
    lanes: served.map((s, i) => ({
      name: s.job,
      spans: [{ from: s.beginMs, to: s.endMs, kind: i % 2 ? 'attempt_odd' : 'attempt', text: `tasks ${ranges(s.tasks)}`, title: `${s.job}, tasks ${ranges(s.tasks)}, ${fmt.time(s.beginMs)} to ${fmt.time(s.endMs)}` }],
    })),
  };
}

function JobsHere({ use, served, view }: { use: Polled<HostUse>; served: Served[]; view: View }) {
  const layers = useMemo(() => [jobLanes(served)], [served]);
  if (!use.data) return use.error ? <Failed error={use.error} retry={use.reload} /> : <Loading height={120} label="Loading the jobs" />;
  const left = leftOutText(use.data);
  if (!served.length) return <p class="dim">No job that is known has a task here{left ? `; ${left}` : ''}.</p>;
  return (
    <>
      {use.stale ? <Stale ageMs={use.ageMs} error={use.error} /> : null}
      {left ? <p class="dim">{left}.</p> : null}
      <Stack axis={view.axis} label="Jobs on this host by time" layers={layers} onZoom={view.onZoom} table={false} />
      <div class="wide" tabIndex={0}>
        <DataTable label="Jobs on this host" rows={served} rowKey={(s) => s.job} columns={[
          { key: 'job', title: 'Job', cell: (s) => <a href={href({ screen: 'job', name: s.job, tab: 'tasks' })}>{fmt.text(s.job)}</a> },
          { key: 'tasks', title: 'Tasks', cell: (s) => ranges(s.tasks) },
          { key: 'state', title: 'State', cell: (s) => (s.running ? 'running' : 'not running') },
          { key: 'from', title: 'First seen', cell: (s) => fmt.time(s.beginMs) },
          { key: 'to', title: 'Last seen', cell: (s) => fmt.ago(s.endMs) },
        ]} />
      </div>
    </>
  );
}

function AgentLine({ host }: { host: string }) {
  const { data, error } = useAgents(host);
  if (!data) return error ? <p class="dim">Its agent: {fmt.text(error.message)}</p> : null;
  const agent = data[0];
  if (!agent) return <p class="dim">No agent reports from this host.</p>;
  return (
    <div>
      <p class="facts-line">
        <span>agent <AgentSign agent={agent} /></span><span>seen {fmt.ago(agent.seenMs)}</span><span>version {fmt.text(agent.version || 'not reported')}</span>
        <span>{fmt.plural(agent.sources.length, 'source')}</span><span>{fmt.count(agent.waitingMessages)} messages wait</span>
        <span>{agent.lostRows ? `${fmt.plural(agent.lostRows, 'row')} lost` : 'no rows lost'}</span>
      </p>
      <div class="dim"><Remarks agent={agent} /></div>
    </div>
  );
}

function Charts({ route, host, hosts, use, served, names }: {
  route: Route; host: string; hosts: GetJobResponse; use: Polled<HostUse>; served: Served[]; names: string[];
}) {
  const { full, shown, last } = spanOf(route, hosts);
  const view = useView(route, 'time', full);
  const link = `${last} ${route.q.r ?? ''}`;
  const chips = chipMetrics(names);
  const metric = route.q.m || chips[0] || '';
  const chip = route.q.chip ?? '';
  const machine = [...HOST_METRICS, ...HOST_COUNTERS].filter((m) => names.includes(m));
  return (
    <>
      {chips.length ? <section class="section"><h2>Chips</h2><Chips host={host} chip={chip} metrics={chips} /></section> : null}
      <div class="bar-row section">
        {chips.length ? <MetricChoice label="map of" groups={[{ title: 'Of its chips', names: chips }]} now={metric} set={(m) => go({ q: { m } })} /> : null}
        <Choice legend="last" values={LASTS} now={last} set={(v) => go({ q: { last: v === '1h' ? '' : v, r: '' } })} />
        {route.q.r ? <button onClick={() => go({ q: { r: '' } })}>Show all</button> : null}
      </div>
      {metric ? <ChipMap host={host} metric={metric} time={shown} link={link} view={view} chip={chip} /> : null}
      <section class="section"><h2>Its signals</h2><HostCharts host={host} time={shown} link={link} axis={view.axis} onZoom={view.onZoom} metrics={[...CHIP_METRICS.filter((m) => names.includes(m)), ...machine]} /></section>
      <section class="section"><h2>Jobs</h2><JobsHere use={use} served={served} view={view} /></section>
    </>
  );
}

export function Host({ route }: ScreenProps) {
  const host = route.name;
  const hosts = useHostsJob();
  const use = useHostUse();
  const served = use.data?.served.get(host) ?? [];
  const named = use.data?.conditions.get(host) ?? [];
  const names = (hosts.data?.metrics ?? []).map((m) => m.name ?? '');
  const since = ms(hosts.data?.job?.firstSeenUnixNs);
  const now = served.filter((s) => s.running).map((s) => `${s.job} ${ranges(s.tasks)}`);
  if (!host) return <Empty title="Which host?" hint="The Hosts screen lists them."><p><a href={href({ screen: 'hosts' })}>To the hosts</a></p></Empty>;
  return (
    <>
      <p class="actions"><a href={href({ screen: 'hosts' })}>← Hosts</a></p>
      <h1>{fmt.text(host)}</h1>
      <p class="facts-line"><span>{now.length ? `runs ${now.map(fmt.text).join(', ')}` : use.data && !use.data.leftOut ? 'runs no task' : ''}</span></p>
      <AgentLine host={host} />
      {named.length ? <h2>What is wrong</h2> : null}
      {named.map((c) => <Verdict key={`${c.job} ${c.condition}`} condition={c} />)}
      {hosts.data ? <Charts route={route} host={host} hosts={hosts.data} use={use} served={served} names={names} />
        : hosts.error ? <Failed error={hosts.error} retry={hosts.reload} /> : <Loading height={320} label="Loading the host" />}
      {since === null ? null : <p class="dim">Hosts are recorded since {fmt.time(since)}.</p>}
    </>
  );
}
