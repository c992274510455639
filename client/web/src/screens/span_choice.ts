// The stretch of time that the screens of hosts show: the last hour, unless the URL says otherwise.
import { getJob } from '../api/calls';
import { ms } from '../api/json';
import { usePoll, type Polled } from '../api/poll';
import type { GetJobResponse } from '../api/types';
import type { Route } from '../app/route';
import { parseRange, steppedNow, type Extent } from './view';

export const LASTS = ['15m', '1h', '6h', '1d', '7d'] as const;
export type Last = (typeof LASTS)[number];

const EVERY_MS = 60_000;
const LENGTHS: Record<Last, number> = { '15m': 900, '1h': 3600, '6h': 21_600, '1d': 86_400, '7d': 604_800 };

// The job "hosts": its metrics, and when it began.
export function useHostsJob(): Polled<GetJobResponse> {
  return usePoll('job hosts', (signal) => getJob({ job: 'hosts', maxEntities: 1 }, signal), EVERY_MS);
}

// What the axis covers, and the part of it in view.
export function spanOf(route: Route, detail: GetJobResponse | null): { full: Extent; shown: Extent; last: Last } {
  const last = LASTS.find((l) => l === route.q.last) ?? '1h';
  const now = steppedNow();
  const first = ms(detail?.job?.firstSeenUnixNs) ?? 0;
  const full: Extent = [Math.max(first, now - LENGTHS[last] * 1000), now];
  return { full, shown: parseRange(route.q.r, 'time', full, now) ?? full, last };
}
