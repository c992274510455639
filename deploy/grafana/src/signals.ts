// The metric names that dashboards look for, by signal. The collector's conditions use each of them
// for the same signal (docs/notation.md); a test compares.
import { ofAttempt, type Stat } from './query';

export const kSignals = {
  loss: [
    'loss', 'train_loss', 'training_loss', 'lm_loss', 'reduced_train_loss', 'learning_loss',
    'loss_metrics_global_avg_loss',
  ],
  evalLoss: ['eval_loss', 'val_loss', 'valid_loss', 'validation_loss', 'lm_loss_validation'],
  accuracy: ['accuracy', 'train_accuracy', 'train_acc', 'acc'],
  evalAccuracy: ['eval_accuracy', 'val_accuracy', 'val_acc', 'validation_accuracy'],
  learningRate: ['learning_rate', 'lr', 'train_learning_rate', 'learning_current_learning_rate'],
  gradNorm: ['grad_norm', 'global_grad_norm', 'train_grad_norm', 'learning_grad_norm'],
  paramNorm: ['param_norm', 'params_norm', 'learning_param_norm'],
} as const;

export type Signal = keyof typeof kSignals;

// One statistic of a signal over the tasks of the chosen job; a line for each name it has there.
export function ofSignal(signal: Signal, stat: Stat): string {
  const names = `tacho_job_(${kSignals[signal].join('|')})`;
  const selector = `{__name__=~"${names}",job="$job",host="",stat="${stat}"}`;
  // Prometheus drops the name on the way; the label keeps it.
  const named = `label_replace(${selector}, "metric", "$1", "__name__", "tacho_job_(.+)")`;
  return ofAttempt(`max by (job, metric) (${named})`);
}
