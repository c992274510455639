// All jobs at once: what needs attention, then what everything costs and yields.
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import * as units from '@grafana/grafana-foundation-sdk/units';
import { type Board, pageUrlOf, urlOf } from './board';
import { graphs, numbers, type Section } from './grid';
import {
  atLeast, graph, heatMap, kNone, kPlain, limits, number, type PanelBuilder, rows, states,
} from './panel';
import { kHostsJob, rate } from './query';
import { kConditionsText } from './words';

// The job of the hosts' own metrics trains nothing.
const kJobs = `job=~"$job",job!="${kHostsJob}"`;

function ofFleet(title: string, description: string, expr: string, options: {
  unit?: string; thresholds?: Parameters<typeof number>[0]['thresholds']; max?: number;
} = {}): PanelBuilder {
  return number({
    title,
    description,
    unit: options.unit ?? units.Short,
    thresholds: options.thresholds ?? kPlain,
    queries: [{ expr, legend: title }],
    min: 0,
    ...(options.max === undefined ? {} : { max: options.max }),
  });
}

const kSummary = [
  ofFleet(
    'Jobs that report', 'Jobs with at least one task that reports now.',
    `count(max by (job) (tacho_job_tasks{${kJobs}}) > 0)`,
  ),
  ofFleet(
    'Tasks that report', 'Tasks of all jobs that report now.',
    `sum(max by (job) (tacho_job_tasks{${kJobs}}))`,
  ),
  ofFleet(
    'Jobs with a critical condition',
    `Jobs that have a condition of severity critical. ${kConditionsText}`,
    'sum(max by (job) (tacho_job_condition{job=~"$job",severity="critical"}))',
    { thresholds: kNone },
  ),
  ofFleet(
    'Goodput of the fleet',
    'Productive steps as a share of the wall time of all jobs, in the time shown.',
    `sum(increase(tacho_job_goodput_seconds_total{job=~"$job",bucket="productive_step"}` +
      `[$__range])) / sum(increase(tacho_job_wall_seconds_total{job=~"$job"}[$__range]))`,
    { unit: units.PercentUnit, thresholds: limits(0.9, 0.7), max: 1 },
  ),
];

const kJobTable = rows({
  title: 'Jobs',
  description:
    'One line per job, the worst first. A silent job stays for an hour, with 0 tasks. Click the ' +
    'name to open the job.',
  unit: units.Short,
  thresholds: kPlain,
  queries: [
    { expr: `sum by (job) (tacho_job_condition{${kJobs}})` },
    { expr: `max by (job) (tacho_job_tasks{${kJobs}})` },
    { expr: `max by (job) (tacho_job_last_step{${kJobs},stat="max"})` },
    { expr: `max by (job) (tacho_job_progress_ratio{${kJobs}})` },
    { expr: `max by (job) (tacho_job_remaining_seconds{${kJobs}})` },
    { expr: `max by (job) (tacho_job_step_time_seconds{${kJobs},quantile="0.5"})` },
    { expr: `max by (job) (tacho_job_mfu_ratio{${kJobs}})` },
    { expr: `max by (job) (tacho_job_goodput_ratio{${kJobs}})` },
    { expr: `time() - max by (job) (tacho_job_last_seen_timestamp_seconds{${kJobs}})` },
  ],
  columns: [
    { from: 'job', title: 'Job', links: [
      { title: 'This job', url: urlOf('job', { job: '${__value.text:percentencode}' }) },
      { title: 'On the page', url: pageUrlOf('job/${__value.text:percentencode}'),
        targetBlank: true },
    ] },
    { from: 0, title: 'Conditions', decimals: 0, thresholds: kNone },
    { from: 1, title: 'Tasks', decimals: 0, thresholds: atLeast(1) },
    { from: 2, title: 'Step', unit: units.LocaleFormat, decimals: 0 },
    { from: 3, title: 'Progress', unit: units.PercentUnit, decimals: 1 },
    { from: 4, title: 'Left', unit: units.Seconds, decimals: 1 },
    { from: 5, title: 'Step time', unit: units.Seconds },
    { from: 6, title: 'MFU', unit: units.PercentUnit, decimals: 1 },
    { from: 7, title: 'Goodput', unit: units.PercentUnit, decimals: 1,
      thresholds: limits(0.9, 0.7) },
    { from: 8, title: 'Last seen', unit: units.Seconds, decimals: 0,
      thresholds: limits(60, 300) },
  ],
  sortBy: { title: 'Conditions', descending: true },
});

