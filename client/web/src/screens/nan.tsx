// Where the first value was that is not finite, and how it spread.
import { useMemo } from 'preact/hooks';
import { firstNonFinite, range } from '../api/calls';
import { maybe, ms, num } from '../api/json';
import { usePoll } from '../api/poll';
import type { FirstNonFiniteResponse, NonFinite } from '../api/types';
import type { Series } from '../api/wire';
import { href } from '../app/route';
import type { TabProps } from '../app/screen';
import { Axis } from '../chart/axis';
import { styles } from '../chart/palette';
import { Stack } from '../chart/stack';
import type { Curve, Layer } from '../chart/types';
import { fmt } from '../parts/format';
import { Empty, Failed, Loading, Stale } from '../parts/states';
import { DataTable } from '../parts/table';
import { plainName } from './groups';
import { useJobData } from './jobdata';
import { ranges } from './matrixrows';
import './rows.css';

const EVERY_MS = 15_000;
const MOST_SERIES = 1000;
const MOST_GROUPS = 12;
const AROUND = 50; // Steps before and after, in the charts.
const BESIDE = 2; // The same, in the table.
const CHARTED = /loss|grad|norm|learning_rate|^lr$|scale|overflow/;
const MOST_CHARTS = 6;

// Series of one metric that turned at one step, or at one time.
export interface Turn {
  metric: string;
  unit: string;
  step: number | null;
  timeMs: number;
  tasks: number[];
  host: string; // Of the first.
  first: NonFinite;
  stays: boolean; // None of them became finite again.
}

export function turns(spread: NonFinite[]): Turn[] {
  const found = new Map<string, Turn>();
  for (const one of spread) {
    const step = maybe(one.step);
    const metric = one.series?.metric?.name ?? '';
    const key = `${metric} ${step ?? one.timeUnixNs}`;
    const old = found.get(key);
    const tasks = one.series?.task === undefined ? [] : [one.series.task];
    if (old) {
      old.tasks.push(...tasks);
      old.stays &&= num(one.finiteAfter) === 0;
      continue;
    }
    found.set(key, {
      metric, unit: one.series?.metric?.unit ?? '', step, timeMs: ms(one.timeUnixNs) ?? 0, tasks, host: one.series?.host ?? '', first: one,
      stays: num(one.finiteAfter) === 0,
    });
  }
  return [...found.values()];
}

export function whose(turn: Turn): string {
  if (!turn.tasks.length) return turn.host ? `host ${turn.host}` : '';
  if (turn.tasks.length > 1) return `tasks ${ranges(turn.tasks)}`;
  return `task ${turn.tasks[0]}${turn.host ? ` on ${turn.host}` : ''}`;
}

function place(turn: Turn): string {
  return turn.step === null ? fmt.time(turn.timeMs, true) : `step ${fmt.count(turn.step)}`;
}

function Sentence({ found, turn, next }: { found: FirstNonFiniteResponse; turn: Turn; next: Turn[] }) {
  const { first } = turn;
  const lastFinite = maybe(first.lastFinite);
  const lastStep = maybe(first.lastFiniteStep);
  return (
    <section class="section">
      <h2>The first value that is not finite</h2>
      <p class="lead">
        <strong>{fmt.text(turn.metric)}</strong> of <strong>{fmt.text(whose(turn))}</strong>, {place(turn)}, {fmt.time(turn.timeMs, true)}:{' '}
        <strong>{fmt.num(num(first.value))}</strong>
      </p>
      <p>
        {lastFinite === null ? 'It had no finite value before.' : `Its last finite value: ${fmt.value(lastFinite, turn.unit)}${lastStep === null ? '' : ` at step ${fmt.count(lastStep)}`}.`}
        {next.length ? ` Then ${next.map((t) => `${t.metric} of ${whose(t)} (${place(t)})`).map(fmt.text).join(', then ')}.` : ''}
      </p>
      <p class="dim">
        {fmt.count(num(found.seriesTurned))} of {fmt.count(num(found.seriesExamined))} series turned; {fmt.si(num(found.samplesExamined))} samples looked at.
      </p>
    </section>
  );
}

