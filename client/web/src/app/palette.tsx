// Ctrl K: jobs, tasks, hosts, metrics, tags and screens by a few letters.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { fleet, labelValues, listMetrics } from '../api/calls';
import { usePoll } from '../api/poll';
import type { FleetJob } from '../api/types';
import { copyText } from '../parts/copy';
import { fmt } from '../parts/format';
import { Dialog } from './dialog';
import { worst } from './filter';
import { find, type Entry } from './match';
import { JOB_TABS, PLACES } from './places';
import { go, route, type Route } from './route';
import { fleetStore } from './store';
import { choices } from './theme';

interface Target extends Entry {
  kind: string;
  run: () => void;
}

const MOST_SHOWN = 12;

const to = (change: Partial<Route>) => (): void => go({ name: '', tab: '', ...change });

function screens(): Target[] {
  return PLACES.map(([screen, title]) => ({ kind: 'view', text: title, run: to({ screen }) }));
}

function actions(): Target[] {
  const theme = (name: 'light' | 'dark' | 'auto'): Target => ({
    kind: 'do', text: name === 'auto' ? 'colours as the system has them' : `${name} colours`, run: () => choices.setScheme(name),
  });
  return [
    { kind: 'do', text: 'copy link', run: () => void copyText(location.href) },
    theme('dark'), theme('light'), theme('auto'),
    { kind: 'do', text: 'times in UTC', run: () => choices.setZone('utc') },
    { kind: 'do', text: 'times in the local zone', run: () => choices.setZone('local') },
  ];
}

function ofJob(job: FleetJob): Target[] {
  const name = job.job?.name ?? '';
  const verdicts = (job.conditions ?? []).map((c) => c.condition ?? '');
  const severity = worst(job);
  const note = severity === 'healthy' ? '' : `${severity}: ${verdicts.join(', ')}`;
  return [
    { kind: 'job', text: name, note, also: verdicts.join(' '), run: to({ screen: 'job', name }) },
    ...JOB_TABS.map(([tab, title]) => ({ kind: 'view', text: `${name} › ${title}`, weak: true, run: to({ screen: 'job', name, tab }) })),
  ];
}

function tagsOf(jobs: FleetJob[]): Target[] {
  const tags = new Set(jobs.flatMap((job) => job.job?.marks?.tags ?? []));
  return [...tags].map((tag) => ({ kind: 'tag', text: tag, run: to({ screen: 'fleet', q: { q: `tag:${tag}` } }) }));
}

// "417" names a task of the job that is open.
function taskOf(query: string, job: string): Target[] {
  const number = /^(?:task\s*)?(\d+)$/.exec(query.trim());
  if (!number || !job) return [];
  return [{ kind: 'task', text: `task ${number[1]} of ${job}`, run: to({ screen: 'job', name: job, tab: 'tasks', q: { row: number[1] } }) }];
}

async function jobsNow(signal: AbortSignal): Promise<FleetJob[]> {
  return fleetStore.jobs.length ? fleetStore.jobs : ((await fleet({}, signal, 1)).jobs ?? []);
}

function useTargets(job: string): Target[] {
  const jobs = usePoll('palette jobs', jobsNow, 0);
  const hosts = usePoll('palette hosts', (signal) => labelValues({ selector: { job: 'hosts' }, label: 'host', maxValues: 20000 }, signal, 1), 0);
  const metrics = usePoll(job ? `palette metrics ${job}` : '', (signal) => listMetrics({ job }, signal, 1), 0);
  return useMemo(() => {
    const all = (jobs.data ?? []).filter((j) => j.job?.name !== 'hosts');
    return [
      ...screens(),
      ...all.flatMap(ofJob),
      ...(hosts.data?.values ?? []).map((host) => ({ kind: 'host', text: host.value ?? '', run: to({ screen: 'host', name: host.value ?? '' }) })),
      ...(metrics.data?.metrics ?? []).map((use) => ({
        kind: 'metric', text: use.metric?.name ?? '', note: use.metric?.help ?? '',
        run: to({ screen: 'job', name: job, tab: 'metrics', q: { m: use.metric?.name ?? '' } }),
      })),
      ...tagsOf(all),
      ...actions(),
    ];
  }, [jobs.data, hosts.data, metrics.data]);
}

export function Palette({ close }: { close: () => void }) {
  const job = route().screen === 'job' ? route().name : '';
  const [query, setQuery] = useState('');
  const [at, setAt] = useState(0);
  const targets = useTargets(job);
  const found = useMemo(() => [...taskOf(query, job), ...find(targets, query, MOST_SHOWN)].slice(0, MOST_SHOWN), [targets, query]);
  const list = useRef<HTMLUListElement>(null);
  const chosen = Math.min(at, found.length - 1);
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: 'nearest' }), [chosen]);
  const run = (target: Target | undefined): void => {
    if (!target) return;
    close();
    target.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 6, PageUp: -6 };
    if (event.key === 'Enter') run(found[chosen]);
    else if (moves[event.key]) setAt(Math.max(0, Math.min(found.length - 1, chosen + moves[event.key])));
    else if (event.key === 'Tab' && found[chosen]?.kind === 'job') setQuery(`${found[chosen].text} `);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog label="Search" close={close}>
      <div class="palette">
        <input
          type="text" role="combobox" aria-expanded="true" aria-controls="found" aria-label="Search jobs, hosts, metrics, tags and screens"
          aria-activedescendant={found.length ? `found-${chosen}` : undefined} autocomplete="off" spellcheck={false} autofocus
          placeholder="job, host, metric, tag, screen" value={query}
          onInput={(event) => {
            setQuery(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={onKeyDown}
        />
        <ul id="found" role="listbox" aria-label="Found" ref={list}>
          {found.map((target, i) => (
            <li id={`found-${i}`} key={`${target.kind} ${target.text}`} role="option" aria-selected={i === chosen} onClick={() => run(target)}>
              <span class="kind">{target.kind}</span> <span>{fmt.text(target.text)}</span> <span class="dim">{fmt.text(target.note ?? '')}</span>
            </li>
          ))}
        </ul>
        <p class="dim" role="status">{found.length ? '↑ ↓ choose · Enter open · Tab a job’s views · Esc close' : 'Nothing found.'}</p>
      </div>
    </Dialog>
  );
}
