// A condition: shape, word, sentence, since when, whose fault, where to look, what to do.
import { ms, maybe, num } from '../api/json';
import type { Condition, ConditionSeverity } from '../api/types';
import { href, type Route } from '../app/route';
import { copyText } from './copy';
import { fmt } from './format';

export type Severity = 'critical' | 'warning' | 'info' | '';

export function severityOf(severity: ConditionSeverity | undefined): Severity {
  if (severity === 'CONDITION_SEVERITY_CRITICAL') return 'critical';
  if (severity === 'CONDITION_SEVERITY_WARNING') return 'warning';
  return severity === 'CONDITION_SEVERITY_INFO' ? 'info' : '';
}

const SHAPES: Record<string, string> = { critical: '◆', warning: '▲', info: '●' };

export function Sign({ severity, children }: { severity: Severity; children?: preact.ComponentChildren }) {
  return (
    <span class={`sign ${severity || 'ok'}`}>
      {SHAPES[severity] ? <span aria-hidden="true">{SHAPES[severity]} </span> : null}
      {children ?? severity}
    </span>
  );
}

// "task 417 on host-52, chip 3": the first culprit, or ''.
export function culprit(condition: Condition): string {
  const first = condition.culprits?.[0];
  if (!first) return '';
  const words = first.task === undefined ? [] : [`task ${first.task}`];
  if (first.host) words.push(words.length ? `on ${first.host}` : first.host);
  return words.join(' ') + (first.chip ? `${words.length ? ', ' : ''}chip ${first.chip}` : '');
}

// Which tab shows the evidence. Others: the overview, with the verdict's lane.
const TABS: Record<string, string> = {
  Straggling: 'tasks', Diverged: 'nan', Throttled: 'tasks', InputBound: 'tasks', Stalled: 'timeline', TrainerSilent: 'timeline',
};

// The job's screen with the verdict open, its cursor and its row set.
export function verdictRoute(condition: Condition, where = false): Partial<Route> {
  const q: Record<string, string> = { v: condition.condition ?? '' };
  const step = maybe(condition.step);
  const task = condition.culprits?.[0]?.task;
  if (step !== null) q.c = String(step);
  if (task !== undefined) q.row = String(task);
  const tab = where ? (TABS[condition.condition ?? ''] ?? '') : '';
  return { screen: 'job', name: condition.job ?? '', tab, q };
}

export function runbookOf(condition: string): string {
  return `TachoJob${condition}`;
}

function figures(condition: Condition): string {
  return (condition.figures ?? [])
    .slice(0, 4)
    .map((f) => `${(f.name ?? '').replace(/_/g, ' ')} ${fmt.value(num(f.value), f.unit)}`)
    .join(' · ');
}

export function Verdict({ condition, open = false }: { condition: Condition; open?: boolean }) {
  const severity = severityOf(condition.severity);
  const since = ms(condition.sinceUnixNs);
  const name = condition.condition ?? '';
  const step = maybe(condition.step);
  return (
    <article class={`verdict ${severity}${open ? ' open' : ''}`} data-verdict={name}>
      <h3>
        <Sign severity={severity}>{name}</Sign>
        <span class="dim">
          {' '}{severity}{since === null ? '' : `, since ${fmt.time(since)} (${fmt.ago(since)})`}
          {step === null ? '' : `, step ${fmt.count(step)}`}
        </span>
      </h3>
      <p>{fmt.text(condition.message ?? '')}</p>
      <p class="dim">{figures(condition)}</p>
      <p class="actions">
        <a href={href(verdictRoute(condition, true))}>Show where</a>
        <a href={href({ screen: 'runbook', name: runbookOf(name), q: { job: condition.job ?? '' } })}>What to do</a>
        <button onClick={() => void copyText(new URL(href(verdictRoute(condition)), location.href).href)}>Copy link</button>
        {culprit(condition) ? <span class="dim">{fmt.text(culprit(condition))}</span> : null}
      </p>
    </article>
  );
}
