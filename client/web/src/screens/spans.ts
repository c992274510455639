// Lanes of what happened to a job: attempts, the ledger, events, verdicts, on any of the three axes.
import { maybe, ms, num } from '../api/json';
import type { Condition, GetJobResponse, GoodputResponse, RecordedEvent } from '../api/types';
import type { AxisKind } from '../chart/axis';
import { lowerBound } from '../chart/fold';
import type { Lane, Mark, Span } from '../chart/types';
import { fmt } from '../parts/format';
import { severityOf } from '../parts/verdict';

// Where something is on the axis that happened at a time, and perhaps at a step; null: nowhere.
export type Place = (timeMs: number | null, step: number | null) => number | null;

interface Stretch {
  first: number | null; // Steps.
  last: number | null;
  begin: number | null; // Times.
  end: number | null;
}

// Of the ledger, which knows pauses; of an older collector, which has no spans, of the attempts.
function stretches(detail: GetJobResponse, goodput: GoodputResponse): Stretch[] {
  const spans = (goodput.spans ?? []).map((s) => ({
    first: maybe(s.firstStep), last: maybe(s.lastStep), begin: ms(s.beginUnixNs), end: ms(s.endUnixNs),
  }));
  return spans.some((s) => s.first !== null) ? spans : (detail.attempts ?? []).map((a) => ({
    first: maybe(a.firstStep), last: maybe(a.lastStep), begin: ms(a.firstSeenUnixNs), end: ms(a.lastSeenUnixNs),
  }));
}

// The step at a time, between those that are known.
export function stepClock(detail: GetJobResponse, goodput: GoodputResponse): (timeMs: number) => number | null {
  const times: number[] = [];
  const steps: number[] = [];
  for (const { first, last, begin, end } of stretches(detail, goodput)) {
    if (first === null || last === null || begin === null || end === null) continue;
    times.push(begin, end);
    steps.push(first, last);
  }
  return (time) => {
    if (!times.length) return null;
    const i = lowerBound(times, time);
    if (i === 0) return steps[0];
    if (i === times.length) return steps[i - 1];
    const share = (time - times[i - 1]) / Math.max(1e-9, times[i] - times[i - 1]);
    // Back to a checkpoint is a jump, not a slope.
    if (steps[i] < steps[i - 1]) return steps[i - 1];
    return steps[i - 1] + share * (steps[i] - steps[i - 1]);
  };
}

export function placeOn(kind: AxisKind, detail: GetJobResponse, goodput: GoodputResponse, origin: number): Place {
  const clock = stepClock(detail, goodput);
  return (time, step) => {
    if (kind === 'step') return step ?? (time === null ? null : clock(time));
    if (time === null) return null;
    return kind === 'time' ? time : (time - origin) / 1000;
  };
}

export function attemptLane(detail: GetJobResponse, kind: AxisKind, origin: number): Lane {
  const attempts = detail.attempts ?? [];
  const spans: Span[] = [];
  const add = (from: number, to: number, attempt: number) =>
    spans.push({
      from, to, kind: attempt % 2 ? 'attempt_odd' : 'attempt',
      text: `attempt ${attempt}`, title: `attempt ${attempt}${endOf(attempts.find((a) => (a.attempt ?? 0) === attempt))}`,
    });
  if (kind === 'step') {
    for (const e of detail.timeline ?? []) add(num(e.firstStep), num(e.lastStep) + 1, e.attempt ?? 0);
  } else {
    for (const a of attempts) {
      const [from, to] = [ms(a.firstSeenUnixNs)!, ms(a.lastSeenUnixNs)!];
      const x = (t: number) => (kind === 'time' ? t : (t - origin) / 1000);
      add(x(from), x(Math.max(to, from + 1)), a.attempt ?? 0);
    }
  }
  return { name: 'attempt', spans };
}

function endOf(attempt: { endMessage?: string; endedUnixNs?: number | string } | undefined): string {
  if (!attempt?.endedUnixNs) return '';
  return `, ended ${fmt.time(ms(attempt.endedUnixNs))}${attempt.endMessage ? `: ${fmt.text(attempt.endMessage)}` : ''}`;
}

export const bucketWord = (bucket: string) => bucket.replace(/^GOODPUT_BUCKET_/, '').toLowerCase();
export const bucketTitle = (bucket: string) =>
  bucketWord(bucket).replace('productive_step', 'productive').replace(/_/g, ' ');

// Along steps, time without steps has no width: it is a diamond where it happened.
export function ledgerLane(goodput: GoodputResponse, kind: AxisKind, place: Place): Lane {
  const spans: Span[] = [];
  for (const s of goodput.spans ?? []) {
    const [begin, end] = [ms(s.beginUnixNs)!, ms(s.endUnixNs)!];
    const [first, last] = [maybe(s.firstStep), maybe(s.lastStep)];
    const from = place(begin, first);
    const to = kind === 'step' && first === null ? from : place(end, last);
    if (from === null || to === null) continue;
    const word = bucketTitle(s.bucket ?? '');
    spans.push({
      from, to: kind === 'step' && last !== null && first !== null ? Math.max(to, from + 1) : Math.max(from, to),
      kind: bucketWord(s.bucket ?? ''), text: word,
      title: `${word} for ${fmt.duration((end - begin) / 1000)}, attempt ${s.attempt ?? 0}`,
    });
  }
  // Diamonds last, so that bars do not cover them.
  spans.sort((a, b) => a.from - b.from);
  return { name: 'time', spans };
}

