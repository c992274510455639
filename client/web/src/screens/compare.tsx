// Two to twenty jobs or attempts against the first: curves, differences, attributes, final values.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { getJob, listJobs } from '../api/calls';
import { num } from '../api/json';
import { usePoll } from '../api/poll';
import { asRpcError } from '../api/retry';
import type { RpcError } from '../api/rpc';
import type { GetJobResponse, Job } from '../api/types';
import { go, href, type Route } from '../app/route';
import type { ScreenProps } from '../app/screen';
import { Swatch, useDark } from '../chart/legend';
import { styles, type LineStyle } from '../chart/palette';
import { Stack } from '../chart/stack';
import type { Curve, Layer, YMode } from '../chart/types';
import { copyText, shellWord } from '../parts/copy';
import { fmt } from '../parts/format';
import { Empty, Failed, Loading, Stale } from '../parts/states';
import { DataTable, type Column as TableColumn } from '../parts/table';
import { Choice, one } from './choice';
import { mainMetric, stepMetric } from './groups';
import './rows.css';
import { alignment, compareAll, differences, formatSubjects, MOST_SUBJECTS, nameOf, parseSubjects, placed, type Column, type Compared, type Row, type X } from './subjects';
import { Sweep } from './sweep';
import { useView, type Extent } from './view';

const EVERY_MS = 15_000;
const POINTS = 500;
const CHART = 170;
const DIFFERENCE = 100;
const MOST_CHARTS = 6;
const METRICS_A_CALL = 3;
const XS: readonly X[] = ['step', 'elapsed', 'tokens'];
const YS: readonly YMode[] = ['robust', 'all', 'log'];

// Metrics that at least two of the jobs have: Compare knows these.
export function commonMetrics(details: GetJobResponse[]): string[] {
  const counts = new Map<string, number>();
  for (const detail of details) for (const m of detail.metrics ?? []) counts.set(m.name ?? '', (counts.get(m.name ?? '') ?? 0) + 1);
  return [...counts].filter(([, count]) => count >= 2).map(([name]) => name).sort();
}

// Final values, a few metrics after the other: each reads all of their samples.
function useValues(subjects: Compared[], names: string[], x: X): { rows: Row[]; done: boolean; error: RpcError | null } {
  const [state, set] = useState<{ rows: Row[]; done: boolean; error: RpcError | null }>({ rows: [], done: false, error: null });
  useEffect(() => {
    const call = new AbortController();
    const work = async (): Promise<void> => {
      const rows: Row[] = [];
      set({ rows, done: false, error: null });
      for (let i = 0; i < names.length && !call.signal.aborted; i += METRICS_A_CALL) {
        const metrics = names.slice(i, i + METRICS_A_CALL);
        const found = await compareAll(subjects, { metrics, alignment: alignment(x), maxPoints: 1, comparedValues: ['COMPARED_VALUE_AVG'] }, call.signal);
        rows.push(...found.rows);
        if (!call.signal.aborted) set({ rows: [...rows], done: false, error: null });
      }
      if (!call.signal.aborted) set({ rows: [...rows], done: true, error: null });
    };
    work().catch((error: unknown) => {
      if (!call.signal.aborted) set((old) => ({ ...old, done: true, error: asRpcError(error) }));
    });
    return () => call.abort();
  }, [subjects.map(nameOf).join(), names.join(), x === 'elapsed']);
  return state;
}

function attributesOf(detail: GetJobResponse, subject: Compared): Record<string, string> {
  const attempts = detail.attempts ?? [];
  const mine = subject.attempt === null ? attempts[attempts.length - 1] : attempts.find((a) => (a.attempt ?? 0) === subject.attempt);
  return mine?.attributes ?? {};
}

function Picker({ subjects, jobs }: { subjects: Compared[]; jobs: Job[] }) {
  const [text, set] = useState('');
  const add = (event: Event): void => {
    event.preventDefault();
    const more = parseSubjects(/[,@%]/.test(text) && !jobs.some((j) => j.name === text) ? text : formatSubjects([{ job: text, attempt: null }]));
    if (more.length) go({ q: { s: formatSubjects([...subjects, ...more].slice(0, MOST_SUBJECTS)) } });
    set('');
  };
  const full = subjects.length >= MOST_SUBJECTS;
  return (
    <form class="bar-row" onSubmit={add}>
      <label>add <input list="compare-jobs" value={text} disabled={full} placeholder="job, or job@attempt" aria-label="Job to compare" onInput={(e) => set(e.currentTarget.value)} /></label>
      <datalist id="compare-jobs">
        {jobs.flatMap((j) => {
          const name = j.name ?? '';
          const attempts = Array.from({ length: Math.min(j.attempts ?? 1, 8) }, (_, i) => `${name}@${i}`);
          return [name, ...((j.attempts ?? 1) > 1 ? attempts : [])].map((value) => <option key={value} value={value} />);
        })}
      </datalist>
      <button disabled={full || !text}>Add</button>
      {full ? <span class="dim">{MOST_SUBJECTS} are the most that fit.</span> : null}
    </form>
  );
}

