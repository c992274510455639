// The newest fleet that any screen has read, so that the palette finds jobs without asking.
import type { FleetJob } from '../api/types';

let jobs: FleetJob[] = [];

export const fleetStore = {
  get jobs(): FleetJob[] {
    return jobs;
  },
  set(value: FleetJob[]): void {
    jobs = value;
  },
};
