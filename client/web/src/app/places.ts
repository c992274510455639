// The screens that the header names, and the views of a job, with their titles.
export const PLACES: [string, string][] = [
  ['fleet', 'Fleet'], ['compare', 'Compare'], ['hosts', 'Hosts'], ['agents', 'Agents'], ['collector', 'Collector'],
];

export const JOB_TABS: [string, string][] = [
  ['metrics', 'Metrics'], ['tasks', 'Tasks'], ['timeline', 'Timeline'], ['nan', 'First NaN'], ['goodput', 'Goodput'], ['about', 'About'],
];
