// The colours for values of the collector's labels, and texts that several dashboards use.
import type { ValueMappingResult } from '@grafana/grafana-foundation-sdk/dashboard';

export const kBuckets: Record<string, string> = {
  productive_step: 'green',
  initializing: 'light-blue',
  compiling: 'blue',
  restoring: 'purple',
  data_wait: 'yellow',
  checkpoint: 'light-purple',
  evaluation: 'light-green',
  wasted: 'orange',
  stalled: 'red',
  down: 'dark-red',
  other: 'gray',
};

export const kHolds: Record<string, ValueMappingResult> = {
  '0': { text: 'no', color: 'green', index: 0 },
  '1': { text: 'holds', color: 'red', index: 1 },
};

export const kConditionsText =
  'A condition is the collector\'s finding about a job; docs/conditions.md defines each.';
