// The screen of ten seconds: the verdicts above, the evidence below, all of it on one axis.
import { useMemo } from 'preact/hooks';
import { matrix } from '../api/calls';
import { maybe, num } from '../api/json';
import { usePoll } from '../api/poll';
import type { MatrixRequest } from '../api/types';
import { useKeys } from '../app/keys';
import { href, go, type Route } from '../app/route';
import type { TabProps } from '../app/screen';
import { Stack } from '../chart/stack';
import type { Curve, Layer, MatrixData } from '../chart/types';
import { Empty, Failed } from '../parts/states';
import { Verdict } from '../parts/verdict';
import { fullExtent, originOf, supersededOf, useEvents, useJobData, type JobData } from './jobdata';
import { mainMetric, stepMetric, workMetric } from './groups';
import { useCurves } from './livecurves';
import { within, type CurveRequest } from './series';
import { attemptLane, eventLane, ledgerLane, marksOf, packed, placeOn, verdictSpans } from './spans';
import { axisKind, useKept, useView, type Extent, type View } from './view';

const EVERY_MS = 5000;
// The map while the stream is live: its order of rows is the collector's to compute.
const CALM_MS = 30_000;
const POINTS = 1000;
const COLUMNS = 500;
const WORST = 8;
const MOST_VERDICT_LANES = 3;

export interface Asked {
  job: string;
  metric: string;
  route: Route;
  data: JobData;
  range: Extent | null;
}

export function bandRequest({ job, metric, route, data, range }: Asked): CurveRequest {
  return {
    job, metric, range, link: route.q.r ?? '', kind: axisKind(route), origin: originOf(data.detail), by: 'band', tasks: [],
    attempts: 'all', superseded: supersededOf(data.detail), points: POINTS, raw: false,
  };
}

function matrixRequest({ job, route, range, data }: Asked, metric: string): MatrixRequest {
  const kind = axisKind(route);
  return {
    selector: { job, metrics: [metric] }, rows: 'task', maxColumns: COLUMNS, worst: WORST, attempts: 'ATTEMPTS_EFFECTIVE',
    axis: kind === 'step' ? 'AXIS_STEP' : 'AXIS_TIME',
    ...within({ range, kind, origin: originOf(data.detail) }),
  };
}

function useWorst(asked: Asked, metric: string): MatrixData | null {
  const kind = axisKind(asked.route);
  const key = metric ? `worst ${asked.job} ${metric} ${kind} ${asked.route.q.r ?? ''}` : '';
  const polled = usePoll(key, (signal) => matrix(matrixRequest(asked, metric), signal), EVERY_MS * 2, CALM_MS);
  const data = useKept(polled.data, `${asked.job} ${metric} ${kind}`);
  return useMemo(() => {
    if (!data || kind !== 'elapsed') return data;
    const origin = originOf(asked.data.detail);
    return { ...data, first: (data.first - origin) / 1000, width: data.width / 1000 };
  }, [data, kind]);
}

function useLanes({ job, route, data }: Asked, full: Extent): Layer {
  const { data: events } = useEvents(job);
  const kind = axisKind(route);
  return useMemo(() => {
    const origin = originOf(data.detail);
    const place = placeOn(kind, data.detail, data.goodput, origin);
    const verdicts = verdictSpans(events ?? [], data.conditions, place, full[1]);
    return {
      kind: 'lanes',
      label: 'Course',
      lanes: [
        attemptLane(data.detail, kind, origin),
        ...(data.goodput.spans?.length ? [ledgerLane(data.goodput, kind, place)] : []),
        eventLane(events ?? [], place),
        ...packed('verdicts', verdicts, MOST_VERDICT_LANES),
      ],
    };
  }, [data, events, kind, full[0], full[1]]);
}

function worstLayers(worst: MatrixData, metric: string, selected: number | null): Layer[] {
  if (!worst.rows.length || !worst.columns) return [];
  const x = Float64Array.from(worst.median, (_, i) => worst.first + (i + 0.5) * worst.width);
  const at = worst.rows.findIndex((row) => row.task === selected);
  return [
    {
      kind: 'strip', label: `median ${metric}`, note: 'of all tasks, each column', x, y: worst.median,
      unit: worst.metric.unit, height: 30,
    },
    {
      kind: 'heat', label: 'worst tasks', note: `${metric}, ratio to the median of the column; click a row for its own chart`,
      matrix: worst, colour: 'ratio', rowHeight: 15, selected: at < 0 ? null : at,
      onRow: (row) => go({ tab: 'tasks', q: { m: metric, row: String(worst.rows[row].task ?? '') } }),
    },
  ];
}

