// The runs of a group: which attribute goes with which final value. Lines of parallel coordinates
// and points of the scatter are one run each.
import { useMemo } from 'preact/hooks';
import { jobIfThere, listJobs } from '../api/calls';
import { num } from '../api/json';
import { usePoll } from '../api/poll';
import type { Job } from '../api/types';
import { go, href, type Route } from '../app/route';
import { fmt } from '../parts/format';
import { Empty, Failed, Loading, Stale } from '../parts/states';
import { DataTable } from '../parts/table';
import { MetricChoice } from './choice';
import { mainMetric } from './groups';
import './rows.css';
import { compareAll, differences, formatSubjects, MOST_SUBJECTS } from './subjects';

const EVERY_MS = 30_000;
export const MOST_RUNS = 100;
const MOST_POLES = 6;

export interface Run {
  job: string;
  attributes: Record<string, string>;
  values: Record<string, number>; // The last value of the metric that is shown.
}

async function fetchRuns(route: Route, signal: AbortSignal): Promise<{ runs: Run[]; left: number; metrics: string[] }> {
  const marks = route.q.group ? { group: route.q.group } : { tags: [route.q.tag] };
  const found = await listJobs({ ...marks, pageSize: 1000 }, signal);
  const asked: Job[] = (found.jobs ?? []).slice(0, MOST_RUNS);
  const answers = await Promise.all(asked.map((j) => jobIfThere({ job: j.name ?? '', maxEntities: 1 }, signal)));
  const jobs = asked.filter((_, i) => answers[i]);
  const details = answers.filter((d) => d !== null);
  const metrics = [...new Set(details.flatMap((d) => (d.metrics ?? []).map((m) => m.name ?? '')))].sort();
  const metric = route.q.m || mainMetric(metrics);
  const subjects = jobs.map((j) => ({ job: j.name ?? '', attempt: null }));
  const rows = metric && jobs.length ? (await compareAll(subjects, { metrics: [metric], maxPoints: 1, comparedValues: ['COMPARED_VALUE_AVG'] }, signal)).rows : [];
  const runs = jobs.map((j, i): Run => {
    const attempts = details[i].attempts ?? [];
    const summary = rows[0]?.columns[i]?.summary;
    const last = num(summary?.count) ? num(summary?.last) : null;
    return { job: j.name ?? '', attributes: attempts[attempts.length - 1]?.attributes ?? {}, values: last === null ? {} : { [metric]: last } };
  });
  return { runs, left: (found.jobs ?? []).length - asked.length, metrics };
}

// A vertical scale of an attribute or the metric: numbers by size, words in their order.
export interface Pole {
  name: string;
  at: (number | null)[]; // From 0 to 1, one a run; null: the run has none.
  low: string;
  high: string;
}

