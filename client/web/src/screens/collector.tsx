// The collector's own health, and who uses up its limits.
import { useContext, useRef } from 'preact/hooks';
import { cardinality, collector } from '../api/calls';
import { maybe, ms, num } from '../api/json';
import { usePoll } from '../api/poll';
import type { CardinalityResponse, CardinalityUse, CollectorResponse, WhoAmIResponse } from '../api/types';
import { collectorNow } from '../api/live';
import { href } from '../app/route';
import type { ScreenProps } from '../app/screen';
import { WhoContext } from '../app/who';
import { copyText } from '../parts/copy';
import { fmt } from '../parts/format';
import { Failed, Loading, Stale } from '../parts/states';
import { DataTable } from '../parts/table';
import { Sign } from '../parts/verdict';
import './rows.css';

const EVERY_MS = 5000;
const USES_EVERY_MS = 15_000;
const TOP = 10;
const NEARLY = 0.9; // Of a limit.

interface Health {
  now: CollectorResponse;
  before: CollectorResponse | null; // The answer before, for rates.
}

async function fetchHealth(previous: { current: CollectorResponse | null }, signal: AbortSignal): Promise<Health> {
  const now = await collector({}, signal);
  const before = previous.current?.startedUnixNs === now.startedUnixNs ? previous.current : null;
  previous.current = now;
  return { now, before };
}

// Growth of a counter a second between two answers; null if there is only one.
export function rate(health: Health, key: 'samplesAppended' | 'samplesRefused'): number | null {
  const { now, before } = health;
  if (!before) return null;
  const seconds = ((ms(now.clockUnixNs) ?? 0) - (ms(before.clockUnixNs) ?? 0)) / 1000;
  return seconds > 0 ? Math.max(0, num(now[key]) - num(before[key])) / seconds : null;
}

interface Part {
  name: string;
  used: number;
  limit: number; // 0: none.
  show: (v: number) => string;
  note?: string;
}

function Meters({ label, parts }: { label: string; parts: Part[] }) {
  return (
    <DataTable label={label} rows={parts} rowKey={(p) => p.name} columns={[
      { key: 'name', title: 'What', cell: (p) => <>{p.name}{p.note ? <span class="dim"> {p.note}</span> : null}</> },
      { key: 'used', title: 'Used', number: true, cell: (p) => p.show(p.used) },
      { key: 'limit', title: 'Of', number: true, cell: (p) => (p.limit ? p.show(p.limit) : 'no limit') },
      { key: 'share', title: 'Share', number: true, cell: (p) => {
        if (!p.limit) return '';
        const share = p.used / p.limit;
        return <span class={share >= NEARLY ? 'off-high' : ''}>{fmt.percent(share)}</span>;
      } },
      { key: 'bar', title: 'Filled', cell: (p) => (p.limit ? <meter class="meter" min={0} max={1} high={NEARLY} value={Math.min(1, p.used / p.limit)} aria-label={p.name} /> : null) },
    ]} />
  );
}

function healthParts(c: CollectorResponse): Part[] {
  const total = num(c.diskTotalBytes);
  return [
    { name: 'Series', used: num(c.series), limit: num(c.seriesLimit), show: fmt.count },
    { name: 'Queries at work', used: num(c.queries), limit: num(c.queriesLimit), show: fmt.count },
    { name: 'Watches', used: num(c.watches), limit: num(c.watchesLimit), show: fmt.count },
    { name: 'File system', used: total - num(c.diskFreeBytes), limit: total, show: fmt.bytes, note: 'of the store, with what others keep there' },
  ];
}

// "10.0.0.7" of "ipv4:10.0.0.7:51234" and "http:10.0.0.7", "::1" of "ipv6:%5B::1%5D:51234".
export function addressOf(peer: string): string {
  const [, kind, rest] = /^(\w+):(.*)$/.exec(peer) ?? ['', 'http', peer];
  return kind === 'http' ? rest : rest.replace(/:\d+$/, '').replace(/%5B|%5D|[[\]]/gi, '');
}

