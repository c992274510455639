// Which tasks of which jobs run on which host, and which conditions name it.
import { conditions, jobIfThere, listJobs } from '../api/calls';
import { ms } from '../api/json';
import { usePoll, type Polled } from '../api/poll';
import type { Condition, GetJobResponse, Job } from '../api/types';
import { fmt } from '../parts/format';
import { severityOf } from '../parts/verdict';

const EVERY_MS = 30_000;
const MOST_JOBS = 200; // Are asked for their tasks, those that run first.
const PAGE = 1000;
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
  leftOut: number; // Jobs that were not asked for their tasks.
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

async function allJobs(states: Job['state'][], signal?: AbortSignal): Promise<Job[]> {
  const out: Job[] = [];
  for (let pageToken = ''; ; ) {
    const page = await listJobs({ states: states.filter((s) => s !== undefined), pageSize: PAGE, pageToken }, signal);
    out.push(...(page.jobs ?? []).filter((j) => j.name !== 'hosts'));
    pageToken = page.nextPageToken ?? '';
    if (!pageToken) return out;
  }
}

export async function fetchUse(signal?: AbortSignal): Promise<HostUse> {
  const [running, ended, found] = await Promise.all([
    allJobs(['JOB_STATE_RUNNING'], signal),
    allJobs(['JOB_STATE_SILENT', 'JOB_STATE_ENDED'], signal),
    conditions({ statuses: ['CONDITION_STATUS_TRUE'] }, signal),
  ]);
  // Of many jobs, those that do not run are history. One that ends meanwhile is in both lists.
  const all = [...new Map([...running, ...ended].map((j) => [j.name, j])).values()];
  const asked = all.slice(0, MOST_JOBS);
  const details = await Promise.all(asked.map((j) => jobIfThere({ job: j.name, maxEntities: MOST_TASKS }, signal)));
  return { served: servedBy(details.filter((d) => d !== null)), conditions: namedBy(found.conditions ?? []), leftOut: all.length - asked.length };
}

export function useHostUse(): Polled<HostUse> {
  return usePoll('use of hosts', fetchUse, EVERY_MS);
}

export function leftOutText(use: HostUse | null): string {
  if (!use?.leftOut) return '';
  return use.leftOut === 1 ? '1 job was not asked for its tasks' : `${fmt.count(use.leftOut)} jobs were not asked for their tasks`;
}