function Actions({ job, turn }: { job: string; turn: Turn }) {
  const task = turn.tasks[0];
  const view: Record<string, string> = turn.step === null ? {} : { r: `${Math.max(0, turn.step - AROUND)}..${turn.step + AROUND}`, c: String(turn.step) };
  return (
    <p class="actions">
      <a href={href({ screen: 'runbook', name: 'TachoJobDiverged', q: { job } })}>What to do</a>
      <a href={href({ tab: 'metrics', q: { ...view, full: turn.metric, ...(task === undefined ? {} : { by: 'task', t: String(task) }) } })}>Its chart, step by step</a>
      {task === undefined ? null : <a href={href({ tab: 'tasks', q: { ...view, m: turn.metric, row: String(task) } })}>On the map of tasks</a>}
      {turn.host ? <a href={href({ screen: 'host', name: turn.host })}>Host {fmt.text(turn.host)}</a> : null}
    </p>
  );
}

// Samples around the first turn, of what turned first and of what explains it.
async function around(job: string, turn: Turn, metrics: string[], steps: number, signal: AbortSignal): Promise<Series[]> {
  if (turn.step === null) return [];
  const task = turn.tasks[0];
  return range({
    selector: {
      job, metrics,
      ...(task === undefined ? {} : { matchers: [{ label: 'task', op: 'OP_EQUAL' as const, value: String(task) }] }),
    },
    axis: 'AXIS_STEP', attempts: 'ATTEMPTS_EFFECTIVE', packed: true,
    steps: { begin: String(Math.max(0, turn.step - steps)), end: String(turn.step + steps + 1) },
  }, signal);
}

function valueAt(series: Series[], turn: Turn, step: number): string {
  const s = series.find((one) => one.metric.name === turn.metric && (turn.first.series?.task === undefined || one.task === turn.first.series.task));
  const at = s ? s.steps.indexOf(step) : -1;
  return s && at >= 0 ? fmt.num(Number(s.values[at].toPrecision(6))) : '–';
}

async function fetchBeside(job: string, all: Turn[], signal: AbortSignal): Promise<Series[]> {
  const { step } = all[0];
  if (step === null) return [];
  const tasks = [...new Set(all.flatMap((t) => t.tasks.slice(0, 1)))].map(String);
  return range({
    selector: {
      job, metrics: [...new Set(all.map((t) => t.metric))],
      ...(tasks.length ? { matchers: [{ label: 'task', op: 'OP_MATCHES' as const, value: tasks.join('|') }] } : {}),
    },
    axis: 'AXIS_STEP', attempts: 'ATTEMPTS_EFFECTIVE', packed: true,
    steps: { begin: String(Math.max(0, step - BESIDE)), end: String(step + BESIDE + 1) },
  }, signal);
}

function Order({ job, all }: { job: string; all: Turn[] }) {
  const rows = all.slice(0, MOST_GROUPS);
  const start = all[0].step;
  const { data } = usePoll(`beside ${job} ${start} ${rows.length}`, (signal) => fetchBeside(job, rows, signal), 0);
  const steps = start === null ? [] : Array.from({ length: 2 * BESIDE + 1 }, (_, i) => start - BESIDE + i).filter((s) => s >= 0);
  return (
    <section class="section wide" tabIndex={0}>
      <h2>In the order of turning</h2>
      <DataTable label="Series in the order in which they turned" rows={rows} rowKey={(t) => `${t.metric} ${t.step} ${t.timeMs}`} columns={[
        { key: 'metric', title: 'Metric', cell: (t) => fmt.text(t.metric) },
        { key: 'who', title: 'Of', cell: (t) => fmt.text(whose(t)) },
        { key: 'at', title: 'At', cell: (t) => place(t) },
        ...steps.map((step) => ({
          key: String(step), title: fmt.count(step), number: true, hint: 'The value of the first of its tasks at this step',
          cell: (t: Turn) => <span class={t.step !== null && step >= t.step ? 'bad-word' : ''}>{data ? valueAt(data, t, step) : '…'}</span>,
        })),
        { key: 'stays', title: 'Stays so?', cell: (t) => (t.stays ? 'yes' : 'no, finite again later') },
      ]} />
      {all.length > rows.length ? <p class="dim">{fmt.count(all.length - rows.length)} more groups turned later.</p> : null}
    </section>
  );
}

