// Lanes of the timeline: what has a beginning and an end is a bar, the rest are moments; and a lane
// for each host that had something to say.
import { maybe, ms } from '../api/json';
import type { RecordedEvent } from '../api/types';
import type { Lane, Span } from '../chart/types';
import { fmt } from '../parts/format';
import { natural } from '../parts/order';
import type { Place } from './spans';

// Kinds that end what another began.
const PAIRS: Record<string, { began: string; kind: string; word: string }> = {
  checkpoint_saved: { began: 'checkpoint_started', kind: 'checkpoint', word: 'checkpoint' },
  checkpoint_restored: { began: 'restore_started', kind: 'restoring', word: 'restored' },
  compiled: { began: 'compile_started', kind: 'compiling', word: 'compiled' },
  eval_ended: { began: 'eval_started', kind: 'evaluation', word: 'evaluation' },
};
const BEGINNINGS = new Set(Object.values(PAIRS).map((p) => p.began));

const who = (e: RecordedEvent): string => `${e.source?.attempt ?? 0} ${e.source?.task ?? ''} ${e.source?.host ?? ''}`;

export function titleOf(e: RecordedEvent): string {
  const task = e.source?.task === undefined ? '' : ` of task ${e.source.task}`;
  const message = e.message ? `: ${fmt.text(e.message)}` : '';
  return `${(e.kind ?? '').replace(/_/g, ' ')}${task} at ${fmt.time(ms(e.timeUnixNs))}${message}`;
}

// Checkpoints, compiling, evaluations: from their beginnings, as one task said it, to their ends.
// Of what several tasks do at once, the first is drawn.
export function phaseLane(name: string, ends: string[], events: RecordedEvent[], place: Place): Lane {
  const open = new Map<string, RecordedEvent>();
  const spans: Span[] = [];
  let covered = -Infinity;
  for (const e of events) {
    const kind = e.kind ?? '';
    if (BEGINNINGS.has(kind)) open.set(`${kind} ${who(e)}`, e);
    const pair = ends.includes(kind) ? PAIRS[kind] : undefined;
    if (!pair) continue;
    const key = `${pair.began} ${who(e)}`;
    const began = open.get(key);
    open.delete(key);
    const to = place(ms(e.timeUnixNs), maybe(e.step));
    const from = began ? place(ms(began.timeUnixNs), maybe(began.step)) : to;
    if (to === null || from === null || to <= covered) continue;
    covered = to;
    spans.push({ from: Math.min(from, to), to, kind: pair.kind, text: pair.word, title: titleOf(e) });
  }
  return { name, spans };
}

const OWN_LANES = /^(condition_|checkpoint_|compile|eval_|restore_)/;
const FAILURES = /^(exited|source_failed|xid|ecc|oom|killed)/;
const NOTICES = /^(preempt|maintenance|throttl)/;

export function kindOf(e: RecordedEvent): string {
  const kind = e.kind ?? '';
  if (kind === 'ended') return (e.fields?.['exit_code'] ?? '0') === '0' ? 'silent' : 'failure';
  if (FAILURES.test(kind)) return 'failure';
  if (NOTICES.test(kind)) return 'notice';
  return kind === 'attempt_started' || kind === 'source_recovered' ? 'good' : 'event';
}

export function hasOwnLane(e: RecordedEvent): boolean {
  return OWN_LANES.test(e.kind ?? '');
}

export function momentSpans(events: RecordedEvent[], place: Place): Span[] {
  return events.flatMap((e): Span[] => {
    const x = place(ms(e.timeUnixNs), maybe(e.step));
    return x === null ? [] : [{ from: x, to: x, kind: kindOf(e), text: (e.kind ?? '').replace(/_/g, ' '), title: titleOf(e) }];
  }).sort((a, b) => a.from - b.from);
}

// A lane for each host with events, those with failures first, then by name.
export function hostLanes(events: RecordedEvent[], place: Place): { host: string; lane: Lane; failures: number }[] {
  const byHost = new Map<string, RecordedEvent[]>();
  for (const e of events) {
    const host = e.source?.host ?? '';
    if (!host || hasOwnLane(e)) continue;
    const mine = byHost.get(host);
    if (mine) mine.push(e);
    else byHost.set(host, [e]);
  }
  const bad = (list: RecordedEvent[]) => list.filter((e) => ['failure', 'notice'].includes(kindOf(e))).length;
  return [...byHost].map(([host, list]) => ({ host, lane: { name: host, spans: momentSpans(list, place) }, failures: bad(list) }))
    .sort((a, b) => b.failures - a.failures || natural(a.host, b.host));
}
