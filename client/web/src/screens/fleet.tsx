// All jobs, the sickest first: which is sick, and why.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { maybe, num } from '../api/json';
import type { FleetJob, FleetTotals } from '../api/types';
import { parseFilter, stateOf, toggle, worst } from '../app/filter';
import { useKeys } from '../app/keys';
import { go } from '../app/route';
import type { ScreenProps } from '../app/screen';
import { fmt } from '../parts/format';
import { Empty, Failed, Loading, Stale } from '../parts/states';
import { DataTable } from '../parts/table';
import { verdictRoute } from '../parts/verdict';
import { COLUMN_CHOICES, DEFAULT_COLUMNS, columnsOf, sortJobs } from './fleet_columns';
import { useFleet } from './fleet_data';
import './fleet.css';

const ROW_HEIGHT = 54;
const CARD_HEIGHT = 178;
const SETTLE_MS = 400; // After the last keystroke, before the collector is asked.

const split = (text: string): string[] => text.split(',').filter(Boolean);

function useNarrow(): boolean {
  const query = '(max-width: 700px)';
  const [narrow, set] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const change = (): void => set(media.matches);
    media.addEventListener('change', change);
    return () => media.removeEventListener('change', change);
  }, []);
  return narrow;
}

function useSettled<T>(value: T, delay: number): T {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), delay);
    return () => clearTimeout(timer);
  }, [value, delay]);
  return settled;
}

interface TileProps {
  value: string;
  word: string;
  kind?: string;
  pressed?: boolean;
  press?: () => void;
  hint?: string;
}

function Tile({ value, word, kind = '', pressed = false, press, hint }: TileProps) {
  const content = <><b>{value}</b> {word}</>;
  if (!press) return <span class={`tile ${kind}`} title={hint}>{content}</span>;
  return <button class={`tile ${kind}`} aria-pressed={pressed} onClick={press} title={hint}>{content}</button>;
}

function Totals({ totals, filter, setFilter }: { totals: FleetTotals; filter: string; setFilter: (text: string) => void }) {
  const tile = (count: number | undefined, word: string, filterWord: string, kind = '') => (
    <Tile
      value={fmt.count(num(count))} word={word} kind={num(count) ? kind : ''}
      pressed={filter.split(' ').includes(filterWord)} press={() => setFilter(toggle(filter, filterWord))}
    />
  );
  const chips = num(totals.chips);
  const idle = maybe(totals.chipsIdle);
  return (
    <>
      {tile(totals.critical, 'critical', 'sev:critical', 'critical')}
      {tile(totals.warning, 'warning', 'sev:warning', 'warning')}
      {tile(totals.running, 'running', 'state:running')}
      {tile(totals.silent, 'silent', 'state:silent')}
      {tile(totals.ended, 'ended', 'state:ended')}
      {maybe(totals.goodputRatio) === null ? null : <Tile value={fmt.percent(maybe(totals.goodputRatio))} word="goodput" hint="Productive time of all time of the running jobs" />}
      {chips ? (
        <Tile
          value={fmt.count(chips)} kind={num(totals.chipsSick) ? 'chips' : ''}
          word={`chips, ${fmt.count(num(totals.chipsSick))} in sick jobs${idle === null ? '' : `, ${fmt.count(idle)} idle`}`}
          hint={idle === null ? 'Idle chips: the token may not read the job “hosts”' : undefined}
        />
      ) : null}
    </>
  );
}

function ColumnChoice({ columns }: { columns: string[] }) {
  const change = (key: string, on: boolean): void => {
    const next = on ? [...columns, key] : columns.filter((column) => column !== key);
    const text = next.join(',');
    go({ q: { cols: text === DEFAULT_COLUMNS.join(',') ? '' : text || 'none' } }, 'replace');
  };
  const [name, setName] = useState('');
  const add = (event: Event): void => {
    event.preventDefault();
    if (name.trim()) change(`attr.${name.trim()}`, true);
    setName('');
  };
  return (
    <details class="columns">
      <summary>Columns</summary>
      <div>
        {COLUMN_CHOICES.map(({ key, title }) => (
          <label key={key}>
            <input type="checkbox" checked={columns.includes(key)} onChange={(event) => change(key, event.currentTarget.checked)} /> {title}
          </label>
        ))}
        {columns.filter((key) => key.startsWith('attr.')).map((key) => (
          <label key={key}><input type="checkbox" checked onChange={() => change(key, false)} /> {key.slice(5)}</label>
        ))}
        <form onSubmit={add}>
          <input aria-label="Attribute to show" placeholder="attribute" value={name} onInput={(event) => setName(event.currentTarget.value)} />
          <button type="submit">Add</button>
        </form>
      </div>
    </details>
  );
}

function NoJobs() {
  return (
    <Empty title="No job has sent anything yet" hint="A trainer that records metrics appears here within seconds:">
      <pre tabIndex={0}>{`import tacho
run = tacho.init(job="first-job")
for step in range(1000):
    run.log({"loss": train(step)}, step=step)`}</pre>
      <p class="dim">docs/quickstart.md has the whole way, for PyTorch, JAX and C++ too.</p>
    </Empty>
  );
}

