// The columns of the fleet: what each shows, and by what it sorts.
import { maybe, ms, num } from '../api/json';
import { collectorNow } from '../api/live';
import type { FleetJob } from '../api/types';
import { stateOf, worst } from '../app/filter';
import { href } from '../app/route';
import { fmt } from '../parts/format';
import { Spark } from '../parts/spark';
import type { Column } from '../parts/table';
import { Sign, severityOf, verdictRoute, type Severity } from '../parts/verdict';

export interface FleetColumn extends Column<FleetJob> {
  // Sorts by this, largest first; NaN goes last. Absent: by text.
  by?: (job: FleetJob) => number;
  text?: (job: FleetJob) => string;
}

const nameOf = (job: FleetJob): string => job.job?.name ?? '';

// NaN for what is absent: such jobs come last, whatever the direction.
const or = (value: number | null): number => value ?? NaN;

function State({ job }: { job: FleetJob }) {
  const state = stateOf(job);
  const severity = worst(job);
  const sick = severity !== 'healthy';
  return (
    <>
      {sick ? <Sign severity={severity as Severity} /> : <span class={`sign ${state === 'running' ? 'ok' : state}`}>{state === 'running' ? 'healthy' : state}</span>}
      {sick && state !== 'running' ? <div class="dim">{state}</div> : null}
    </>
  );
}

function Name({ job }: { job: FleetJob }) {
  const { tasks = 0, attempts = 0, marks } = job.job ?? {};
  const facts = [tasks ? fmt.plural(tasks, 'task') : '', attempts > 1 ? `attempt ${job.attempt ?? 0}` : '', marks?.group ? fmt.text(marks.group) : ''];
  return (
    <>
      <a href={href({ screen: 'job', name: nameOf(job), tab: '' })} class="jobname">{fmt.text(nameOf(job))}</a>
      <div class="dim facts">
        {facts.filter(Boolean).join(', ')}
        {(marks?.tags ?? []).slice(0, 3).map((tag) => <span key={tag} class="tag">{fmt.text(tag)}</span>)}
      </div>
    </>
  );
}

function Why({ job }: { job: FleetJob }) {
  const first = job.conditions?.[0];
  if (!first) return <span class="dim">–</span>;
  const more = num(job.conditionsTrue) - 1;
  const since = ms(first.sinceUnixNs);
  return (
    <a class={`whylink ${severityOf(first.severity)}`} href={href(verdictRoute(first))} title={fmt.text(first.message ?? '')}>
      <strong>{first.condition}</strong> <span>{fmt.text(first.message ?? '')}</span>{' '}
      <span class="dim">
        {since === null ? '' : `for ${fmt.duration(Math.max(0, collectorNow() - since) / 1000)}`}
        {more > 0 ? `, +${more} more` : ''}
      </span>
    </a>
  );
}

function Step({ job }: { job: FleetJob }) {
  const step = maybe(job.steps?.lastStep ?? job.job?.lastStep);
  const progress = maybe(job.steps?.progressRatio);
  const planned = maybe(job.steps?.plannedSteps);
  return (
    <>
      {fmt.count(step)}
      {progress === null ? null : (
        <div class="bar" role="img" aria-label={`${fmt.percent(progress)} of ${fmt.count(planned)} steps`} title={`${fmt.percent(progress)} of ${fmt.count(planned)} steps`}>
          <i style={{ width: `${Math.min(100, Math.max(1, progress * 100))}%` }} />
        </div>
      )}
    </>
  );
}

function StepTime({ job }: { job: FleetJob }) {
  const values = (job.stepTimes ?? []).map(num);
  const median = maybe(job.steps?.stepTimeMedianSeconds);
  if (!values.length && median === null) return <span class="dim">–</span>;
  return (
    <>
      <Spark values={values} label="Step time" bad={worst(job) === 'critical'} />
      <div class="dim">{fmt.seconds(median)}</div>
    </>
  );
}

const FIXED: FleetColumn[] = [
  { key: 'state', title: 'State', cell: (job) => <State job={job} />, by: (job) => num(job.rank), sort: true, hint: 'By how sick the job is, then by chips and time' },
  { key: 'job', title: 'Job', cell: (job) => <Name job={job} />, text: nameOf, sort: true },
];

