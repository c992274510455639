// The head of a job, its tabs, and the first of them.
import type { ComponentType } from 'preact';
import { maybe, num } from '../api/json';
import { go, href, type Route } from '../app/route';
import { useKeys } from '../app/keys';
import { JOB_TABS } from '../app/places';
import type { GetJobResponse } from '../api/types';
import type { ScreenProps, TabProps } from '../app/screen';
import { fmt } from '../parts/format';
import { Failed, Loading, Stale } from '../parts/states';
import { severityOf, Sign } from '../parts/verdict';
import { About } from './about';
import { Goodput } from './goodput';
import './job.css';
import { JobContext, useJob, type JobData } from './jobdata';
import { Metrics } from './metrics';
import { FirstNan } from './nan';
import { Overview } from './overview';
import { Tasks } from './tasks';
import { Timeline } from './timeline';
import { axisKind } from './view';

const VIEWS: Record<string, ComponentType<TabProps>> = {
  metrics: Metrics, tasks: Tasks, timeline: Timeline, nan: FirstNan, goodput: Goodput, about: About,
};
const TABS: [string, string][] = [['', 'Overview'], ...JOB_TABS];

const STATES: Record<string, string> = {
  JOB_STATE_RUNNING: 'running', JOB_STATE_SILENT: 'silent', JOB_STATE_ENDED: 'ended',
};

// Tabs that have the axis of the job's head.
const WITH_AXIS = ['', 'metrics', 'tasks'];

export function stateWord(state: string | undefined): string {
  return STATES[state ?? ''] ?? 'unknown';
}

function plural(n: number, word: string): string {
  return fmt.plural(n, word);
}

function facts({ detail, goodput }: JobData): string[] {
  const steps = goodput.steps ?? {};
  const job = detail.job ?? {};
  const attributes = detail.attempts?.[detail.attempts.length - 1]?.attributes ?? {};
  const median = maybe(steps.stepTimeMedianSeconds);
  const tokens = maybe(steps.tokensPerSecond);
  const mfu = maybe(steps.mfuRatio);
  const share = maybe(goodput.total?.goodputRatio);
  const kind = attributes['device_kind'];
  const chips = num(detail.chipsTotal);
  const git = attributes['git_commit'] ?? attributes['source_revision'];
  return [
    median === null ? '' : `${fmt.seconds(median)} a step`,
    tokens === null ? '' : `${fmt.si(tokens)} tokens/s`,
    mfu === null ? '' : `MFU ${fmt.percent(mfu)}`,
    share === null ? '' : `goodput ${fmt.percent(share)}`,
    `${plural(job.tasks ?? 0, 'task')} on ${plural(job.hosts ?? 0, 'host')}`,
    chips ? plural(chips, 'chip') : kind ? fmt.text(kind) : '',
    attributes['user'] ? fmt.text(attributes['user']) : '',
    git ? `revision ${fmt.text(git.slice(0, 12))}` : '',
  ].filter(Boolean);
}

function Progress({ data }: { data: JobData }) {
  const { detail, goodput } = data;
  const steps = goodput.steps ?? {};
  const last = maybe(detail.job?.lastStep);
  const planned = maybe(steps.plannedSteps);
  const left = maybe(steps.remainingSeconds);
  const ratio = maybe(steps.progressRatio);
  const attempts = detail.job?.attempts ?? 0;
  const newest = detail.attempts?.[detail.attempts.length - 1]?.attempt ?? 0;
  const words = [
    `attempt ${newest}${attempts > 1 ? ` (${attempts} in all)` : ''}`,
    last === null ? 'no steps recorded' : `step ${fmt.count(last)}${planned === null ? '' : ` of ${fmt.count(planned)}`}`,
  ];
  const running = detail.job?.state === 'JOB_STATE_RUNNING';
  return (
    <p class="job-progress">
      <span>{words.join(' · ')}</span>
      {ratio === null ? null : <progress max={1} value={ratio} aria-label="Steps done">{fmt.percent(ratio)}</progress>}
      {ratio === null ? null : <span>{fmt.percent(ratio)}</span>}
      {left === null || !running ? null : <span>{fmt.duration(left)} left</span>}
    </p>
  );
}

export function Head({ data }: { data: JobData }) {
  const { job } = data.detail;
  const worst = severityOf(data.conditions[0]?.severity);
  const marks = job?.marks ?? {};
  const words = facts(data);
  return (
    <header class="job-head">
      <h1>
        {fmt.text(job?.name ?? '')}{' '}
        <Sign severity={worst}>{stateWord(job?.state)}</Sign>
        {(marks.tags ?? []).map((tag) => <span key={tag} class="job-tag">{fmt.text(tag)}</span>)}
      </h1>
      <Progress data={data} />
      <p class="job-facts">{words.map((word, i) => <span key={i}>{word}</span>)}</p>
      {marks.note ? <p class="dim">{fmt.text(marks.note)}</p> : null}
    </header>
  );
}

function Tabs({ route }: { route: Route }) {
  return (
    <nav class="tabs" aria-label="Views of the job">
      {TABS.map(([tab, title]) => (
        <a key={tab} href={href({ tab })} aria-current={route.tab === tab ? 'page' : undefined}>{title}</a>
      ))}
      {WITH_AXIS.includes(route.tab) ? <AxisChoice route={route} /> : null}
    </nav>
  );
}

const KINDS = ['step', 'time', 'elapsed'];

// The range and the cursor are of the old axis, so they go.
function chooseAxis(kind: string): void {
  go({ q: { x: kind === 'step' ? '' : kind, r: '', c: '' } });
}

// A job without steps is shown by time, unless the link says otherwise.
export function withAxis(route: Route, detail: GetJobResponse): Route {
  if (route.q.x || detail.job?.lastStep !== undefined) return route;
  return { ...route, q: { ...route.q, x: 'time' } };
}

function AxisChoice({ route }: { route: Route }) {
  const now = axisKind(route);
  return (
    <fieldset class="choice axis-choice">
      <legend>x axis</legend>
      {KINDS.map((kind) => (
        <button key={kind} aria-pressed={kind === now} onClick={() => chooseAxis(kind)}>{kind}</button>
      ))}
    </fieldset>
  );
}

function useJobKeys(route: Route): void {
  useKeys([
    ...TABS.map(([tab, title], i) => ({ keys: String(i + 1), help: `Tab: ${title}`, run: () => go({ tab }) })),
    {
      keys: 'x', help: 'Next x axis: step, time, elapsed',
      run: () => chooseAxis(KINDS[(KINDS.indexOf(axisKind(route)) + 1) % KINDS.length]),
    },
  ]);
}

export function Job({ route: linked }: ScreenProps) {
  const polled = useJob(linked.name);
  const { data, error } = polled;
  const route = data ? withAxis(linked, data.detail) : linked;
  useJobKeys(route);
  const Tab = Object.hasOwn(VIEWS, route.tab) ? VIEWS[route.tab] : Overview;
  if (!data) {
    return (
      <>
        <h1>{fmt.text(route.name)}</h1>
        {error ? <Failed error={error} retry={polled.reload} /> : <Loading height={420} label="Loading the job" />}
      </>
    );
  }
  return (
    <>
      <Head data={data} />
      {polled.stale ? <Stale ageMs={polled.ageMs} error={error} /> : null}
      <Tabs route={route} />
      <JobContext.Provider value={data}>
        <Tab job={route.name} route={route} />
      </JobContext.Provider>
    </>
  );
}
