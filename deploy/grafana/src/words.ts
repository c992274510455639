// Texts that several dashboards use.
import type { ValueMappingResult } from '@grafana/grafana-foundation-sdk/dashboard';

export const kHolds: Record<string, ValueMappingResult> = {
  '0': { text: 'no', color: 'green', index: 0 },
  '1': { text: 'holds', color: 'red', index: 1 },
};

export const kConditionsText =
  'A condition is the collector\'s finding about a job; docs/conditions.md defines each.';