function Subjects({ subjects, look }: { subjects: Compared[]; look: LineStyle[] }) {
  const dark = useDark();
  const without = (i: number) => go({ q: { s: formatSubjects(subjects.filter((_, k) => k !== i)) } });
  const first = (i: number) => go({ q: { s: formatSubjects([subjects[i], ...subjects.filter((_, k) => k !== i)]) } });
  return (
    <ul class="chips-list">
      {subjects.map((s, i) => (
        <li key={nameOf(s)}>
          <Swatch {...look[i]} dark={dark} />
          <a href={href({ screen: 'job', name: s.job })}>{fmt.text(nameOf(s))}</a>
          {i === 0 ? <span class="dim">the others are measured against it</span> : <button class="plain" onClick={() => first(i)} aria-label={`Measure against ${nameOf(s)}`}>⇤</button>}
          <button class="plain" onClick={() => without(i)} aria-label={`Without ${nameOf(s)}`}>✕</button>
        </li>
      ))}
    </ul>
  );
}

function curveOf(column: Column | null, x: X, tokens: number, name: string, style: LineStyle, difference: boolean): Curve {
  const values = difference ? column?.difference : column?.avg;
  const kept: number[] = [];
  column?.positions.forEach((_, k) => num(column.counts?.[k]) > 0 && values?.[k] !== undefined && kept.push(k));
  const pick = (from: (number | string)[] | undefined) => Float64Array.from(kept, (k) => num(from?.[k]));
  return {
    name, ...style, x: Float64Array.from(kept, (k) => placed(x, column!.positions[k], tokens)), mid: pick(values),
    ...(difference ? {} : { low: pick(column?.min), high: pick(column?.max), bad: Uint32Array.from(kept, (k) => num(column?.nonFinite?.[k])) }),
  };
}

// Curves, and below them what each is above or below the first.
export function layersOf(rows: Row[], names: string[], look: LineStyle[], x: X, tokens: number[], y: YMode): Layer[] {
  return rows.flatMap((row): Layer[] => {
    const metric = row.metric.name ?? '';
    const make = (difference: boolean) => names.map((name, i) => curveOf(row.columns[i], x, tokens[i], name, look[i], difference)).filter((c, i) => c.x.length && (!difference || i > 0));
    const curves = make(false);
    const apart = make(true);
    const unit = row.metric.unit;
    const out: Layer[] = [{ kind: 'curve', label: metric, note: row.metric.help, height: CHART, curves, y, unit }];
    if (apart.length) out.push({ kind: 'curve', label: `${metric}: difference to ${names[0]}`, height: DIFFERENCE, curves: apart, y: 'robust', unit });
    return out;
  });
}

function extentOf(layers: Layer[]): Extent | null {
  let [low, high] = [Infinity, -Infinity];
  for (const layer of layers) {
    if (layer.kind !== 'curve') continue;
    for (const c of layer.curves) if (c.x.length) [low, high] = [Math.min(low, c.x[0]), Math.max(high, c.x[c.x.length - 1])];
  }
  return high >= low ? [low, high] : null;
}

interface Shown {
  subjects: Compared[];
  look: LineStyle[];
  tokens: number[];
  x: X;
}