// The newest is the last, so that a row keeps its place while it runs.
function AtWork({ c }: { c: CollectorResponse }) {
  const rows = c.running ?? [];
  if (!rows.length) return <p class="dim">Nobody asks for anything now.</p>;
  const now = ms(c.clockUnixNs) ?? 0;
  return (
    <DataTable label="Queries at work and open watches" rows={rows} rowKey={(r) => `${r.peer} ${r.method} ${r.beganUnixNs}`} columns={[
      { key: 'method', title: 'Call', cell: (r) => fmt.text(r.method ?? '') },
      { key: 'caller', title: 'Who', cell: (r) => (r.caller ? fmt.text(r.caller) : <span class="dim">anybody</span>) },
      { key: 'peer', title: 'From', cell: (r) => fmt.text(addressOf(r.peer ?? '')) },
      { key: 'job', title: 'Job', cell: (r) => (r.job ? <a href={href({ screen: 'job', name: r.job })}>{fmt.text(r.job)}</a> : '') },
      { key: 'began', title: 'For', number: true, cell: (r) => fmt.duration(Math.max(0, now - (ms(r.beganUnixNs) ?? now)) / 1000) },
      { key: 'read', title: 'Samples read', number: true, cell: (r) => fmt.count(num(r.samplesRead)) },
    ]} />
  );
}

