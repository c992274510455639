// Agents of all hosts: which are silent, which of their sources fail and why, what they lost.
import { latest, listEvents } from '../api/calls';
import { ns } from '../api/json';
import { collectorNow } from '../api/live';
import { usePoll, type Polled } from '../api/poll';
import { go, href } from '../app/route';
import type { ScreenProps } from '../app/screen';
import { fmt } from '../parts/format';
import { pattern } from '../parts/pattern';
import { Empty, Failed, Loading, Stale } from '../parts/states';
import { DataTable, type Column } from '../parts/table';
import { Sign } from '../parts/verdict';
import { addReasons, AGENT_METRICS, assessAgents, failing, firstFailure, remedy, type AgentStatus, type SourceStatus } from './agent_status';
import { Choice, one } from './choice';
import './rows.css';

const EVERY_MS = 10_000;
const NEWEST = 5000;
const MOST_SERIES = '1000000';

export async function fetchAgents(host: string, signal: AbortSignal): Promise<AgentStatus[]> {
  const matchers = host ? [{ label: 'host', op: 'OP_EQUAL' as const, value: host }] : [];
  const samples = await latest({ selector: { job: 'hosts', metrics: AGENT_METRICS, matchers }, maxSeries: MOST_SERIES }, signal);
  const now = collectorNow();
  const agents = assessAgents(samples, now);
  const first = firstFailure(agents, now);
  if (first !== null) {
    const events = await listEvents({ job: 'hosts', kind: 'source_failed', newest: NEWEST, time: { beginUnixNs: ns(Math.max(0, first - 60_000)) } }, signal);
    addReasons(events, agents);
  }
  return agents;
}

export function useAgents(host = ''): Polled<AgentStatus[]> {
  return usePoll(`agents ${host}`, (signal) => fetchAgents(host, signal), EVERY_MS);
}

const SEVERITY = { ok: '', failing: 'warning', silent: 'critical' } as const;

export function AgentSign({ agent }: { agent: AgentStatus }) {
  return <Sign severity={SEVERITY[agent.state]}>{agent.state}</Sign>;
}

// "tpu fails for 3m 20s, again in 12s: UNAVAILABLE: no libtpu …", as tachoctl says it.
export function failureText(source: SourceStatus, nowMs: number): string {
  const parts = [`${source.name} fails`];
  if (source.sinceMs !== null) parts.push(` for ${fmt.duration(Math.max(0, nowMs - source.sinceMs) / 1000)}`);
  if (source.retryMs !== null) parts.push(source.retryMs > nowMs ? `, again in ${fmt.duration((source.retryMs - nowMs) / 1000)}` : ', again now');
  return [parts.join(''), source.code, source.reason].filter(Boolean).join(': ');
}

export function Remarks({ agent }: { agent: AgentStatus }) {
  const now = collectorNow();
  return (
    <>
      {failing(agent).map((s) => <div key={s.name}>{fmt.text(failureText(s, now))}</div>)}
      {Object.entries(agent.refused).map(([reason, samples]) => (
        <div key={reason}>the collector refused {fmt.plural(samples, 'sample')} as {fmt.text(reason)}: {remedy(reason)}</div>
      ))}
    </>
  );
}

function sourcesText(agent: AgentStatus): string {
  const bad = failing(agent).length;
  return bad ? `${bad} of ${agent.sources.length} fail${bad === 1 ? 's' : ''}` : `${agent.sources.length} ok`;
}

const KINDS = ['all', 'unwell', 'silent', 'failing'] as const;

function accepts(kind: (typeof KINDS)[number], agent: AgentStatus): boolean {
  return kind === 'all' || (kind === 'unwell' ? agent.state !== 'ok' : agent.state === kind);
}

