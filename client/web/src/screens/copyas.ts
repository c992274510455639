// What a panel shows, as text that shows the same elsewhere: for tachoctl, for Python.
import type { AxisKind } from '../chart/axis';
import { shellWord } from '../parts/copy';
import type { AttemptMode, Fold } from './series';
import type { Extent } from './view';

export interface Shown {
  job: string;
  metric: string;
  kind: AxisKind;
  range: Extent | null;
  origin: number; // ms since the Unix epoch: where elapsed time begins.
  by: Fold;
  tasks: string[];
  attempts: AttemptMode;
  raw: boolean;
}

const POINTS = 500;

// A string of Python: JSON's escapes are Python's too.
export const pythonWord = (text: string): string => JSON.stringify(text);

// Times in view; null by step, or if everything is in view.
function times({ kind, range, origin }: Shown): Extent | null {
  if (!range || kind === 'step') return null;
  return kind === 'time' ? range : [origin + range[0] * 1000, origin + range[1] * 1000];
}

function steps({ kind, range }: Shown): Extent | null {
  return range && kind === 'step' ? [Math.floor(range[0]), Math.ceil(range[1])] : null;
}

export function tachoctl(s: Shown): string {
  const words = ['tachoctl', 'query', shellWord(s.job), shellWord(s.metric), '--by', s.kind === 'step' ? 'step' : 'time'];
  const [t, n] = [times(s), steps(s)];
  if (n) words.push('--steps', `${n[0]}:${n[1]}`);
  if (t) words.push('--utc', '--from', shellWord(iso(t[0], false)), '--to', shellWord(iso(t[1], true)));
  if (s.tasks.length) words.push('--match', shellWord(`task=~${s.tasks.join('|')}`));
  words.push('--attempts', s.attempts);
  if (!s.raw) {
    words.push('--across', 'avg', '--points', String(POINTS));
    if (s.by !== 'band') words.push('--group-by', s.by);
  }
  return words.join(' ');
}

// Whole seconds that enclose the range.
function iso(ms: number, up: boolean): string {
  const whole = (up ? Math.ceil(ms / 1000) : Math.floor(ms / 1000)) * 1000;
  return new Date(whole).toISOString().slice(0, 19).replace('T', ' ');
}

export function python(s: Shown): string {
  const [t, n] = [times(s), steps(s)];
  const range = n ?? t?.map((ms) => BigInt(Math.round(ms)) * 1_000_000n);
  const more = [
    `by=${pythonWord(s.kind === 'step' ? 'step' : 'time')}`,
    range ? `begin=${range[0]}, end=${range[1]}` : '',
    s.tasks.length ? `matchers=[${pythonWord(`task=~${s.tasks.join('|')}`)}]` : '',
    `attempts=${pythonWord(s.attempts)}`,
    s.raw ? '' : `aggregate="avg", max_points=${POINTS}`,
    s.raw || s.by === 'band' ? '' : `keep=${pythonWord(s.by)}`,
    'output="pandas"',
  ].filter(Boolean);
  return `import tacho\n\n# The collector's address, or None for TACHO_ADDRESS.\nframe = tacho.query(None, ${pythonWord(s.job)}, ${pythonWord(s.metric)}, ${more.join(', ')})\n`;
}
