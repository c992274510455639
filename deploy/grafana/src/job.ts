// One training job: health, progress, learning, speed and chips.
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import * as units from '@grafana/grafana-foundation-sdk/units';
import { type Board, pageUrlOf, urlOf } from './board';
import { graphs, numbers, type Section } from './grid';
import { kLearning } from './job_learning';
import { kChips, kHardware } from './job_chips';
import { kGoodputSection, kSpeed } from './job_speed';
import { atLeast, graph, kNone, kPlain, limits, number, type PanelBuilder, rows, type Spec, states }
  from './panel';
import { kHostsJob, ofAttempt, ofJob } from './query';
import { kConditionsText, kHolds } from './words';

type Figure = Pick<Spec, 'title' | 'description'> & Partial<Spec> & { readonly expr: string };

function figure(spec: Figure): PanelBuilder {
  const queries = [{ expr: spec.expr, legend: spec.title }];
  return number({ unit: units.Short, thresholds: kPlain, queries, ...spec });
}

const kHealth = [
  figure({
    title: 'Conditions that hold',
    description: `Their number; the table below shows which, where and why. ${kConditionsText}`,
    expr: 'sum(max by (condition) (tacho_job_condition{job="$job"}))',
    thresholds: kNone,
    decimals: 0,
  }),
  figure({
    title: 'Progress',
    description: 'Newest step as a share of the attempt\'s planned steps.',
    expr: ofAttempt('max by (job) (tacho_job_progress_ratio{job="$job"})'),
    unit: units.PercentUnit,
    noValue: 'number of planned steps is unknown',
    min: 0,
    max: 1,
  }),
  figure({
    title: 'Time left',
    description: 'Estimate: the steps left, at the pace of the newest steps with their pauses.',
    expr: ofAttempt('max by (job) (tacho_job_remaining_seconds{job="$job"})'),
    unit: units.Seconds,
    noValue: 'number of planned steps is unknown',
    decimals: 1,
  }),
  figure({
    title: 'Last sign of life',
    description: 'Age of the newest row from any task.',
    expr: 'time() - max(tacho_job_last_seen_timestamp_seconds{job="$job"})',
    unit: units.Seconds,
    thresholds: limits(60, 300),
    decimals: 0,
  }),
  figure({
    title: 'Step',
    description: 'Highest step of any task.',
    expr: ofAttempt('max by (job) (tacho_job_last_step{job="$job",stat="max"})'),
    unit: units.LocaleFormat,
  }),
  figure({
    title: 'Steps left',
    description: 'Planned steps minus the highest step.',
    expr: ofAttempt(
      'max by (job) (tacho_job_planned_steps{job="$job"}) - ' +
        'max by (job) (tacho_job_last_step{job="$job",stat="max"})',
    ),
    unit: units.LocaleFormat,
    noValue: 'number of planned steps is unknown',
  }),
  figure({
    title: 'Epoch',
    description: 'The metric epoch, as the trainer records it.',
    expr: ofJob('epoch', 'max'),
    noValue: 'not recorded',
    decimals: 2,
  }),
  figure({
    title: 'Tasks that report',
    description: 'Tasks of the job that report now.',
    expr: 'max(tacho_job_tasks{job="$job"})',
    thresholds: atLeast(1),
    decimals: 0,
  }),
];

const kAbout = rows({
  title: 'About the attempt',
  description: 'Attributes that the trainer recorded for the newest attempt.',
  unit: units.Short,
  thresholds: kPlain,
  queries: [{
    expr: 'max by (attempt, model, batch_size, device_kind, device_count, source_revision, ' +
      'config_fingerprint) (tacho_job_info{job="$job",attempt=~"$attempt"})',
  }],
  columns: [
    { from: 'attempt', title: 'Attempt', width: 80 },
    { from: 'model', title: 'Model' },
    { from: 'batch_size', title: 'Batch size' },
    { from: 'device_kind', title: 'Chip' },
    { from: 'device_count', title: 'Chips' },
    { from: 'source_revision', title: 'Source' },
    { from: 'config_fingerprint', title: 'Configuration' },
  ],
  hidden: ['Value'],
});