function columns(agents: AgentStatus[]): Column<AgentStatus>[] {
  const versions = new Set(agents.map((a) => a.version));
  const ids = agents.some((a) => a.id && a.id !== a.host);
  return [
    { key: 'host', title: 'Host', cell: (a) => <a href={href({ screen: 'host', name: a.host })}>{fmt.text(a.host)}</a> },
    ...(ids ? [{ key: 'id', title: 'Agent', cell: (a: AgentStatus) => fmt.text(a.id) }] : []),
    { key: 'state', title: 'State', cell: (a) => <AgentSign agent={a} /> },
    { key: 'seen', title: 'Last seen', cell: (a) => fmt.ago(a.seenMs) },
    { key: 'sources', title: 'Sources', cell: sourcesText },
    { key: 'waiting', title: 'Waiting', number: true, hint: 'Messages in the spool', cell: (a) => fmt.count(a.waitingMessages) },
    { key: 'bytes', title: 'Spool', number: true, cell: (a) => fmt.bytes(a.waitingBytes) },
    { key: 'rows', title: 'Rows', number: true, hint: "Since the agent's start", cell: (a) => fmt.count(a.rows) },
    { key: 'lost', title: 'Lost', number: true, hint: 'Rows lost by the spool and by sources', cell: (a) => <span class={a.lostRows ? 'off-high' : ''}>{fmt.count(a.lostRows)}</span> },
    { key: 'memory', title: 'Memory', number: true, cell: (a) => fmt.bytes(a.memoryBytes) },
    ...(versions.size > 1 ? [{ key: 'version', title: 'Version', cell: (a: AgentStatus) => fmt.text(a.version || 'not reported') }] : []),
    { key: 'why', title: 'Why', className: 'why', cell: (a) => <Remarks agent={a} /> },
  ];
}

function Summary({ agents }: { agents: AgentStatus[] }) {
  const count = (state: string) => agents.filter((a) => a.state === state).length;
  const versions = [...new Set(agents.map((a) => a.version).filter(Boolean))].sort();
  const lost = agents.reduce((sum, a) => sum + (a.lostRows ?? 0), 0);
  return (
    <p class="facts-line">
      <span>{fmt.plural(agents.length, 'agent')}</span>
      <span>{fmt.count(count('silent'))} silent</span>
      <span>{fmt.count(count('failing'))} with a source that fails</span>
      <span>{lost ? `${fmt.plural(lost, 'row')} lost since their start` : 'no rows lost'}</span>
      <span>{versions.length === 1 ? `all version ${fmt.text(versions[0])}` : versions.length ? `versions ${versions.map(fmt.text).join(', ')}` : ''}</span>
    </p>
  );
}

export function Agents({ route }: ScreenProps) {
  const { data, error, stale, ageMs, reload } = useAgents();
  // A link says ?failing, as tachoctl has --failing.
  const kind = route.q.failing ? 'unwell' : one(route.q.state, KINDS, 'all');
  const named = pattern(route.q.q ?? '');
  if (!data) return <><h1>Agents</h1>{error ? <Failed error={error} retry={reload} /> : <Loading height={400} label="Loading the agents" />}</>;
  const shown = data.filter((a) => accepts(kind, a) && named(`${a.host} ${a.id} ${a.version}`));
  return (
    <>
      <h1>Agents</h1>
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      {data.length ? <Summary agents={data} /> : null}
      <div class="bar-row">
        <Choice legend="state" values={KINDS} now={kind} set={(v) => go({ q: { state: v === 'all' ? '' : v, failing: '' } }, 'replace')} words={{ unwell: 'silent or failing' }} />
        <label>host <input type="search" value={route.q.q ?? ''} placeholder="rack7-.*" aria-label="Only agents that match a pattern"
          onInput={(e) => go({ q: { q: e.currentTarget.value } }, 'replace')} /></label>
      </div>
      {data.length === 0 ? (
        <Empty title="No agent reports" hint="Install one on each host: deploy/README.md; it finds the collector by its key “collector.address”." />
      ) : shown.length === 0 ? (
        <Empty title={kind === 'all' ? 'No agent matches' : 'No agent is so'} hint={`${fmt.plural(data.length, 'agent')} in all.`} />
      ) : (
        <div class="wide" tabIndex={0}>
          <DataTable label="Agents" columns={columns(data)} rows={shown} rowKey={(a) => a.host} virtual={shown.length > 200} rowHeight={34} />
        </div>
      )}
    </>
  );
}