function layersOf(series: Series[], first: string): Layer[] {
  const names = [...new Set(series.map((s) => s.metric.name))].sort((a, b) => Number(b === first) - Number(a === first));
  return names.slice(0, MOST_CHARTS).map((name): Layer => {
    const mine = series.filter((s) => s.metric.name === name && s.values.length);
    const labels = mine.map((s) => Object.values(s.labels).join(' ') || name);
    const look = styles(labels);
    const curves = mine.slice(0, 8).map((s, i): Curve => ({
      name: labels[i], ...look[i], x: s.steps, mid: s.values, bad: Uint32Array.from(s.values, (v) => (Number.isFinite(v) ? 0 : 1)),
    }));
    return { kind: 'curve', label: name, height: 84, curves, y: 'all', unit: mine[0]?.metric.unit };
  });
}

function Around({ job, turn, names }: { job: string; turn: Turn; names: string[] }) {
  const metrics = [...new Set([turn.metric, ...names.filter((n) => CHARTED.test(plainName(n)))])].slice(0, 12);
  const { data, error, reload } = usePoll(`around ${job} ${turn.step} ${turn.tasks[0]}`, (signal) => around(job, turn, metrics, AROUND, signal), 0);
  const axis = useMemo(() => {
    const step = turn.step ?? 0;
    const made = new Axis('step', [Math.max(0, step - AROUND), step + AROUND]);
    made.point(step, true);
    return made;
  }, [turn.step]);
  const layers = useMemo(() => (data ? layersOf(data, turn.metric) : []), [data]);
  if (turn.step === null) return null;
  if (!data) return error ? <Failed error={error} retry={reload} /> : <Loading height={260} label="Loading what was around it" />;
  return (
    <section class="section">
      <h2>Around it, {fmt.text(turn.tasks.length ? `task ${turn.tasks[0]}` : turn.host)}</h2>
      <Stack axis={axis} label="Values around the first that is not finite" layers={layers} />
    </section>
  );
}

export function FirstNan({ job }: TabProps) {
  const { detail } = useJobData();
  const { data, error, stale, ageMs, reload } = usePoll(
    `nan ${job}`, (signal) => firstNonFinite({ selector: { job }, attempts: 'ATTEMPTS_EFFECTIVE', maxSeries: MOST_SERIES }, signal), EVERY_MS,
  );
  const all = useMemo(() => turns(data?.spread ?? []), [data]);
  if (!data) return error ? <Failed error={error} retry={reload} /> : <Loading height={240} label="Looking for values that are not finite" />;
  if (!all.length) {
    return (
      <Empty title="Everything is finite" hint={`No NaN and no infinity in ${fmt.count(num(data.seriesExamined))} series of this job; ${fmt.si(num(data.samplesExamined))} samples were looked at.`}>
        <p><a href={href({ tab: 'metrics' })}>To its metrics</a></p>
      </Empty>
    );
  }
  return (
    <>
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      <Sentence found={data} turn={all[0]} next={all.slice(1, 4)} />
      <Actions job={job} turn={all[0]} />
      <Order job={job} all={all} />
      <Around job={job} turn={all[0]} names={(detail.metrics ?? []).map((m) => m.name ?? '')} />
    </>
  );
}