const EVENT_KIND: Record<string, string> = {
  checkpoint_saved: 'checkpoint', checkpoint_restored: 'restoring', compiled: 'compiling', exited: 'failure',
  preempted: 'notice', maintenance_started: 'notice', attempt_started: 'good', text: 'info',
};

function eventKind(event: RecordedEvent): string {
  if (event.kind === 'ended') return (event.fields?.['exit_code'] ?? '0') === '0' ? 'silent' : 'failure';
  return EVENT_KIND[event.kind ?? ''] ?? 'event';
}

// One diamond for what all tasks said at once.
export function eventLane(events: RecordedEvent[], place: Place): Lane {
  const spans: Span[] = [];
  const seen = new Map<string, { span: Span; count: number; text: string }>();
  for (const e of events) {
    if (/^condition_/.test(e.kind ?? '')) continue;
    const time = ms(e.timeUnixNs);
    const x = place(time, maybe(e.step));
    if (x === null || time === null) continue;
    const key = `${e.kind} ${e.source?.attempt ?? 0} ${Math.round(time / 5000)}`;
    const old = seen.get(key);
    if (old) {
      old.count++;
      old.span.title = `${old.text} (${old.count} times)`;
      continue;
    }
    const text = `${(e.kind ?? '').replace(/_/g, ' ')} at ${fmt.time(time)}${e.message ? `: ${fmt.text(e.message)}` : ''}`;
    const span: Span = { from: x, to: x, kind: eventKind(e), text: '', title: text };
    seen.set(key, { span, count: 1, text });
    spans.push(span);
  }
  spans.sort((a, b) => a.from - b.from);
  return { name: 'events', spans };
}

// From condition_raised to condition_cleared; what is still true goes on to the end.
export function verdictSpans(events: RecordedEvent[], now: Condition[], place: Place, end: number): Span[] {
  const open = new Map<string, Span>();
  const spans: Span[] = [];
  for (const e of events) {
    const name = e.fields?.['condition'] ?? '';
    if (e.kind === 'condition_raised') {
      const since = ms(e.fields?.['since_unix_ns'] ?? e.timeUnixNs);
      const from = place(since, maybe(e.step));
      if (from === null || open.has(name)) continue;
      const severity = e.fields?.['severity'] ?? 'warning';
      const span = { from, to: end, kind: severity, text: verdictText(name, e.fields ?? {}), title: `${name}: ${fmt.text(e.message ?? '')}` };
      open.set(name, span);
      spans.push(span);
    } else if (e.kind === 'condition_cleared') {
      const span = open.get(name);
      const to = place(ms(e.timeUnixNs), maybe(e.step));
      if (span && to !== null) span.to = Math.max(span.from, to);
      open.delete(name);
    }
  }
  for (const c of now) {
    const from = place(ms(c.sinceUnixNs) || null, maybe(c.step));
    if (open.has(c.condition ?? '') || from === null) continue;
    const host = c.culprits?.[0]?.host ?? '';
    const task = c.culprits?.[0]?.task;
    const fields = { host, ...(task === undefined ? {} : { task: String(task) }) };
    spans.push({
      from, to: end, kind: severityOf(c.severity) || 'info', text: verdictText(c.condition ?? '', fields),
      title: `${c.condition}: ${fmt.text(c.message ?? '')}`,
    });
  }
  return spans.sort((a, b) => a.from - b.from);
}

function verdictText(name: string, fields: Record<string, string>): string {
  const culprit = [fields['task'] ? `task ${fields['task']}` : '', fields['host'] ?? ''].filter(Boolean).join(', ');
  return culprit ? `${name}: ${fmt.text(culprit)}` : name;
}

// Spans that overlap go into lanes of their own, as few as possible.
export function packed(name: string, spans: Span[], most: number): Lane[] {
  const lanes: Lane[] = [{ name, spans: [] }];
  for (const span of spans) {
    const free = lanes.find((lane) => (lane.spans[lane.spans.length - 1]?.to ?? -Infinity) <= span.from);
    if (free) free.spans.push(span);
    else if (lanes.length < most) lanes.push({ name: '', spans: [span] });
    else lanes[most - 1].spans.push(span);
  }
  return lanes;
}

// Moments that curves show as thin lines: beginnings of attempts, ends, what was announced.
export function marksOf(lane: Lane): Mark[] {
  return lane.spans
    .filter((s) => ['failure', 'notice', 'good', 'restoring'].includes(s.kind))
    .map((s) => ({ x: s.from, kind: s.kind, text: s.title ?? s.text }));
}
