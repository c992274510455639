// What a job is: its attributes, its attempts, what was refused, and who said what of it.
import { ms, num } from '../api/json';
import type { Attempt, GetJobResponse, JobRefusal } from '../api/types';
import type { TabProps } from '../app/screen';
import { href } from '../app/route';
import { fmt } from '../parts/format';
import { DataTable, type Column } from '../parts/table';
import { useJobData } from './jobdata';

const STATES: Record<string, string> = {
  JOB_STATE_RUNNING: 'running', JOB_STATE_SILENT: 'silent', JOB_STATE_ENDED: 'ended', JOB_STATE_REPLACED: 'replaced',
};

// Names of all attempts' attributes, those that differ first: they are why attempts are compared.
export function attributeNames(attempts: Attempt[]): { name: string; differs: boolean }[] {
  const names = new Set(attempts.flatMap((a) => Object.keys(a.attributes ?? {})));
  const differs = (name: string) => new Set(attempts.map((a) => a.attributes?.[name] ?? '')).size > 1;
  return [...names]
    .map((name) => ({ name, differs: differs(name) }))
    .sort((a, b) => Number(b.differs) - Number(a.differs) || a.name.localeCompare(b.name));
}

function steps(a: Attempt): string {
  return a.lastStep === undefined ? '–' : `${fmt.count(num(a.firstStep))} to ${fmt.count(num(a.lastStep))}`;
}

function rerun(a: Attempt): string {
  const ranges = a.superseded ?? [];
  const count = ranges.reduce((sum, r) => sum + num(r.end) - num(r.begin) + 1, 0);
  return count ? fmt.plural(count, 'step') : '';
}

const ATTEMPTS: Column<Attempt>[] = [
  { key: 'attempt', title: 'Attempt', cell: (a) => a.attempt ?? 0 },
  { key: 'state', title: 'State', cell: (a) => STATES[a.state ?? ''] ?? '–' },
  { key: 'began', title: 'Began', cell: (a) => fmt.time(ms(a.firstSeenUnixNs)) },
  { key: 'last', title: 'Last row', cell: (a) => fmt.time(ms(a.lastSeenUnixNs)) },
  { key: 'took', title: 'Took', number: true, cell: (a) => fmt.duration((ms(a.lastSeenUnixNs)! - ms(a.firstSeenUnixNs)!) / 1000) },
  { key: 'steps', title: 'Steps', number: true, cell: steps },
  { key: 'rerun', title: 'Run again later', number: true, cell: rerun },
  { key: 'tasks', title: 'Tasks', number: true, cell: (a) => fmt.count(a.tasks ?? 0) },
  { key: 'hosts', title: 'Hosts', number: true, cell: (a) => fmt.count(a.hosts ?? 0) },
  { key: 'end', title: 'End', cell: (a) => endOf(a) },
];

function endOf(a: Attempt): string {
  if (a.endedUnixNs === undefined) return '';
  const fields = Object.entries(a.endFields ?? {}).map(([k, v]) => `${k}=${v}`);
  return fmt.text([a.endMessage, ...fields].filter(Boolean).join(' '));
}

const REFUSALS: Column<JobRefusal>[] = [
  { key: 'reason', title: 'Reason', cell: (r) => r.reason ?? '' },
  { key: 'samples', title: 'Samples', number: true, cell: (r) => fmt.count(num(r.samples)) },
  { key: 'last', title: 'Newest', cell: (r) => fmt.time(ms(r.lastUnixNs)) },
  { key: 'detail', title: 'What to do', cell: (r) => fmt.text(r.detail ?? '') },
  { key: 'example', title: 'Example', cell: (r) => <code>{fmt.text(r.example ?? '')}</code> },
];

function Attributes({ attempts }: { attempts: Attempt[] }) {
  const names = attributeNames(attempts);
  const shown = attempts.slice(-6); // More columns than that nobody compares.
  const columns: Column<{ name: string; differs: boolean }>[] = [
    { key: 'name', title: 'Attribute', cell: (row) => <>{fmt.text(row.name)}{row.differs ? <span class="dim"> differs</span> : null}</> },
    ...shown.map((a) => ({
      key: `a${a.attempt ?? 0}`,
      title: `Attempt ${a.attempt ?? 0}`,
      className: 'about-value',
      cell: (row: { name: string }) => fmt.text(a.attributes?.[row.name] ?? '–'),
    })),
  ];
  if (!names.length) {
    return <p class="dim">No attributes. The trainer sets them when it begins: docs/notation.md names those that are understood.</p>;
  }
  return <DataTable label="Attributes" columns={columns} rows={names} rowKey={(row) => row.name} />;
}

function Totals({ detail }: { detail: GetJobResponse }) {
  const job = detail.job ?? {};
  const facts: [string, string][] = [
    ['First row', fmt.time(ms(job.firstSeenUnixNs))],
    ['Newest row', `${fmt.time(ms(job.lastSeenUnixNs))} (${fmt.ago(ms(job.lastSeenUnixNs))})`],
    ['Tasks', fmt.count(job.tasks ?? 0)],
    ['Hosts', fmt.count(job.hosts ?? 0)],
    ['Chips', fmt.count(num(detail.chipsTotal))],
    ['Metrics', fmt.count(job.metrics ?? 0)],
    ['Series', fmt.count(num(job.series))],
    ['Processes that sent rows', fmt.count(num(detail.incarnationsTotal))],
    ...(job.marks?.group ? [['Group', fmt.text(job.marks.group)] as [string, string]] : []),
    ...(job.marks?.note ? [['Note', fmt.text(job.marks.note)] as [string, string]] : []),
  ];
  return (
    <dl class="about-facts">
      {facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}

export function About({ job }: TabProps) {
  const { detail } = useJobData();
  const attempts = detail.attempts ?? [];
  const newestFirst = [...attempts].reverse();
  const subjects = attempts.slice(-2).reverse().map((a) => `${job}@${a.attempt ?? 0}`).join(',');
  return (
    <div class="about">
      <Totals detail={detail} />
      <h2>Attempts</h2>
      {attempts.length > 1 ? <p><a href={href({ screen: 'compare', name: '', tab: '', q: { s: subjects } })}>Compare the last two</a></p> : null}
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Attempts">
        <DataTable label="Attempts" columns={ATTEMPTS} rows={newestFirst} rowKey={(a) => String(a.attempt ?? 0)} />
      </div>
      <h2>Attributes</h2>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Attributes">
        <Attributes attempts={attempts} />
      </div>
      {detail.refusals?.length ? (
        <>
          <h2>Refused</h2>
          <div class="scroll-x" tabIndex={0} role="region" aria-label="Refused samples">
            <DataTable label="Refused samples" columns={REFUSALS} rows={detail.refusals} rowKey={(r) => r.reason ?? ''} />
          </div>
        </>
      ) : null}
    </div>
  );
}
