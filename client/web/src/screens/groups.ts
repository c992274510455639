// What a metric is about, by its name: the groups of the metrics screen, and the metrics with which
// the overview begins. Names compare as the collector's signals do (docs/notation.md): case, and
// what is neither a letter nor a digit, does not count.

export function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '_').replace(/^_|_$/g, '');
}

const GROUPS: [string, RegExp][] = [
  ['Agents', /^tacho_/],
  ['Chips', /^(chip|tpu|dcgm|nvidia_smi|duty_cycle|hbm|tensorcore|kubernetes_io_.*accelerator|gpu)/],
  ['Host', /^(host|node|process|network|disk|container)_/],
  ['Speed', /(step_time|_time_s|seconds$|_ms$|_wait|throughput|tokens|examples|samples|per_second|iter_time|mfu|flops|utiliza|dt_ms)/],
  ['Learning', /(loss|acc(uracy)?\b|acc_|_norm|^norm|learning_rate|^lr|perplexity|reward|entropy|epoch|bleu|score|grad|weight|param|momentum|temperature)/],
];

// Of what is not here, by name; then the rest.
export const GROUP_ORDER = ['Pinned', 'Learning', 'Speed', 'Chips', 'Host', 'Agents'];

export function groupOf(name: string): string {
  const plain = plainName(name);
  const found = GROUPS.find(([, pattern]) => pattern.test(plain));
  if (found) return found[0];
  const prefix = /^([A-Za-z0-9]+)[/.]/.exec(name);
  return prefix ? prefix[1] : 'Other';
}

function first(names: string[], wanted: (string | RegExp)[]): string {
  const plain = names.map((name) => [plainName(name), name]);
  for (const want of wanted) {
    const found = plain.find(([p]) => (typeof want === 'string' ? p === want : want.test(p)));
    if (found) return found[1];
  }
  return '';
}

const HELD_OUT = /eval|val|test/;

// The curve that says whether the job learns.
export function mainMetric(names: string[]): string {
  const training = names.filter((name) => !HELD_OUT.test(plainName(name)));
  return (
    first(training, ['loss', 'train_loss', 'training_loss', 'loss_train', 'lm_loss', /(^|_)loss($|_)/]) ||
    first(names, [/loss/, /reward/, /accuracy|acc$/]) ||
    names.find((name) => groupOf(name) === 'Learning') ||
    names[0] || ''
  );
}

export function stepMetric(names: string[]): string {
  return first(names, ['step_time_seconds', 'step_time', /(step|iter(ation)?)_time/, 'seconds_per_step']);
}

// What shows a slow task: its own work, before it waits for the others; else its steps.
export function workMetric(names: string[]): string {
  return first(names, ['compute_seconds', 'compute_time', 'compute_time_seconds', 'forward_backward_seconds']) || stepMetric(names);
}