// j, k and Enter move through the rows. The mark stays on its job when the order changes.
function useRows(rows: FleetJob[], focusFilter: () => void): number {
  const [marked, mark] = useState<string | null>(null);
  const nameAt = (row: number): string => rows[row]?.job?.name ?? '';
  const at = marked === null ? -1 : rows.findIndex((_, row) => nameAt(row) === marked);
  const move = (by: number): void => {
    if (rows.length) mark(nameAt(Math.max(0, Math.min(rows.length - 1, at + by))));
  };
  const open = (): boolean => {
    const job = rows[at];
    if (!job || (document.activeElement instanceof HTMLElement && document.activeElement.matches('a, button, summary'))) return false;
    const verdict = job.conditions?.[0];
    go(verdict ? verdictRoute(verdict) : { screen: 'job', name: job.job?.name ?? '' });
    return true;
  };
  useKeys([
    { keys: 'j', help: 'Next job', run: () => move(1) },
    { keys: 'k', help: 'Previous job', run: () => move(-1) },
    { keys: 'Enter', help: 'Open the job at its verdict', run: open },
    { keys: 'f', help: 'Filter', run: focusFilter },
  ]);
  return at;
}

function summary(rows: FleetJob[], all: number, leftOut: number): string {
  const shown = rows.length === all ? fmt.plural(all, 'job') : `${fmt.count(rows.length)} of ${fmt.plural(all, 'job')}`;
  return leftOut ? `${shown}; ${fmt.count(leftOut)} more, the healthiest, are left out: filter to see them` : shown;
}

export function Fleet({ route }: ScreenProps) {
  const text = route.q.q ?? '';
  const filter = useMemo(() => parseFilter(text), [text]);
  const settled = useSettled(text, SETTLE_MS);
  const matchers = useMemo(() => parseFilter(settled).matchers, [settled]);
  const keys = route.q.cols ? split(route.q.cols).filter((key) => key !== 'none') : DEFAULT_COLUMNS;
  const attributes = keys.filter((key) => key.startsWith('attr.')).map((key) => key.slice(5));
  const { data, error, ageMs, stale, reload } = useFleet(matchers, attributes);
  const narrow = useNarrow();
  const input = useRef<HTMLInputElement>(null);
  const columns = useMemo(() => columnsOf(keys), [route.q.cols]);
  const sort = route.q.sort ?? '-state';
  const down = sort.startsWith('-');
  const sortKey = sort.replace(/^-/, '');
  const rows = useMemo(() => {
    const kept = [...(data?.jobs.values() ?? [])].filter(filter.test);
    return sortJobs(kept, columns.find((column) => column.key === sortKey), down);
  }, [data, filter, columns, sortKey, down]);
  const selected = useRows(rows, () => input.current?.focus());
  const setFilter = (value: string): void => go({ q: { q: value } }, 'replace');
  const onSort = (key: string): void => {
    const first = key === 'job' || key === 'note' || key.startsWith('attr.') ? key : `-${key}`;
    const next = sort === first ? (first === key ? `-${key}` : key) : first;
    go({ q: { sort: next === '-state' ? '' : next } }, 'replace');
  };
  const title = <h1 class="vh">Fleet</h1>;
  if (!data) return <>{title}{error ? <Failed error={error} retry={reload} /> : <Loading height={600} label="Loading the fleet" />}</>;
  const all = data.jobs.size;
  return (
    <>
      {title}
      <div class="tiles">
        <Totals totals={data.totals} filter={text} setFilter={setFilter} />
        <div class="controls">
          <label>
            Filter{' '}
            <input
              ref={input} type="search" value={text} spellcheck={false} placeholder="name, state:running, user=ana"
              title={'name · state:running,silent,ended · sev:critical,warning,info,healthy · tag:keep · group:g · host:host-1* · attribute=value · -word for the opposite'}
              aria-invalid={filter.problems.length ? true : undefined} onInput={(event) => setFilter(event.currentTarget.value)}
              onKeyDown={(event) => event.key === 'Escape' && input.current?.blur()}
            />
          </label>
          <ColumnChoice columns={keys} />
        </div>
      </div>
      {filter.problems.length ? <p class="stale">Not understood: {filter.problems.map(fmt.text).join(' ')}</p> : null}
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      {all === 0 && !matchers.length ? <NoJobs /> : null}
      {rows.length ? (
        <div class={stale ? 'fleet old' : 'fleet'}>
          <DataTable
            label="Jobs" head="job" columns={columns} rows={rows} rowKey={(job) => job.job?.name ?? ''} virtual
            rowHeight={narrow ? CARD_HEIGHT : ROW_HEIGHT} rowClass={(job) => `${worst(job)} ${stateOf(job)}`}
            selected={selected} sorted={{ key: sortKey, down }} onSort={onSort}
          />
        </div>
      ) : null}
      {!rows.length && (all || matchers.length) ? (
        <Empty title="No job matches the filter"><p class="actions"><button onClick={() => setFilter('')}>Show all jobs</button></p></Empty>
      ) : null}
      <p class="dim" role="status">{all ? summary(rows, all, data.leftOut) : ''}</p>
    </>
  );
}
