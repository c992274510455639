// The newest fleet that any screen has read, so that the palette finds jobs without asking.
// It goes with the token: nobody else may see these jobs.
import { auth } from '../api/auth';
import type { FleetJob } from '../api/types';

let jobs: FleetJob[] = [];

export const fleetStore = {
  get jobs(): FleetJob[] {
    return jobs;
  },
  set(value: FleetJob[]): void {
    jobs = auth.needed ? [] : value; // An answer may come after the person has signed out.
  },
};

auth.on(() => {
  if (auth.needed) fleetStore.set([]);
});