function Charts({ asked, view, full }: { asked: Asked; view: View; full: Extent }) {
  const { data, route, job } = asked;
  const names = (data.detail.metrics ?? []).map((m) => m.name ?? '');
  const [main, step, work] = [mainMetric(names), stepMetric(names), workMetric(names)];
  const lastStep = num(data.detail.job?.lastStep);
  const { kept: mainCurves, error } = useCurves(bandRequest({ ...asked, metric: main }), main !== '', lastStep);
  const worst = useWorst(asked, work);
  const { kept: stepCurves } = useCurves(bandRequest({ ...asked, metric: step }), step !== '' && step !== main, lastStep);
  const lanes = useLanes(asked, full);
  const unit = (name: string) => data.detail.metrics?.find((m) => m.name === name)?.unit;
  const selected = maybe(route.q.row);
  const layers = useMemo(() => {
    const marks = lanes.kind === 'lanes' ? marksOf(lanes.lanes.find((lane) => lane.name === 'events')!) : [];
    const curve = (label: string, found: Curve[] | null, height: number): Layer => ({
      kind: 'curve', label, height, curves: found ?? [], y: y(route), unit: unit(label), marks, note: noteOf(found),
    });
    const out: Layer[] = [lanes];
    if (main) out.push(curve(main, mainCurves, 180));
    const steps = stepCurves?.find((c) => !c.faint);
    if (steps) out.push({ kind: 'strip', label: step, note: 'mean of all tasks', x: steps.x, y: steps.mid, unit: unit(step), height: 36 });
    if (worst) out.push(...worstLayers(worst, work, selected));
    return out;
  }, [lanes, mainCurves, stepCurves, worst, selected, route.q.y]);
  return (
    <>
      {error && !mainCurves ? <Failed error={error} /> : null}
      <Stack axis={view.axis} label={`Course of ${job} by ${axisKind(route)}`} layers={layers} onZoom={view.onZoom}>
        <Tools view={view} route={route} full={full} />
      </Stack>
      {main ? null : <Empty title="No metrics recorded" hint="The trainer records them: recorder.Log(step, {{&quot;loss&quot;, loss}}), docs/notation.md." />}
    </>
  );
}

function noteOf(found: Curve[] | null): string {
  if (!found) return 'loading …';
  return `mean, band from lowest to highest${found.some((c) => c.faint) ? '; thin: superseded' : ''}`;
}

export function y(route: Route): 'robust' | 'all' | 'log' {
  return route.q.y === 'all' || route.q.y === 'log' ? route.q.y : 'robust';
}

// What is in view, and the way back to everything. A view that is zoomed does not move.
export function Tools({ view, route, full }: { view: View; route: Route; full: Extent }) {
  const behind = view.range ? full[1] - view.range[1] : 0;
  const newer = axisKind(route) === 'step' && behind >= 1 ? `${Math.floor(behind).toLocaleString('en')} newer steps ▸` : '';
  return (
    <span class="stack-tools">
      {view.range ? <button onClick={() => go({ q: { r: '' } })}>{newer || 'Show all'}</button> : null}
      <fieldset class="choice">
        <legend>y</legend>
        {['robust', 'all', 'log'].map((mode) => (
          <button key={mode} aria-pressed={mode === y(route)} onClick={() => go({ q: { y: mode === 'robust' ? '' : mode } }, 'replace')}>
            {mode}
          </button>
        ))}
      </fieldset>
    </span>
  );
}

export function Overview({ job, route }: TabProps) {
  const data = useJobData();
  useYKeys(route);
  const kind = axisKind(route);
  const full = fullExtent(data.detail, kind);
  const view = useView(route, kind, full);
  const asked: Asked = { job, metric: '', route, data, range: view.range };
  return (
    <>
      {data.conditions.length ? (
        <section class="verdicts">
          <h2 class="vh">Verdicts</h2>
          {data.conditions.map((c) => <Verdict key={c.condition} condition={c} open={route.q.v === c.condition} />)}
        </section>
      ) : null}
      {full ? (
        <Charts asked={asked} view={view} full={full} />
      ) : (
        <Empty
          title={kind === 'step' ? 'No steps recorded' : 'Nothing recorded'}
          hint="Rows with a step come from the trainer: recorder.Step(n), docs/notation.md."
        >
          <p><a href={href({ q: { x: 'time' } })}>Show the job by time</a></p>
        </Empty>
      )}
    </>
  );
}

// y and l change the scale of all charts of the screen.
export function useYKeys(route: Route): void {
  const set = (mode: string) => go({ q: { y: y(route) === mode ? '' : mode } }, 'replace');
  useKeys([
    { keys: 'y', help: 'The whole y range, or most of it', run: () => set('all') },
    { keys: 'l', help: 'Logarithmic y axis', run: () => set('log') },
  ]);
}
