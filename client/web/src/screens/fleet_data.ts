// The jobs of the fleet, kept current by what changed since the last answer.
import { useEffect, useRef } from 'preact/hooks';
import { fleet } from '../api/calls';
import { feed, type Source } from '../api/feed';
import { ms, num } from '../api/json';
import { live } from '../api/live';
import { usePoll, type Polled } from '../api/poll';
import type { FleetJob, FleetResponse, FleetTotals, Matcher, WatchConditionsResponse } from '../api/types';
import { fleetStore } from '../app/store';

export interface FleetState {
  revision: string;
  jobs: Map<string, FleetJob>;
  totals: FleetTotals;
  leftOut: number;
  hosts: FleetJob | null; // The job that is not shown.
}

// The job of the agents' own series. It trains nothing, and has the screen Hosts.
const HOSTS_JOB = 'hosts';
const EVERY_MS = 5000;
// While the stream is live: jobs that only move on change every ten seconds in the collector's answers.
const CALM_MS = 10_000;
const SOON_MS = 1000; // After a condition has changed.
const SPARK_POINTS = 36;
const MOST_JOBS = 10_000;

// The totals of what is shown.
function without(hosts: FleetJob | null, totals: FleetTotals): FleetTotals {
  if (!hosts) return totals;
  const state = hosts.job?.state;
  const less = (count: number | undefined, by: boolean): number => Math.max(0, num(count) - Number(by));
  return {
    ...totals,
    jobs: less(totals.jobs, true),
    running: less(totals.running, state === 'JOB_STATE_RUNNING'),
    silent: less(totals.silent, state === 'JOB_STATE_SILENT'),
    ended: less(totals.ended, state === 'JOB_STATE_ENDED'),
  };
}

// `old` with what `answer` says. A new object, so that the screen draws again.
export function apply(old: FleetState | null, answer: FleetResponse): FleetState {
  const jobs = answer.complete || !old ? new Map<string, FleetJob>() : new Map(old.jobs);
  let hosts = answer.complete || !old ? null : old.hosts;
  for (const name of answer.gone ?? []) {
    if (name === HOSTS_JOB) hosts = null;
    else jobs.delete(name);
  }
  for (const job of answer.jobs ?? []) {
    const name = job.job?.name ?? '';
    if (name === HOSTS_JOB) hosts = job;
    else jobs.set(name, job);
  }
  const totals = without(hosts, answer.totals ?? {});
  return { revision: String(answer.revision ?? 0), jobs, totals, leftOut: num(answer.leftOut), hosts };
}

// The conditions of all jobs: each change of one makes the rows be asked again.
function conditionsSource(changed: () => void): Source {
  return {
    subject: 'fleet',
    key: 'fleet',
    method: 'tacho.v1.Query/WatchConditions',
    request: () => ({}),
    begin: () => {
      let history = true;
      return (message) => {
        const { conditions = [], live: mark, clockUnixNs } = message as WatchConditionsResponse;
        const clock = ms(clockUnixNs);
        if (clock !== null) live.clock(clock);
        if (conditions.length && !history) changed();
        if (mark) history = false;
        return mark === true;
      };
    },
  };
}

export function useFleet(matchers: Matcher[], attributes: string[]): Polled<FleetState> {
  const key = `fleet ${JSON.stringify([matchers, attributes])}`;
  const kept = useRef<{ key: string; state: FleetState | null }>({ key, state: null });
  const nudge = useRef<(afterMs: number) => void>(() => undefined);
  useEffect(() => {
    feed.watch(conditionsSource(() => nudge.current(SOON_MS)));
    return () => feed.watch(null);
  }, []);
  const polled = usePoll(
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
    CALM_MS,
  );
  nudge.current = polled.nudge;
  return polled;
}
