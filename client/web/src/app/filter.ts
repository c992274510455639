// The language of the fleet's filter: words separated by blanks, of which all must hold.
//
//   llama              the name contains it
//   state:running      or silent, ended; several with commas
//   sev:critical       or warning, info, healthy
//   tag:keep  group:g  marks
//   host:host-12       one of its hosts; * stands for any text
//   user=ana           an attribute; user~an.* (RE2), user!=ana
//   -WORD              the opposite of name, state, sev, tag, group
import type { FleetJob, Matcher } from '../api/types';

export interface Filter {
  // Judged here, at once.
  test: (job: FleetJob) => boolean;
  // Judged by the collector.
  matchers: Matcher[];
  // Words that are not understood, such as "state:runing".
  problems: string[];
}

const STATES = ['running', 'silent', 'ended'];
const SEVERITIES = ['critical', 'warning', 'info', 'healthy'];

export function stateOf(job: FleetJob): string {
  return (job.job?.state ?? '').replace('JOB_STATE_', '').toLowerCase();
}

export function worst(job: FleetJob): string {
  const severity = (job.conditions?.[0]?.severity ?? '').replace('CONDITION_SEVERITY_', '').toLowerCase();
  return severity && severity !== 'unspecified' ? severity : 'healthy';
}

type Test = (job: FleetJob) => boolean;

const one =
  (get: (job: FleetJob) => string, known: string[]) =>
  (value: string): Test | null => {
    const wanted = value.toLowerCase().split(',').filter(Boolean);
    if (!wanted.every((w) => known.includes(w))) return null;
    return (job) => wanted.includes(get(job));
  };

const KEYS: Record<string, (value: string) => Test | null> = {
  state: one(stateOf, STATES),
  sev: one(worst, SEVERITIES),
  tag: (value) => (job) => value.split(',').every((tag) => job.job?.marks?.tags?.includes(tag)),
  group: (value) => (job) => job.job?.marks?.group === value,
  name: (value) => (job) => (job.job?.name ?? '').toLowerCase().includes(value.toLowerCase()),
};

const escapeRe2 = (text: string): string => text.replace(/[\\^$.|?+()[\]{}]/g, '\\$&');

function hostMatcher(value: string): Matcher {
  if (!value.includes('*')) return { label: 'host', op: 'OP_EQUAL', value };
  return { label: 'host', op: 'OP_MATCHES', value: value.split('*').map(escapeRe2).join('.*') };
}

const OPERATORS: Record<string, Matcher['op']> = { '=': 'OP_EQUAL', '!=': 'OP_NOT_EQUAL', '~': 'OP_MATCHES', '!~': 'OP_NOT_MATCHES' };

// Words as they are written, with the quotes that hold blanks.
const written = (text: string): string[] => text.match(/(?:"[^"]*"?|[^\s"])+/g) ?? [];
const plain = (word: string): string => word.replace(/"/g, '');

export function words(text: string): string[] {
  return written(text).map(plain);
}

export function parseFilter(text: string): Filter {
  const tests: Test[] = [];
  const filter: Filter = { test: (job) => tests.every((test) => test(job)), matchers: [], problems: [] };
  for (const word of words(text)) {
    const attribute = /^([A-Za-z_][\w.-]*)(!=|!~|=|~)(.+)$/.exec(word);
    const negative = word.length > 1 && word.startsWith('-');
    const [, key, value] = /^-?([a-z]+):(.+)$/.exec(word) ?? [];
    if (attribute) {
      filter.matchers.push({ label: attribute[1], op: OPERATORS[attribute[2]], value: attribute[3] });
    } else if (key === 'host' && negative || /^-[A-Za-z_][\w.-]*(!=|!~|=|~)/.test(word)) {
      filter.problems.push(word); // The collector has != and !~ for attributes, and nothing for hosts.
    } else if (key === 'host') {
      filter.matchers.push(hostMatcher(value));
    } else {
      const known = key !== undefined && Object.hasOwn(KEYS, key);
      const test = known ? KEYS[key](value) : KEYS.name(negative ? word.slice(1) : word);
      if (!test) filter.problems.push(word);
      else tests.push(negative ? (job) => !test(job) : test);
    }
  }
  return filter;
}

// `text` with `word` added, or without it if it is there: what a click on a tile does.
export function toggle(text: string, word: string): string {
  const all = written(text);
  const key = word.split(':')[0];
  const others = all.filter((w) => plain(w) !== word);
  if (others.length < all.length) return others.join(' ');
  return [...all.filter((w) => !plain(w).startsWith(`${key}:`)), word].join(' ');
}
