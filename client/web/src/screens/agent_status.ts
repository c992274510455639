// The state of agents from the newest samples of their own metrics: the rules of `tachoctl agents`
// (client/ctl/views/agent_status.cc). Samples that are much older than an agent's newest row belong
// to sources that no longer exist, or to an earlier reason.
import { ms, num } from '../api/json';
import type { LatestSample, RecordedEvent } from '../api/types';
import { natural } from '../parts/order';

export interface SourceStatus {
  name: string;
  failing: boolean;
  code: string; // "UNAVAILABLE"; empty where an old agent does not report it.
  reason: string;
  sinceMs: number | null;
  retryMs: number | null;
  polls: number;
  failures: number;
  lostRows: number;
}

export type AgentState = 'ok' | 'failing' | 'silent';

export interface AgentStatus {
  host: string;
  id: string;
  version: string;
  state: AgentState;
  seenMs: number; // Its newest row, by its own clock.
  waitingMessages: number | null;
  waitingBytes: number | null;
  rows: number | null;
  lostRows: number | null; // By the spool and by all sources.
  memoryBytes: number | null;
  refused: Record<string, number>; // Samples that the collector refused, by reason.
  sources: SourceStatus[]; // By name.
}

export const AGENT_METRICS = [
  'info', 'resident_memory_bytes', 'spool_messages', 'spool_bytes', 'rows_total', 'lost_rows_total', 'refused_samples_total', 'source_up',
  'source_failing', 'source_failing_seconds', 'source_retry_seconds', 'source_polls_total', 'source_failures_total', 'source_lost_rows_total',
].map((name) => `tacho_agent_${name}`);

export const SILENT_AFTER_MS = 60_000;
const ONE_MOMENT_MS = 60_000;
const DAY_MS = 86_400_000;

const label = (sample: LatestSample, name: string): string =>
  sample.series?.labels?.find((l) => l.name === name)?.value ?? '';

function takeSource(metric: string, sample: LatestSample, timeMs: number, source: SourceStatus): void {
  const value = num(sample.value);
  if (metric === 'source_up') source.failing = value === 0;
  else if (metric === 'source_polls_total') source.polls = value;
  else if (metric === 'source_failures_total') source.failures = value;
  else if (metric === 'source_lost_rows_total') source.lostRows = value;
  else if (metric === 'source_failing') source.code = label(sample, 'reason');
  else if (metric === 'source_failing_seconds') source.sinceMs = timeMs - value * 1000;
  else if (metric === 'source_retry_seconds') source.retryMs = timeMs + value * 1000;
}

function takeAgent(metric: string, sample: LatestSample, agent: AgentStatus): void {
  const value = num(sample.value);
  if (metric === 'info') [agent.id, agent.version] = [label(sample, 'agent_id'), label(sample, 'version')];
  else if (metric === 'spool_messages') agent.waitingMessages = value;
  else if (metric === 'spool_bytes') agent.waitingBytes = value;
  else if (metric === 'rows_total') agent.rows = value;
  else if (metric === 'lost_rows_total') agent.lostRows = value;
  else if (metric === 'resident_memory_bytes') agent.memoryBytes = value;
  else if (metric === 'refused_samples_total' && value > 0) agent.refused[label(sample, 'reason')] = value;
}

function assess(host: string, samples: { sample: LatestSample; timeMs: number }[]): AgentStatus {
  samples.sort((a, b) => a.timeMs - b.timeMs);
  const seenMs = samples[samples.length - 1].timeMs;
  const agent: AgentStatus = {
    host, id: '', version: '', state: 'ok', seenMs, waitingMessages: null, waitingBytes: null, rows: null, lostRows: null,
    memoryBytes: null, refused: {}, sources: [],
  };
  const sources = new Map<string, SourceStatus>();
  for (const { sample, timeMs } of samples) {
    if (timeMs < seenMs - ONE_MOMENT_MS) continue;
    const metric = (sample.series?.metric?.name ?? '').replace(/^tacho_agent_/, '');
    const name = label(sample, 'source');
    if (!name) {
      takeAgent(metric, sample, agent);
      continue;
    }
    let source = sources.get(name);
    if (!source) {
      source = { name, failing: false, code: '', reason: '', sinceMs: null, retryMs: null, polls: 0, failures: 0, lostRows: 0 };
      sources.set(name, source);
    }
    takeSource(metric, sample, timeMs, source);
  }
  for (const source of sources.values()) {
    if (agent.lostRows !== null) agent.lostRows += source.lostRows;
    if (!source.failing) Object.assign(source, { code: '', sinceMs: null, retryMs: null });
    agent.sources.push(source);
  }
  agent.sources.sort((a, b) => (a.name < b.name ? -1 : 1));
  return agent;
}

export const failing = (agent: AgentStatus): SourceStatus[] => agent.sources.filter((s) => s.failing);

const WEIGHT: Record<AgentState, number> = { silent: 0, failing: 1, ok: 2 };

// Those that need somebody first, then by host.
export function assessAgents(latest: LatestSample[], nowMs: number): AgentStatus[] {
  const byHost = new Map<string, { sample: LatestSample; timeMs: number }[]>();
  for (const sample of latest) {
    const host = sample.series?.host ?? '';
    let mine = byHost.get(host);
    if (!mine) byHost.set(host, (mine = []));
    mine.push({ sample, timeMs: ms(sample.timeUnixNs) ?? 0 });
  }
  const agents = [...byHost].map(([host, samples]) => assess(host, samples));
  for (const agent of agents) {
    if (nowMs - agent.seenMs > SILENT_AFTER_MS) agent.state = 'silent';
    else if (failing(agent).length) agent.state = 'failing';
  }
  return agents.sort((a, b) => WEIGHT[a.state] - WEIGHT[b.state] || natural(a.host, b.host));
}

// When the first of the failing sources began to fail; null if none fails. An old agent does not say
// since when: the reason is looked for in the last day, not in all that is stored.
export function firstFailure(agents: AgentStatus[], nowMs: number): number | null {
  const since = agents.flatMap((agent) => failing(agent).map((s) => s.sinceMs ?? nowMs - DAY_MS));
  return since.length ? Math.min(...since) : null;
}

// Adds why sources fail, from events source_failed in ascending time.
export function addReasons(failures: RecordedEvent[], agents: AgentStatus[]): void {
  const newest = new Map(failures.map((e) => [`${e.source?.host ?? ''} ${e.fields?.['source'] ?? ''}`, e.message ?? '']));
  for (const agent of agents) {
    for (const source of failing(agent)) source.reason = newest.get(`${agent.host} ${source.name}`) ?? '';
  }
}

// What the owner of refused samples can do, as tachoctl says it.
export function remedy(reason: string): string {
  if (reason === 'too_old') return "older than the collector's storage.retention; raise it, or leave old files out";
  if (reason === 'future') return "ahead of the collector's clock; set the clock of this host";
  if (reason === 'label_invalid') return "a name or text breaks a rule; the agent's log shows one";
  if (reason === 'jobs_limit') return 'the collector has limits.jobs jobs; raise it';
  if (reason.endsWith('_limit')) return 'see what has many series on the Collector screen';
  return "the agent's log says more";
}
