// Part of one job's dashboard: whether it learns.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { graphs, type Section } from './grid';
import { graph, kNone, kPlain } from './panel';
import { ofSignal } from './signals';

const kLoss = graph({
  title: 'Loss: train against eval',
  description:
    'Mean over the tasks of the training loss and the evaluation loss. If eval rises while train ' +
    'falls, the job overfits. A point is missing where no task had a finite value.',
  unit: units.NoUnit,
  thresholds: kPlain,
  decimals: 4,
  queries: [
    { expr: ofSignal('loss', 'avg'), legend: 'train: {{metric}}' },
    { expr: ofSignal('evalLoss', 'avg'), legend: 'eval: {{metric}}' },
  ],
});

const kSpread = graph({
  title: 'Training loss across tasks',
  description: 'Lowest, median and highest over the tasks. In a wide band, one task sees other ' +
    'data or computes something else.',
  unit: units.NoUnit,
  thresholds: kPlain,
  decimals: 4,
  queries: [
    { expr: ofSignal('loss', 'max'), legend: 'max' },
    { expr: ofSignal('loss', 'p50'), legend: 'median' },
    { expr: ofSignal('loss', 'min'), legend: 'min' },
  ],
});

const kAccuracy = graph({
  title: 'Accuracy and learning rate',
  description: 'Mean over the tasks, with the learning rate on the right.',
  unit: units.PercentUnit,
  thresholds: kPlain,
  decimals: 2,
  queries: [
    { expr: ofSignal('accuracy', 'avg'), legend: 'train: {{metric}}' },
    { expr: ofSignal('evalAccuracy', 'avg'), legend: 'eval: {{metric}}' },
    { expr: ofSignal('learningRate', 'max'), legend: 'learning rate' },
  ],
  right: [{ pattern: 'learning rate', unit: units.ScientificNotation, label: 'learning rate' }],
});

const kNorms = graph({
  title: 'Norms of gradients and weights',
  description: 'Highest over the tasks, on a logarithmic scale. Exploding or vanishing norms ' +
    'are straight lines up or down.',
  unit: units.NoUnit,
  thresholds: kPlain,
  logarithmic: true,
  queries: [
    { expr: ofSignal('gradNorm', 'max'), legend: 'gradients: {{metric}}' },
    { expr: ofSignal('paramNorm', 'max'), legend: 'weights: {{metric}}' },
  ],
});

const kNonFiniteValues = '{__name__=~"tacho_job_.+",job="$job",stat="non_finite",host=""}';

const kNonFinite = graph({
  title: 'Values that are NaN or infinite',
  description: 'Tasks whose newest value is NaN or infinite, by metric. Anything above 0 is bad.',
  unit: units.Short,
  thresholds: kNone,
  showThresholds: true,
  decimals: 0,
  min: 0,
  queries: [
    { expr: `sum(${kNonFiniteValues})`, legend: 'all metrics' },
    {
      expr: `max by (metric) (label_replace(${kNonFiniteValues}, ` +
        '"metric", "$1", "__name__", "tacho_job_(.+)")) > 0',
      legend: '{{metric}}',
    },
  ],
});

export const kLearning: Section = {
  title: 'Learning',
  lines: [
    graphs(kLoss, kAccuracy),
    graphs(kSpread, kNorms, kNonFinite),
  ],
};
