// Which tasks of which jobs run on which host, and which conditions name it: asked of every job
// that runs, as tachoctl agents does.
import { conditions, getJob, listJobs } from '../api/calls';
import { ms } from '../api/json';
import { usePoll, type Polled } from '../api/poll';
import type { Condition, GetJobResponse } from '../api/types';
import { severityOf } from '../parts/verdict';

const EVERY_MS = 30_000;
const MOST_JOBS = 200;
const MOST_TASKS = 16_384;

export interface Served {
  job: string;
  running: boolean;
  tasks: number[];
  beginMs: number;
  endMs: number;
}

export interface HostUse {
  served: Map<string, Served[]>; // By host.
  conditions: Map<string, Condition[]>; // Those that are true and name the host, the worst first.
  leftOut: number; // Jobs that were not asked.
}

export function servedBy(details: GetJobResponse[]): Map<string, Served[]> {
  const out = new Map<string, Served[]>();
  for (const detail of details) {
    const job = detail.job?.name ?? '';
    const here = new Map<string, Served>();
    for (const task of detail.tasks ?? []) {
      if (!task.host || task.task === undefined) continue;
      const [begin, end] = [ms(task.firstSeenUnixNs) ?? 0, ms(task.lastSeenUnixNs) ?? 0];
      const old = here.get(task.host);
      if (!old) here.set(task.host, { job, running: task.state === 'JOB_STATE_RUNNING', tasks: [task.task], beginMs: begin, endMs: end });
      else {
        if (!old.tasks.includes(task.task)) old.tasks.push(task.task);
        old.running ||= task.state === 'JOB_STATE_RUNNING';
        [old.beginMs, old.endMs] = [Math.min(old.beginMs, begin), Math.max(old.endMs, end)];
      }
    }
    for (const [host, served] of here) out.set(host, [...(out.get(host) ?? []), served]);
  }
  return out;
}

const WEIGHT = { critical: 3, warning: 2, info: 1, '': 0 };
export const weight = (c: Condition | undefined): number => (c ? WEIGHT[severityOf(c.severity)] : 0);

export function namedBy(all: Condition[]): Map<string, Condition[]> {
  const out = new Map<string, Condition[]>();
  for (const c of all) {
    for (const host of new Set((c.culprits ?? []).map((one) => one.host ?? '').filter(Boolean))) out.set(host, [...(out.get(host) ?? []), c]);
  }
  for (const list of out.values()) list.sort((a, b) => weight(b) - weight(a));
  return out;
}

async function fetchUse(signal: AbortSignal): Promise<HostUse> {
  const [jobs, found] = await Promise.all([
    listJobs({ pageSize: 1000 }, signal),
    conditions({ statuses: ['CONDITION_STATUS_TRUE'] }, signal),
  ]);
  // Those that run first: of many jobs, the others are history.
  const order = (state: string | undefined) => Number(state !== 'JOB_STATE_RUNNING');
  const others = (jobs.jobs ?? []).filter((j) => j.name !== 'hosts').sort((a, b) => order(a.state) - order(b.state));
  const asked = others.slice(0, MOST_JOBS);
  const details = await Promise.all(asked.map((j) => getJob({ job: j.name, maxEntities: MOST_TASKS }, signal)));
  return { served: servedBy(details), conditions: namedBy(found.conditions ?? []), leftOut: others.length - asked.length };
}

export function useHostUse(): Polled<HostUse> {
  return usePoll('use of hosts', fetchUse, EVERY_MS);
}
