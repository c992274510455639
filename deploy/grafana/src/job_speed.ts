// Parts of one job's dashboard: how fast it is, and where its time goes.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { graphs, type Section } from './grid';
import { graph, kPlain, limits, number } from './panel';
import { ofAttempt, ofJob, rate } from './query';

function stepTime(quantile: string): string {
  return ofAttempt(
    `max by (job) (tacho_job_step_time_seconds{job="$job",quantile="${quantile}"})`,
  );
}

const kStepTime = graph({
  title: 'Step time',
  description:
    'Quantiles over the newest steps. In synchronous training all tasks wait for the slowest ' +
    'one, so all have the same step time.',
  unit: units.Seconds,
  thresholds: kPlain,
  queries: [
    { expr: stepTime('0.5'), legend: 'p50' },
    { expr: stepTime('0.9'), legend: 'p90' },
    { expr: stepTime('0.99'), legend: 'p99' },
  ],
  min: 0,
});

const kPhases = graph({
  title: 'Phases of a step',
  description:
    'Mean over the tasks of the parts of a step that the trainer recorded: compute, wait for ' +
    'data, wait for other tasks, checkpoint, evaluation.',
  unit: units.Seconds,
  thresholds: kPlain,
  stacked: true,
  queries: [
    { expr: ofJob('compute_seconds', 'avg'), legend: 'compute' },
    { expr: ofJob('data_wait_seconds', 'avg'), legend: 'wait for data' },
    { expr: ofJob('comm_wait_seconds', 'avg'), legend: 'wait for tasks' },
    { expr: ofJob('checkpoint_seconds', 'avg'), legend: 'checkpoint' },
    { expr: ofJob('eval_seconds', 'avg'), legend: 'evaluation' },
  ],
  min: 0,
});

const kBarrier = graph({
  title: 'Who waits for whom',
  description:
    'A straggler computes longest and waits shortest. If the highest compute time is far above ' +
    'the median and the shortest wait is near 0, one task is slow. The conditions name it.',
  unit: units.Seconds,
  thresholds: kPlain,
  queries: [
    { expr: ofJob('compute_seconds', 'max'), legend: 'compute: slowest task' },
    { expr: ofJob('compute_seconds', 'p50'), legend: 'compute: median' },
    { expr: ofJob('comm_wait_seconds', 'min'), legend: 'wait for tasks: shortest' },
    { expr: ofJob('data_wait_seconds', 'max'), legend: 'wait for data: longest' },
  ],
  min: 0,
});

const kThroughput = graph({
  title: 'Throughput and utilisation',
  description:
    'Tokens a second over all tasks; on the right the FLOPs of the model as a share of the ' +
    'chips\' peak (MFU). docs/goodput.md has the formulas.',
  unit: units.Short,
  thresholds: kPlain,
  queries: [
    { expr: ofAttempt('max by (job) (tacho_job_tokens_per_second{job="$job"})'),
      legend: 'tokens a second' },
    { expr: ofAttempt('max by (job) (tacho_job_mfu_ratio{job="$job"})'), legend: 'MFU' },
  ],
  right: [{ pattern: 'MFU', unit: units.PercentUnit, label: 'MFU' }],
  min: 0,
});

export const kSpeed: Section = {
  title: 'Speed',
  lines: [graphs(kStepTime, kPhases), graphs(kBarrier, kThroughput)],
};

const kRatio = number({
  title: 'Goodput',
  description: 'Productive steps as a share of the wall time since the first attempt began.',
  unit: units.PercentUnit,
  thresholds: limits(0.9, 0.7),
  queries: [{ expr: 'max(tacho_job_goodput_ratio{job="$job"})', legend: 'goodput' }],
  min: 0,
  max: 1,
});

const kLost = number({
  title: 'Lost since the beginning',
  description: 'Wall time without productive steps, over all attempts.',
  unit: units.Seconds,
  thresholds: kPlain,
  queries: [{
    expr: 'max(tacho_job_wall_seconds_total{job="$job"}) * ' +
      '(1 - max(tacho_job_goodput_ratio{job="$job"}))',
    legend: 'lost',
  }],
  min: 0,
  decimals: 1,
});

const kBucketsNow = graph({
  title: 'Where time goes',
  description:
    'How each second of wall time is spent. The buckets add up to one second. Repeated steps ' +
    'are wasted.',
  unit: units.PercentUnit,
  thresholds: kPlain,
  stacked: true,
  queries: [{
    expr: `max by (bucket) (${rate('tacho_job_goodput_seconds_total', 'job="$job"')})`,
    legend: '{{bucket}}',
  }],
  min: 0,
});

const kBucketsTotal = graph({
  title: 'Where time went, in total',
  description: 'Seconds in each bucket since the first attempt began, over all attempts.',
  unit: units.Seconds,
  thresholds: kPlain,
  stacked: true,
  queries: [{
    expr: 'max by (bucket) (tacho_job_goodput_seconds_total{job="$job"})', legend: '{{bucket}}',
  }],
  min: 0,
});

export const kGoodputSection: Section = {
  title: 'Goodput',
  lines: [
    { height: 4, panels: [kRatio, kLost] },
    graphs(kBucketsNow, kBucketsTotal),
  ],
};