const kConditionTable = rows({
  title: 'Conditions that hold',
  description:
    `Each condition with its reason, and host, task, chip and step of its first culprit. ` +
    kConditionsText,
  unit: units.Short,
  thresholds: kPlain,
  queries: [
    {
      expr: 'max by (job, condition, severity, reason, host, task, chip, step) ' +
        '(tacho_job_condition_info{job=~"$job"})',
    },
    {
      expr: 'time() - max by (job, condition) ' +
        '(tacho_job_condition_since_timestamp_seconds{job=~"$job"})',
    },
  ],
  columns: [
    { from: 'job', title: 'Job', links: [
      { title: 'This job', url: urlOf('job', { job: '${__value.text:percentencode}' }) },
      { title: 'This verdict on the page', targetBlank: true, url: pageUrlOf(
        'job/${__value.text:percentencode}?v=${__data.fields.Condition:percentencode}') },
    ] },
    { from: 'condition', title: 'Condition' },
    { from: 'severity', title: 'Severity' },
    { from: 1, title: 'For', unit: units.Seconds, decimals: 0 },
    { from: 'reason', title: 'Reason', width: 380 },
    { from: 'host', title: 'Host', links: [
      { title: 'This host', url: urlOf('host', { host: '${__value.text:percentencode}' }) },
      { title: 'On the page', url: pageUrlOf('host/${__value.text:percentencode}'),
        targetBlank: true },
    ] },
    { from: 'task', title: 'Task' },
    { from: 'chip', title: 'Chip' },
    { from: 'step', title: 'Step' },
  ],
  hidden: ['Value #A'],
  sortBy: { title: 'For', descending: false },
});

const kHealth = states({
  title: 'Conditions by job',
  description: `How many conditions each job has. ${kConditionsText}`,
  unit: units.Short,
  thresholds: [
    { value: null, color: 'green' }, { value: 1, color: 'orange' }, { value: 3, color: 'red' },
  ],
  queries: [{ expr: `sum by (job) (tacho_job_condition{${kJobs}})`, legend: '{{job}}' }],
  decimals: 0,
}, {});

function byJob(title: string, description: string, metric: string, matchers: string, unit: string)
  : PanelBuilder {
  return graph({
    title,
    description,
    unit,
    thresholds: kPlain,
    queries: [
      { expr: `max by (job) (${metric}{${kJobs}${matchers}})`, legend: '{{job}}' },
    ],
    min: 0,
  });
}

const kGoodput = graph({
  title: 'Goodput by job',
  description: 'Productive steps as a share of the wall time, over the last half hour.',
  unit: units.PercentUnit,
  thresholds: limits(0.9, 0.7),
  showThresholds: true,
  queries: [{
    expr: `sum by (job) (rate(tacho_job_goodput_seconds_total{${kJobs},` +
      'bucket="productive_step"}[30m])) / ' +
      `sum by (job) (rate(tacho_job_wall_seconds_total{${kJobs}}[30m]))`,
    legend: '{{job}}',
  }],
  min: 0,
  max: 1,
});

const kLost = graph({
  title: 'Where time goes',
  description: 'How the jobs spend their wall time. The unit is jobs: seconds per second.',
  unit: units.Short,
  thresholds: kPlain,
  stacked: true,
  queries: [{
    expr: `sum by (bucket) (${rate('tacho_job_goodput_seconds_total', kJobs)})`,
    legend: '{{bucket}}',
  }],
  min: 0,
});

const kChips = heatMap({
  title: 'Chips by host: duty cycle',
  description: 'Mean over the chips of each host. Blue is idle, red is busy.',
  unit: units.PercentUnit,
  thresholds: limits(0.5, 0.2),
  queries: [{
    expr: 'max by (host) (tacho_job_chip_duty_cycle_ratio' +
      `{job="${kHostsJob}",host!="",stat="avg"})`,
    legend: '{{host}}',
  }],
  min: 0,
  max: 1,
});

const kPower = graph({
  title: 'Power of all chips',
  description: 'Sum over all chips that report their power.',
  unit: units.Watt,
  thresholds: kPlain,
  queries: [{
    expr: `sum(tacho_job_chip_power_watts{job="${kHostsJob}",host="",stat="sum"})`,
    legend: 'power',
  }],
  min: 0,
});

const kSections: readonly Section[] = [
  {
    title: 'What needs attention',
    lines: [
      numbers(...kSummary),
      { height: 9, panels: [kJobTable] },
      { height: 8, panels: [kConditionTable] },
      { height: 8, panels: [kHealth] },
    ],
  },
  {
    title: 'Progress and speed',
    lines: [
      graphs(
        byJob('Progress', 'Newest step as a share of the planned steps.',
          'tacho_job_progress_ratio', '', units.PercentUnit),
        byJob('Step time', 'Median over the newest steps.',
          'tacho_job_step_time_seconds', ',quantile="0.5"', units.Seconds),
      ),
      graphs(
        byJob('Tokens a second', 'Over all tasks of the job.',
          'tacho_job_tokens_per_second', '', units.Short),
        byJob('Model FLOPs utilisation',
          'FLOPs of the model as a share of the peak of its chips.',
          'tacho_job_mfu_ratio', '', units.PercentUnit),
      ),
    ],
  },
  { title: 'Goodput', lines: [graphs(kGoodput, kLost)] },
  {
    title: 'Chips',
    lines: [{ height: 10, panels: [kChips, kPower], widths: [16, 8] }],
  },
];

export const kFleet: Board = {
  name: 'fleet',
  description: 'All training jobs: conditions, progress, speed, goodput, chips.',
  variables: [{
    name: 'job',
    label: 'Job',
    description: 'Training jobs to show.',
    query: `label_values(tacho_job_tasks{job!="${kHostsJob}"}, job)`,
    many: true,
    sort: dashboard.VariableSort.NaturalAsc,
  }],
  sections: kSections,
  screen: '',
};
