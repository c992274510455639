// The jobs of the fleet, kept current by what changed since the last answer.
import { useRef } from 'preact/hooks';
import { fleet } from '../api/calls';
import { num } from '../api/json';
import { usePoll, type Polled } from '../api/poll';
import type { FleetJob, FleetResponse, FleetTotals, Matcher } from '../api/types';
import { fleetStore } from '../app/store';

export interface FleetState {
  revision: string;
  jobs: Map<string, FleetJob>;
  totals: FleetTotals;
  leftOut: number;
}

// The job of the agents' own series. It trains nothing, and has the screen Hosts.
const HOSTS_JOB = 'hosts';
const EVERY_MS = 5000;
const SPARK_POINTS = 36;
const MOST_JOBS = 10_000;

// `old` with what `answer` says. A new object, so that the screen draws again.
export function apply(old: FleetState | null, answer: FleetResponse): FleetState {
  const jobs = answer.complete || !old ? new Map<string, FleetJob>() : new Map(old.jobs);
  for (const name of answer.gone ?? []) jobs.delete(name);
  for (const job of answer.jobs ?? []) {
    const name = job.job?.name ?? '';
    if (name !== HOSTS_JOB) jobs.set(name, job);
  }
  return { revision: String(answer.revision ?? 0), jobs, totals: answer.totals ?? {}, leftOut: num(answer.leftOut) };
}

export function useFleet(matchers: Matcher[], attributes: string[]): Polled<FleetState> {
  const key = `fleet ${JSON.stringify([matchers, attributes])}`;
  const kept = useRef<{ key: string; state: FleetState | null }>({ key, state: null });
  return usePoll(
    key,
    async (signal) => {
      if (kept.current.key !== key) kept.current = { key, state: null };
      const old = kept.current.state;
      const answer = await fleet(
        { sinceRevision: old?.revision ?? '0', sparkPoints: SPARK_POINTS, maxJobs: MOST_JOBS, matchers, attributes },
        signal,
        5,
      );
      const state = apply(old, answer);
      if (kept.current.key === key) kept.current.state = state;
      if (!matchers.length) fleetStore.set([...state.jobs.values()]);
      return state;
    },
    EVERY_MS,
  );
}
