// What is compared, as the URL has it: "a@1,b" is attempt 1 of a, and b as a whole. Commas, at-signs
// and percent signs in names are percent-encoded once more.
import { compare, type Comparison } from '../api/calls';
import { num } from '../api/json';
import type { Alignment, CompareMetric, CompareRequest, ComparedColumn, Subject } from '../api/types';

export interface Compared {
  job: string;
  attempt: number | null; // Null: what counts of all attempts.
}

export const MOST_SUBJECTS = 20;
const MOST_A_CALL = 16;

export function parseSubjects(text: string | undefined): Compared[] {
  const found = (text ?? '').split(',').filter(Boolean).map((part): Compared => {
    const [, name, attempt] = /^(.*?)(?:@(\d+))?$/.exec(part)!;
    return { job: name.replace(/%(2C|40|25)/g, (code) => decodeURIComponent(code)), attempt: attempt === undefined ? null : Number(attempt) };
  });
  return found.slice(0, MOST_SUBJECTS);
}

export function formatSubjects(subjects: Compared[]): string {
  return subjects.map(nameInLink).join(',');
}

function nameInLink({ job, attempt }: Compared): string {
  return job.replace(/[%,@]/g, (c) => encodeURIComponent(c)) + (attempt === null ? '' : `@${attempt}`);
}

export function nameOf({ job, attempt }: Compared): string {
  return attempt === null ? job : `${job}@${attempt}`;
}

function asSubject({ job, attempt }: Compared): Subject {
  return attempt === null ? { job } : { job, attempt };
}

// One call compares 16, and always with the first: more go in several calls that all begin with it.
export function calls(subjects: Compared[]): Compared[][] {
  const [first, ...rest] = subjects;
  if (!first) return [];
  const out: Compared[][] = [];
  for (let i = 0; i === 0 || i < rest.length; i += MOST_A_CALL - 1) out.push([first, ...rest.slice(i, i + MOST_A_CALL - 1)]);
  return out;
}

export interface Column extends ComparedColumn {
  positions: number[];
}

export interface Row {
  metric: NonNullable<CompareMetric['metric']>;
  columns: (Column | null)[]; // One a subject.
}

// The rows of several calls as if they were of one.
export function merged(answers: Comparison[], sizes: number[]): Row[] {
  const rows = new Map<string, Row>();
  const width = 1 + sizes.reduce((sum, size) => sum + size - 1, 0);
  let start = 1;
  answers.forEach((answer, a) => {
    for (const metric of answer.metrics) {
      const name = metric.metric?.name ?? '';
      let row = rows.get(name);
      if (!row) rows.set(name, (row = { metric: metric.metric ?? {}, columns: Array<Column | null>(width).fill(null) }));
      const positions = (metric.positions ?? []).map(num);
      (metric.columns ?? []).forEach((column, i) => {
        const at = i === 0 ? 0 : start + i - 1;
        row.columns[at] ??= { ...column, positions };
      });
    }
    start += sizes[a] - 1;
  });
  return [...rows.values()];
}

export interface Difference {
  name: string;
  values: string[];
}

// Attributes that are not equal for all. `own` has each subject's, as GetJob returned them.
export function differences(own: Record<string, string>[]): { different: Difference[]; equal: number } {
  const names = [...new Set(own.flatMap((o) => Object.keys(o)))].sort();
  const all = names.map((name) => ({ name, values: own.map((o) => o[name] ?? '') }));
  const different = all.filter((d) => d.values.some((v) => v !== d.values[0]));
  return { different, equal: all.length - different.length };
}

export async function compareAll(
  subjects: Compared[], rest: Omit<CompareRequest, 'subjects'>, signal?: AbortSignal,
): Promise<{ rows: Row[]; begins: (string | number | undefined)[] }> {
  const parts = calls(subjects);
  const answers = await Promise.all(parts.map((part) => compare({ subjects: part.map(asSubject), packed: true, ...rest }, signal)));
  const begins = answers.flatMap((a, i) => (a.subjects.subjects ?? []).slice(i ? 1 : 0).map((s) => s.firstUnixNs));
  return { rows: merged(answers, parts.map((p) => p.length)), begins };
}

export type X = 'step' | 'elapsed' | 'tokens';

export const alignment = (x: X): Alignment => (x === 'elapsed' ? 'ALIGNMENT_ELAPSED' : 'ALIGNMENT_STEP');

// A position of an answer along the axis: tokens are steps times the tokens of one.
export function placed(x: X, position: number, tokensPerStep: number): number {
  if (x === 'elapsed') return position / 1e9;
  return x === 'tokens' ? position * tokensPerStep : position;
}