const kCulprits = rows({
  title: 'Why, and where',
  description:
    'Each condition that holds, with host, task, chip and step of its first culprit. The ' +
    'variable task selects the conditions about one task.',
  unit: units.Short,
  thresholds: kPlain,
  queries: [
    {
      expr: 'max by (condition, severity, reason, host, task, chip, step, metric) ' +
        '(tacho_job_condition_info{job="$job",task=~"$task"})',
    },
    {
      expr: 'time() - max by (condition) ' +
        '(tacho_job_condition_since_timestamp_seconds{job="$job"})',
    },
    { expr: 'max by (condition) (tacho_job_condition_culprits{job="$job"})' },
  ],
  columns: [
    { from: 'condition', title: 'Condition', links: [
      { title: 'This verdict on the page', targetBlank: true,
        url: pageUrlOf('job/${job:percentencode}?v=${__value.text:percentencode}') },
    ] },
    { from: 'severity', title: 'Severity', width: 90 },
    { from: 1, title: 'For', unit: units.Seconds, decimals: 0, width: 90 },
    { from: 'reason', title: 'Reason', width: 320 },
    { from: 'host', title: 'Host', links: [
      { title: 'This host', url: urlOf('host', { host: '${__value.text:percentencode}' }) },
      { title: 'On the page', url: pageUrlOf('host/${__value.text:percentencode}'),
        targetBlank: true },
    ] },
    { from: 'task', title: 'Task', width: 70 },
    { from: 'chip', title: 'Chip', width: 70 },
    { from: 'step', title: 'Step', width: 90 },
    { from: 'metric', title: 'Metric' },
    { from: 2, title: 'Culprits', decimals: 0, width: 90 },
  ],
  hidden: ['Value #A'],
  sortBy: { title: 'For', descending: false },
});

const kConditions = states({
  title: 'Conditions',
  description: `When each condition holds. ${kConditionsText}`,
  unit: units.Short,
  thresholds: kNone,
  queries: [{
    expr: 'max by (condition) (tacho_job_condition{job="$job"})', legend: '{{condition}}',
  }],
}, kHolds);

const kSteps = graph({
  title: 'Steps',
  description:
    'Newest step of the first and of the last task. They move apart when tasks fall behind. ' +
    'Both are flat when the job stands still, and drop at a restart.',
  unit: units.LocaleFormat,
  thresholds: kPlain,
  queries: [
    { expr: ofAttempt('max by (job) (tacho_job_last_step{job="$job",stat="max"})'),
      legend: 'furthest task' },
    { expr: ofAttempt('min by (job) (tacho_job_last_step{job="$job",stat="min"})'),
      legend: 'last task' },
  ],
  min: 0,
});

const kReporting = graph({
  title: 'Who reports',
  description: 'Tasks and hosts that report, and the number of the newest attempt.',
  unit: units.Short,
  thresholds: kPlain,
  queries: [
    { expr: 'max(tacho_job_tasks{job="$job"})', legend: 'tasks' },
    { expr: 'max(tacho_job_hosts{job="$job"})', legend: 'hosts' },
    { expr: 'max(tacho_job_attempt{job="$job"})', legend: 'attempt' },
  ],
  right: [{ pattern: 'attempt', unit: units.NoUnit, label: 'attempt' }],
  min: 0,
  decimals: 0,
});

const kState: Section = {
  title: 'Progress and state',
  lines: [
    numbers(...kHealth.slice(0, 4)),
    numbers(...kHealth.slice(4)),
    { height: 4, panels: [kAbout] },
    { height: 7, panels: [kCulprits] },
    { height: 14, panels: [kConditions] },
    graphs(kSteps, kReporting),
  ],
};

export const kJob: Board = {
  name: 'job',
  description: 'One training job: health, progress, learning, speed, chips, goodput.',
  variables: [
    {
      name: 'job',
      label: 'Job',
      description: 'The training job.',
      query: `label_values(tacho_job_tasks{job!="${kHostsJob}"}, job)`,
    },
    {
      name: 'attempt',
      label: 'Attempt',
      description: 'Shows only the time in which one of these attempts was the newest.',
      query: 'label_values(tacho_job_info{job="$job"}, attempt)',
      many: true,
      sort: dashboard.VariableSort.NumericalDesc,
    },
    {
      name: 'task',
      label: 'Task',
      description: 'Tasks that a condition names as culprits.',
      query: 'label_values(tacho_job_condition_info{job="$job"}, task)',
      many: true,
      sort: dashboard.VariableSort.NumericalAsc,
    },
    {
      name: 'host',
      label: 'Host',
      description: 'Hosts of the job whose chips to show.',
      query: 'label_values(tacho_job_host_info{job="$job"}, host)',
      many: true,
    },
  ],
  marks: [{
    name: 'Conditions begin',
    expr: 'max by (condition) (tacho_job_condition_since_timestamp_seconds{job="$job"}) * 1000',
    title: '{{condition}}',
    color: 'red',
  }],
  screen: 'job/${job:percentencode}',
  sections: [kState, kLearning, kSpeed, kChips, kHardware, kGoodputSection],
};