export function poleOf(name: string, values: (string | number | undefined)[]): Pole {
  const present = values.filter((v) => v !== undefined && v !== '');
  const numbers = present.map(Number);
  if (numbers.every(Number.isFinite)) {
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    // Learning rates and batch sizes are tried in powers.
    const powers = low > 0 && high / low >= 50;
    const part = (v: number) => (high === low ? 0.5 : powers ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
    return { name, at: values.map((v) => (v === undefined || v === '' ? null : part(Number(v)))), low: fmt.num(low), high: fmt.num(high) };
  }
  const words = [...new Set(present.map((v) => (Number.isNaN(v) ? 'NaN' : String(v))))].sort();
  const place = (v: string | number | undefined) => (v === undefined || v === '' ? null : words.length > 1 ? words.indexOf(String(v)) / (words.length - 1) : 0.5);
  return { name, at: values.map(place), low: words[0] ?? '', high: words[words.length - 1] ?? '' };
}

const WIDTH = 900;
const TOP = 30;
const TALL = 190;
const LEFT = 70;

function Parallel({ runs, poles, picked }: { runs: Run[]; poles: Pole[]; picked: string }) {
  const x = (i: number) => LEFT + (i * (WIDTH - 2 * LEFT)) / Math.max(1, poles.length - 1);
  const y = (part: number) => TOP + (1 - part) * TALL;
  const path = (run: number) => poles.map((p, i) => (p.at[run] === null ? '' : `${x(i)} ${y(p.at[run])}`)).filter(Boolean).map((p, i) => (i ? 'L' : 'M') + p).join('');
  const order = runs.map((_, i) => i).sort((a, b) => Number(runs[a].job === picked) - Number(runs[b].job === picked));
  return (
    <div class="sweep wide" tabIndex={0}>
      <svg viewBox={`0 0 ${WIDTH} ${TOP + TALL + 22}`} role="img" aria-label={`Parallel coordinates of ${poles.map((p) => p.name).join(', ')}; the table below has the same values`}>
        {poles.map((p, i) => (
          <g key={p.name} text-anchor="middle">
            <line class="pole" x1={x(i)} x2={x(i)} y1={TOP} y2={TOP + TALL} />
            <text x={x(i)} y={12}>{fmt.text(p.name)}</text>
            <text x={x(i)} y={TOP - 5}>{fmt.text(p.high)}</text>
            <text x={x(i)} y={TOP + TALL + 14}>{fmt.text(p.low)}</text>
          </g>
        ))}
        {order.map((i) => <path key={runs[i].job} class={runs[i].job === picked ? 'run picked' : 'run'} d={path(i)} />)}
      </svg>
    </div>
  );
}

function Scatter({ runs, x, y, picked }: { runs: Run[]; x: Pole; y: Pole; picked: string }) {
  const [width, height, left] = [420, 260, 60];
  return (
    <figure class="sweep">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${y.name} against ${x.name}; the table below has the same values`}>
        <line class="pole" x1={left} x2={left} y1={16} y2={height - 34} />
        <line class="pole" x1={left} x2={width - 10} y1={height - 34} y2={height - 34} />
        <g text-anchor="end"><text x={left - 5} y={24}>{fmt.text(y.high)}</text><text x={left - 5} y={height - 36}>{fmt.text(y.low)}</text></g>
        <text x={left} y={height - 20}>{fmt.text(x.low)}</text>
        <text x={width - 10} y={height - 20} text-anchor="end">{fmt.text(x.high)}</text>
        <text x={(left + width) / 2} y={height - 5} text-anchor="middle">{fmt.text(x.name)}</text>
        {runs.map((r, i) => (x.at[i] === null || y.at[i] === null ? null : (
          <circle key={r.job} class={r.job === picked ? 'picked' : ''} r={r.job === picked ? 6 : 4.5}
            cx={left + 10 + x.at[i] * (width - left - 30)} cy={height - 44 - y.at[i] * (height - 70)}><title>{r.job}</title></circle>
        )))}
      </svg>
    </figure>
  );
}

export function Sweep({ route }: { route: Route }) {
  const { data, error, stale, ageMs, reload } = usePoll(`sweep ${route.q.group ?? ''} ${route.q.tag ?? ''} ${route.q.m ?? ''}`, (signal) => fetchRuns(route, signal), EVERY_MS);
  const metric = route.q.m || mainMetric(data?.metrics ?? []);
  const varied = useMemo(() => differences((data?.runs ?? []).map((r) => r.attributes)).different.map((d) => d.name), [data]);
  if (!data) return error ? <Failed error={error} retry={reload} /> : <Loading height={420} label="Loading the runs" />;
  const { runs, left } = data;
  if (!runs.length) return <Empty title="No job has this mark" hint="tachoctl group JOB NAME puts a job into a group; tachoctl tag JOB +TAG tags it."><p><a href={href({ q: { group: '', tag: '' } })}>Compare single jobs</a></p></Empty>;
  const along = varied.includes(route.q.by) ? route.q.by : (varied.find((v) => /rate|lr$|batch|size|decay/.test(v)) ?? varied[0] ?? '');
  const ofAttribute = (name: string) => poleOf(name, runs.map((r) => r.attributes[name]));
  const ofMetric = poleOf(metric, runs.map((r) => r.values[metric]));
  const poles = [...[along, ...varied.filter((v) => v !== along)].filter(Boolean).slice(0, MOST_POLES).map(ofAttribute), ofMetric];
  const sorted = [...runs].sort((a, b) => (a.values[metric] ?? Infinity) - (b.values[metric] ?? Infinity));
  const picked = route.q.row ?? '';
  return (
    <>
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      <div class="bar-row">
        <MetricChoice groups={[{ title: 'Final value of', names: data.metrics }]} now={metric} set={(m) => go({ q: { m } }, 'replace')} />
        <MetricChoice label="against" groups={[{ title: 'Attributes that differ', names: varied }]} now={along} set={(by) => go({ q: { by } }, 'replace')} />
        <span class="dim">{fmt.plural(runs.length, 'run')}{left ? `, the first of ${runs.length + left}` : ''}</span>
        <a href={href({ q: { group: '', tag: '', m: '', by: '', row: '', s: formatSubjects(sorted.slice(0, MOST_SUBJECTS).map((r) => ({ job: r.job, attempt: null }))) } })}>Compare the curves of the first {Math.min(MOST_SUBJECTS, runs.length)}</a>
      </div>
      {varied.length ? (
        <div class="columns-2">
          <Parallel runs={runs} poles={poles} picked={picked} />
          <Scatter runs={runs} x={ofAttribute(along)} y={ofMetric} picked={picked} />
        </div>
      ) : <p class="dim">The runs do not differ in their attributes.</p>}
      <section class="section wide" tabIndex={0}>
        <h2>Runs by {fmt.text(metric)}, the lowest first</h2>
        <DataTable label="Runs" rows={sorted} rowKey={(r) => r.job} rowClass={(r) => (r.job === picked ? 'selected' : '')} columns={[
          { key: 'job', title: 'Job', cell: (r) => <><a href={href({ screen: 'job', name: r.job })}>{fmt.text(r.job)}</a> <button class="plain" aria-pressed={r.job === picked} aria-label={`Mark ${r.job} in the charts`} onClick={() => go({ q: { row: r.job === picked ? '' : r.job } }, 'replace')}>◉</button></> },
          { key: 'metric', title: metric, number: true, cell: (r) => fmt.num(r.values[metric]) },
          ...varied.slice(0, 12).map((name) => ({ key: `a ${name}`, title: name, className: 'about-value', cell: (r: Run) => fmt.text(r.attributes[name] ?? '–') })),
        ]} />
      </section>
    </>
  );
}