function Charts({ route, shown, metrics }: { route: Route; shown: Shown; metrics: string[] }) {
  const { subjects, look, tokens, x } = shown;
  const names = subjects.map(nameOf);
  const key = metrics.length ? `curves ${names.join()} ${metrics.join()} ${x}` : '';
  const { data, error, stale, ageMs, reload } = usePoll(key, (signal) => compareAll(subjects, { metrics, alignment: alignment(x), maxPoints: POINTS }, signal), EVERY_MS);
  const y = one(route.q.y, YS, 'robust');
  const layers = useMemo(() => (data ? layersOf(data.rows, names, look, x, tokens, y) : []), [data, y]);
  const full = useMemo(() => extentOf(layers), [layers]);
  const view = useView(route, x === 'elapsed' ? 'elapsed' : 'step', full);
  if (!metrics.length) return null;
  if (!data) return error ? <Failed error={error} retry={reload} /> : <Loading height={320} label="Loading the curves" />;
  if (!full) return <Empty title="No common curves" hint="None of these metrics has samples by step. Try the axis “elapsed”." />;
  return (
    <>
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      <Stack axis={view.axis} label={`Comparison by ${x}`} layers={layers} onZoom={view.onZoom}>
        <span class="dim">{x === 'tokens' ? 'x: tokens, as steps × tokens_per_step' : `x: ${x}`}</span>
      </Stack>
    </>
  );
}

// "+0.4 %": the sign carries no judgement.
export function change(column: Column | null): string {
  if (!num(column?.summary?.shared)) return '–';
  const relative = num(column?.summary?.relativeDifference); // JSON leaves out 0.
  if (!Number.isFinite(relative)) return '–';
  const percent = 100 * relative;
  if (Math.abs(percent) < 0.005) return '0 %';
  return `${percent > 0 ? '+' : '−'}${Number(Math.abs(percent).toPrecision(3))} %`;
}

function Values({ shown, names, charted, toggle }: { shown: Shown; names: string[]; charted: string[]; toggle: (name: string) => void }) {
  const { subjects, x } = shown;
  const { rows, done, error } = useValues(subjects, names, x);
  const of = (name: string) => rows.find((r) => r.metric.name === name);
  const last = (name: string, i: number): string => {
    const row = of(name);
    if (!row) return done ? '–' : '…';
    return num(row.columns[i]?.summary?.count) ? fmt.value(num(row.columns[i]?.summary?.last), row.metric.unit) : '–';
  };
  const columns: TableColumn<string>[] = [
    { key: 'metric', title: 'Metric', cell: (name) => (
      <label><input type="checkbox" checked={charted.includes(name)} onChange={() => toggle(name)} /> {fmt.text(name)}</label>
    ) },
    ...subjects.flatMap((s, i): TableColumn<string>[] => [
      { key: `last ${i}`, title: `${nameOf(s)}: last`, number: true, cell: (name) => last(name, i) },
      ...(i === 0 ? [] : [{ key: `change ${i}`, title: 'mean Δ', hint: `Average of the differences to ${nameOf(subjects[0])}, where both have a value`, number: true, cell: (name: string) => change(of(name)?.columns[i] ?? null) }]),
    ]),
  ];
  return (
    <section class="section">
      <h2>Final values</h2>
      <p class="dim">Tick a metric to see its curves. Δ: against {fmt.text(nameOf(subjects[0]))}, on average over what both have.</p>
      {error ? <Failed error={error} /> : null}
      <div class="wide" tabIndex={0}><DataTable label="Final values" columns={columns} rows={names} rowKey={(name) => name} virtual={names.length > 100} rowHeight={34} /></div>
    </section>
  );
}

function Attributes({ details, subjects }: { details: GetJobResponse[]; subjects: Compared[] }) {
  const { different, equal } = differences(subjects.map((s, i) => attributesOf(details[i], s)));
  return (
    <section class="section">
      <h2>Attributes that differ</h2>
      {different.length ? (
        <div class="wide" tabIndex={0}>
          <DataTable label="Attributes that differ" rows={different} rowKey={(d) => d.name} columns={[
            { key: 'name', title: 'Attribute', cell: (d) => fmt.text(d.name) },
            ...subjects.map((s, i) => ({ key: String(i), title: nameOf(s), className: 'about-value', cell: (d: (typeof different)[number]) => fmt.text(d.values[i] || '–') })),
          ]} />
        </div>
      ) : <p>None.</p>}
      <p class="dim">{fmt.plural(equal, 'attribute')} {equal === 1 ? 'is' : 'are'} equal.</p>
    </section>
  );
}

function Command({ subjects, metrics }: { subjects: Compared[]; metrics: string[] }) {
  const report = subjects.length === 2;
  const text = [report ? 'tachoctl report' : 'tachoctl compare', ...subjects.map((s) => shellWord(nameOf(s))), ...metrics.map((m) => `-m ${shellWord(m)}`)].join(' ');
  return (
    <p class="cmd section"><span class="dim">{report ? 'The same as a report, for a merge request' : 'The same in a terminal'}</span><code>{fmt.text(text)}</code><button onClick={() => void copyText(text)}>Copy</button></p>
  );
}

