// Where the job's time went: the ledger of all of it and of each attempt, and what hosts cost it.
import { useMemo } from 'preact/hooks';
import { matrix } from '../api/calls';
import { maybe, ms, num } from '../api/json';
import { usePoll } from '../api/poll';
import type { Goodput as Ledger } from '../api/types';
import { href } from '../app/route';
import type { TabProps } from '../app/screen';
import { fmt } from '../parts/format';
import { Empty, Failed, Loading, Stale } from '../parts/states';
import { DataTable, type Column } from '../parts/table';
import { workMetric } from './groups';
import { hostCosts } from './host_cost';
import { useJobData } from './jobdata';
import { BUCKETS, bucketsOf, total, type BucketSum } from './ledger';
import { Colour, Shares } from './ledger_view';
import './rows.css';
import { bucketTitle } from './spans';

const EVERY_MS = 60_000;
const COLUMNS = 2000;

interface Part {
  name: string;
  ledger: Ledger;
  sums: BucketSum[];
}

const of = (part: Part, bucket: string): number => part.sums.find((s) => s.bucket === bucket)?.seconds ?? 0;

function columns(parts: Part[]): Column<string>[] {
  return [
    { key: 'bucket', title: 'Time for', cell: (b) => <><Colour bucket={b} /> {bucketTitle(b)}</> },
    ...parts.flatMap((p): Column<string>[] => [
      { key: `s ${p.name}`, title: p.name, number: true, cell: (b) => (of(p, b) ? fmt.duration(of(p, b)) : '–') },
      { key: `p ${p.name}`, title: 'share', number: true, cell: (b) => (of(p, b) ? fmt.percent(of(p, b) / total(p.sums)) : '') },
    ]),
  ];
}

function Attempts({ parts }: { parts: Part[] }) {
  return (
    <section class="section">
      <h2>Attempts</h2>
      {parts.map((p) => (
        <div key={p.name} class="section">
          <p class="facts-line">
            <b>{p.name}</b>
            <span>goodput {fmt.percent(maybe(p.ledger.goodputRatio))}</span>
            <span>{fmt.time(ms(p.ledger.beginUnixNs))} to {fmt.time(ms(p.ledger.endUnixNs))}</span>
            <span>{fmt.plural(num(p.ledger.productiveSteps), 'productive step')}</span>
            <span>{num(p.ledger.wastedSteps) ? `${fmt.plural(num(p.ledger.wastedSteps), 'step')} wasted` : ''}</span>
          </p>
          <Shares sums={p.sums} label={p.name} />
        </div>
      ))}
    </section>
  );
}

function Hosts({ job, metric, wall }: { job: string; metric: string; wall: number }) {
  const { data, error, stale, ageMs, reload } = usePoll(metric ? `host cost ${job} ${metric}` : '', (signal) => matrix({
    selector: { job, metrics: [metric] }, rows: 'host', axis: 'AXIS_STEP', attempts: 'ATTEMPTS_EFFECTIVE', maxColumns: COLUMNS, value: 'BUCKET_VALUE_AVG',
  }, signal), EVERY_MS);
  const costs = useMemo(() => (data ? hostCosts(data) : []), [data]);
  if (!metric) return <p class="dim">What hosts cost cannot be told: the job records no work of its own, such as compute_seconds.</p>;
  if (!data) return error ? <Failed error={error} retry={reload} /> : <Loading height={160} label="Loading what hosts cost" />;
  if (costs.length < 2) return <p class="dim">The job runs on one host, so no other waits for it.</p>;
  return (
    <>
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      <p class="dim">Estimated from {fmt.text(metric)}: at each step all wait for the slowest host, which is charged with what it took above the median of the hosts.</p>
      <div class="wide" tabIndex={0}>
        <DataTable label="What each host cost the job" rows={costs.slice(0, 50)} rowKey={(c) => c.host} columns={[
          { key: 'host', title: 'Host', cell: (c) => <a href={href({ screen: 'host', name: c.host })}>{fmt.text(c.host)}</a> },
          { key: 'seconds', title: 'Cost the job', number: true, cell: (c) => fmt.seconds(c.seconds) },
          { key: 'share', title: 'Of its time', number: true, cell: (c) => (wall ? fmt.percent(c.seconds / wall) : '–') },
          { key: 'slowest', title: 'Was the slowest', number: true, hint: 'Share of the steps', cell: (c) => fmt.percent(c.slowest) },
        ]} />
      </div>
    </>
  );
}

export function Goodput({ job }: TabProps) {
  const { goodput, detail } = useJobData();
  const whole: Part = { name: 'All attempts', ledger: goodput.total ?? {}, sums: bucketsOf(goodput.total) };
  const attempts = (goodput.attempts ?? []).map((a): Part => ({ name: `Attempt ${a.attempt ?? 0}`, ledger: a.goodput ?? {}, sums: bucketsOf(a.goodput) }));
  const metric = workMetric((detail.metrics ?? []).map((m) => m.name ?? ''));
  if (!total(whole.sums)) {
    return <Empty title="No ledger yet" hint="The ledger needs steps: recorder.Step(n), docs/goodput.md." />;
  }
  const shown = [whole, ...(attempts.length > 1 ? attempts.slice(-4) : [])];
  const used = BUCKETS.filter((b) => shown.some((p) => of(p, b) > 0));
  return (
    <>
      <section class="section">
        <h2>Goodput {fmt.percent(maybe(goodput.total?.goodputRatio))}</h2>
        <p class="dim">Productive time of {fmt.duration(total(whole.sums))} in all{num(goodput.total?.rewinds) ? `; went back to a checkpoint ${fmt.plural(num(goodput.total?.rewinds), 'time')}` : ''}.</p>
        <Shares sums={whole.sums} label="All attempts" />
      </section>
      <section class="section wide" tabIndex={0}>
        <DataTable label="The ledger" rows={used} rowKey={(b) => b} columns={columns(shown)} />
        {attempts.length > 4 ? <p class="dim">The newest 4 of {attempts.length} attempts have columns.</p> : null}
      </section>
      {attempts.length > 1 ? <Attempts parts={attempts} /> : null}
      <section class="section"><h2>What hosts cost</h2><Hosts job={job} metric={metric} wall={total(whole.sums)} /></section>
      <p class="section"><a href={href({ tab: 'timeline' })}>When it was: the timeline</a></p>
    </>
  );
}