function Figures({ health }: { health: Health }) {
  const c = health.now;
  const retention = num(c.retentionNs) / 1e9;
  const into = rate(health, 'samplesAppended');
  const facts: [string, string][] = [
    ['Samples taken in', into === null ? fmt.si(num(c.samplesAppended)) : `${fmt.si(into)}/s, ${fmt.si(num(c.samplesAppended))} since its start`],
    ['Samples refused', fmt.count(num(c.samplesRefused))],
    ['Streams of agents and recorders', fmt.count(num(c.streams))],
    ['Jobs', fmt.count(num(c.jobs))],
    ['Not sealed into columns yet', `${fmt.plural(num(c.openRows), 'row')}, ${fmt.bytes(num(c.openBytes))}`],
    ['Journal, read again at a restart', `${fmt.bytes(num(c.journalBytes))} in ${fmt.count(num(c.journalEntries))} entries`],
    ['Waits for the disk', fmt.bytes(num(c.queuedBytes))],
    ['Store on disk', `${fmt.bytes(num(c.diskBytes))} in ${fmt.plural(num(c.partitions), 'partition')}`],
    ['Free on its file system', fmt.bytes(num(c.diskFreeBytes))],
    ['Memory', fmt.bytes(num(c.memoryBytes))],
    ['Kept for', retention ? fmt.duration(retention) : 'ever'],
  ];
  return (
    <dl class="about-facts">
      {facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}

function You({ who }: { who: WhoAmIResponse }) {
  const rights = [who.read && 'read', who.write && 'write', who.admin && 'administer'].filter(Boolean).join(', ');
  const expires = ms(maybe(who.expiresUnixNs) === null ? null : who.expiresUnixNs);
  if (!who.authentication) return <span>You: anybody may do everything; the collector asks for no token</span>;
  return (
    <span>
      You: {fmt.text(who.name ?? '')} ({rights || 'no rights'}; jobs {who.jobsPattern ? fmt.text(who.jobsPattern) : 'all'}
      {expires === null ? '' : `; expires ${fmt.time(expires)}`})
    </span>
  );
}

function State({ c }: { c: CollectorResponse }) {
  if (c.notReady) return <Sign severity="critical">not ready: {fmt.text(c.notReady)}</Sign>;
  if (c.draining) return <Sign severity="warning">draining: it is about to end</Sign>;
  if (num(c.samplesRefused)) return <Sign severity="info">ready; it refused samples, see below</Sign>;
  return <Sign severity="">ready</Sign>;
}

const limitName = (name: string | undefined) => (name ?? '').replace(/_/g, ' ');

function Uses({ title, rows, noun, link }: { title: string; rows: CardinalityUse[]; noun: string; link: boolean }) {
  const key = (u: CardinalityUse) => `${u.job} ${u.name}`;
  return (
    <section class="section wide" tabIndex={0}>
      <h2>{title}</h2>
      <DataTable label={title} rows={rows} rowKey={key} head={noun} columns={[
        ...(noun === 'job' ? [] : [{ key: noun, title: noun === 'metric' ? 'Metric' : 'Label', cell: (u: CardinalityUse) => fmt.text(u.name ?? '') }]),
        { key: 'job', title: 'Job', cell: (u) => (link && u.job ? <a href={href({ screen: 'job', name: u.job })}>{fmt.text(u.job)}</a> : fmt.text(u.job ?? '')) },
        { key: 'used', title: noun === 'label' ? 'Values' : 'Series', number: true, cell: (u) => fmt.count(num(u.used)) },
        { key: 'share', title: 'Of its limit', number: true, cell: (u) => {
          const share = num(u.limit) ? num(u.used) / num(u.limit) : 0;
          return <span class={share >= NEARLY ? 'off-high' : ''}>{num(u.limit) ? `${fmt.percent(share)} of ${fmt.count(num(u.limit))}` : 'no limit'}</span>;
        } },
      ]} />
    </section>
  );
}

function Refusals({ uses }: { uses: CardinalityResponse }) {
  const rows = uses.refusals ?? [];
  if (!rows.length) return <p class="dim">No series was refused since the start.</p>;
  return (
    <DataTable label="Series that were refused" rows={rows} rowKey={(r) => `${r.job} ${r.name} ${r.limit}`} columns={[
      { key: 'job', title: 'Job', cell: (r) => fmt.text(r.job ?? '') },
      { key: 'name', title: 'Metric or label', cell: (r) => fmt.text(r.name ?? '') },
      { key: 'limit', title: 'Limit', cell: (r) => fmt.text(r.limit ?? '') },
      { key: 'series', title: 'Series', number: true, cell: (r) => fmt.count(num(r.series)) },
      { key: 'example', title: 'For example', className: 'about-value', cell: (r) => fmt.text(r.example ?? r.detail ?? '') },
      { key: 'last', title: 'Last', cell: (r) => fmt.ago(ms(r.lastUnixNs)) },
    ]} />
  );
}

function Cardinality() {
  const { data, error, stale, ageMs, reload } = usePoll('cardinality', (signal) => cardinality({ top: TOP }, signal), USES_EVERY_MS);
  if (!data) return error ? <Failed error={error} retry={reload} /> : <Loading height={300} label="Loading who uses what" />;
  const totals = (data.totals ?? []).map((u): Part => ({
    name: limitName(u.name), used: num(u.used), limit: num(u.limit), show: u.name === 'text_bytes' ? fmt.bytes : fmt.count,
  }));
  return (
    <>
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      <section class="section wide" tabIndex={0}><h2>Limits</h2><Meters label="Limits of the collector" parts={totals} /></section>
      <div class="columns-2">
        <Uses title="Jobs with the most series" rows={data.jobs ?? []} noun="job" link />
        <Uses title="Metrics with the most series" rows={data.metrics ?? []} noun="metric" link />
        <Uses title="Labels with the most values" rows={data.labels ?? []} noun="label" link />
        <section class="section wide" tabIndex={0}><h2>Refused</h2><Refusals uses={data} /></section>
      </div>
      <p class="cmd section"><span class="dim">The same in a terminal</span> <code>tachoctl cardinality</code><button onClick={() => void copyText('tachoctl cardinality')}>Copy</button></p>
    </>
  );
}

export function Collector(_: ScreenProps) {
  const previous = useRef<CollectorResponse | null>(null);
  const { data, error, stale, ageMs, reload } = usePoll('collector', (signal) => fetchHealth(previous, signal), EVERY_MS);
  const who = useContext(WhoContext);
  if (!data) return <><h1>Collector</h1>{error ? <Failed error={error} retry={reload} /> : <Loading height={400} label="Loading the collector's state" />}</>;
  const c = data.now;
  const started = ms(c.startedUnixNs) ?? 0;
  return (
    <>
      <h1>Collector <State c={c} /></h1>
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      <p class="facts-line">
        <span>version {fmt.text(c.version ?? '')}</span>
        <span>up {fmt.duration(Math.max(0, collectorNow() - started) / 1000)}, since {fmt.time(started)}</span>
        {who ? <You who={who} /> : null}
      </p>
      <section class="section"><Figures health={data} /></section>
      <section class="section wide" tabIndex={0}><h2>Now</h2><Meters label="What is in use now" parts={healthParts(c)} /></section>
      <section class="section wide" tabIndex={0}><h2>At work</h2><AtWork c={c} /></section>
      <Cardinality />
    </>
  );
}