function chosen(route: Route, names: string[]): string[] {
  if (route.q.m) return route.q.m.split(',').map((m) => m.replace(/%(2C|25)/g, (code) => decodeURIComponent(code))).filter((m) => names.includes(m)).slice(0, MOST_CHARTS);
  return [...new Set([mainMetric(names), stepMetric(names)])].filter(Boolean);
}

function Comparison({ route, subjects }: { route: Route; subjects: Compared[] }) {
  const wanted = one(route.q.x, XS, 'step');
  const names = subjects.map(nameOf);
  const look = useMemo(() => styles(names), [names.join()]);
  const { data, error, stale, ageMs, reload } = usePoll(`compare ${names.join()}`, (signal) => Promise.all(
    subjects.map((s) => getJob({ job: s.job, maxEntities: 1 }, signal))), EVERY_MS);
  const metricNames = commonMetrics(data ?? []);
  if (!data) return error ? <Failed error={error} retry={reload} /> : <Loading height={420} label="Comparing" />;
  const tokens = subjects.map((s, i) => Number(attributesOf(data[i], s)['tokens_per_step'] ?? NaN));
  const countable = tokens.every((t) => t > 0);
  const x = wanted === 'tokens' && !countable ? 'step' : wanted;
  const metrics = chosen(route, metricNames);
  const shown: Shown = { subjects, look, tokens, x };
  const toggle = (name: string): void => {
    const next = metrics.includes(name) ? metrics.filter((m) => m !== name) : [...metrics, name].slice(-MOST_CHARTS);
    go({ q: { m: next.map((m) => m.replace(/[%,]/g, (c) => encodeURIComponent(c))).join(',') } }, 'replace');
  };
  return (
    <>
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      <div class="bar-row">
        <Choice legend="align by" values={countable ? XS : XS.slice(0, 2)} now={x} set={(v) => go({ q: { x: v === 'step' ? '' : v, r: '', c: '' } })} />
        <Choice legend="y" values={YS} now={one(route.q.y, YS, 'robust')} set={(v) => go({ q: { y: v === 'robust' ? '' : v } }, 'replace')} />
        {countable ? null : <span class="dim">By tokens: all need the attribute tokens_per_step.</span>}
      </div>
      <Charts route={route} shown={shown} metrics={metrics} />
      <Attributes details={data} subjects={subjects} />
      <Values shown={shown} names={metricNames} charted={metrics} toggle={toggle} />
      <Command subjects={subjects} metrics={metrics} />
    </>
  );
}

// Groups are what `tachoctl group` gave to jobs.
function Groups({ jobs }: { jobs: Job[] }) {
  const groups = [...new Set(jobs.map((j) => j.marks?.group ?? '').filter(Boolean))].sort();
  const tags = [...new Set(jobs.flatMap((j) => j.marks?.tags ?? []))].sort();
  if (!groups.length && !tags.length) return null;
  return (
    <p class="actions">
      <span class="dim">All runs of a sweep:</span>
      {groups.map((group) => <a key={`g${group}`} href={href({ q: { group, s: '' } })}>group {fmt.text(group)}</a>)}
      {tags.map((tag) => <a key={`t${tag}`} href={href({ q: { tag, s: '' } })}>tag {fmt.text(tag)}</a>)}
    </p>
  );
}

export function Compare({ route }: ScreenProps) {
  const subjects = parseSubjects(route.q.s);
  const look = useMemo(() => styles(subjects.map(nameOf)), [route.q.s]);
  const sweep = route.q.group || route.q.tag;
  const { data } = usePoll(sweep ? '' : 'jobs to compare', (signal) => listJobs({ pageSize: 1000 }, signal), 60_000);
  const jobs = data?.jobs ?? [];
  return (
    <>
      <h1>Compare{sweep ? ` the runs of ${route.q.group ? 'group' : 'tag'} ${fmt.text(sweep)}` : ''}</h1>
      {sweep ? <Sweep route={route} /> : (
        <>
          <Subjects subjects={subjects} look={look} />
          <Picker subjects={subjects} jobs={jobs} />
          <Groups jobs={jobs} />
          {subjects.length >= 2 ? <Comparison route={route} subjects={subjects} /> : (
            <Empty title={subjects.length ? 'Add another job' : 'Nothing to compare yet'} hint="Add two to twenty jobs, or attempts of one job as NAME@0 and NAME@1. The first is what the others are measured against." />
          )}
        </>
      )}
    </>
  );
}