const CHOOSABLE: FleetColumn[] = [
  { key: 'why', title: 'Why', className: 'why', cell: (job) => <Why job={job} /> },
  { key: 'step', title: 'Step', number: true, sort: true, cell: (job) => <Step job={job} />, by: (job) => or(maybe(job.job?.lastStep)) },
  { key: 'time', title: 'Step time', className: 'steptime', sort: true, cell: (job) => <StepTime job={job} />, by: (job) => or(maybe(job.steps?.stepTimeMedianSeconds)) },
  { key: 'goodput', title: 'Goodput', number: true, sort: true, cell: (job) => fmt.percent(maybe(job.goodputRatio)), by: (job) => or(maybe(job.goodputRatio)), hint: 'Productive time of all time since its first row' },
  { key: 'mfu', title: 'MFU', number: true, sort: true, cell: (job) => fmt.percent(maybe(job.steps?.mfuRatio)), by: (job) => or(maybe(job.steps?.mfuRatio)), hint: 'Model FLOPs utilisation' },
  { key: 'left', title: 'Left', number: true, sort: true, cell: (job) => left(job), by: (job) => or(maybe(job.steps?.remainingSeconds)), hint: 'Time to the last planned step at the present speed' },
  { key: 'seen', title: 'Seen', number: true, sort: true, cell: (job) => fmt.ago(ms(job.job?.lastSeenUnixNs)).replace(' ago', ''), by: (job) => or(ms(job.job?.lastSeenUnixNs)) },
  { key: 'tokens', title: 'Tokens/s', number: true, sort: true, cell: (job) => fmt.si(maybe(job.steps?.tokensPerSecond)), by: (job) => or(maybe(job.steps?.tokensPerSecond)) },
  { key: 'chips', title: 'Chips', number: true, sort: true, cell: (job) => fmt.count(num(job.chips)), by: (job) => num(job.chips) },
  { key: 'tasks', title: 'Tasks', number: true, sort: true, cell: (job) => fmt.count(num(job.job?.tasks)), by: (job) => num(job.job?.tasks) },
  { key: 'hosts', title: 'Hosts', number: true, sort: true, cell: (job) => fmt.count(num(job.job?.hosts)), by: (job) => num(job.job?.hosts) },
  { key: 'attempts', title: 'Attempts', number: true, sort: true, cell: (job) => fmt.count(num(job.job?.attempts)), by: (job) => num(job.job?.attempts) },
  { key: 'began', title: 'Began', number: true, sort: true, cell: (job) => fmt.time(ms(job.job?.firstSeenUnixNs)), by: (job) => or(ms(job.job?.firstSeenUnixNs)) },
  { key: 'note', title: 'Note', cell: (job) => fmt.text(job.job?.marks?.note ?? ''), text: (job) => job.job?.marks?.note ?? '', sort: true },
];

function left(job: FleetJob): string {
  return stateOf(job) === 'ended' ? '–' : fmt.duration(maybe(job.steps?.remainingSeconds) ?? NaN);
}

export const DEFAULT_COLUMNS = ['why', 'step', 'time', 'goodput', 'mfu', 'left', 'seen'];
export const COLUMN_CHOICES = CHOOSABLE.map(({ key, title }) => ({ key, title }));

// "attr.user": an attribute of the newest attempt.
function attribute(key: string): FleetColumn | null {
  if (!key.startsWith('attr.')) return null;
  const name = key.slice(5);
  const text = (job: FleetJob): string => job.attributes?.[name] ?? '';
  return { key, title: name, cell: (job) => fmt.text(text(job)) || '–', text, sort: true };
}

export function columnsOf(keys: string[]): FleetColumn[] {
  const chosen = keys.map((key) => CHOOSABLE.find((column) => column.key === key) ?? attribute(key));
  return [...FIXED, ...chosen.filter((column) => column !== null)];
}

export function sortJobs(jobs: FleetJob[], column: FleetColumn | undefined, down: boolean): FleetJob[] {
  const sign = down ? -1 : 1;
  const byName = (a: FleetJob, b: FleetJob): number => (nameOf(a) < nameOf(b) ? -1 : 1);
  const compare = (a: FleetJob, b: FleetJob): number => {
    if (column?.text) return sign * column.text(a).localeCompare(column.text(b)) || byName(a, b);
    const by = column?.by ?? ((job: FleetJob) => num(job.rank));
    const [x, y] = [by(a), by(b)];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || byName(a, b);
    return sign * (x - y) || byName(a, b);
  };
  return [...jobs].sort(compare);
}
