// Header, screen, and what lies above all screens.
import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { auth } from '../api/auth';
import { whoAmI } from '../api/calls';
import { live } from '../api/live';
import { usePoll } from '../api/poll';
import { copyText } from '../parts/copy';
import { Empty } from '../parts/states';
import { Fleet } from '../screens/fleet';
import { Header } from './header';
import { Help } from './help';
import { useKeys } from './keys';
import { lazy } from './lazy';
import { Palette } from './palette';
import { PLACES } from './places';
import { go, useRoute, type Route } from './route';
import type { ScreenProps } from './screen';
import { SignIn } from './signin';
import { choices } from './theme';
import { WhoContext } from './who';

const JOB = lazy(async () => (await import('../screens/job')).Job);
const SCREENS: Record<string, ComponentType<ScreenProps>> = {
  fleet: Fleet,
  job: JOB.Screen,
  compare: lazy(async () => (await import('../screens/compare')).Compare).Screen,
  hosts: lazy(async () => (await import('../screens/hosts')).Hosts).Screen,
  host: lazy(async () => (await import('../screens/host')).Host).Screen,
  agents: lazy(async () => (await import('../screens/agents')).Agents).Screen,
  collector: lazy(async () => (await import('../screens/collector')).Collector).Screen,
  runbook: lazy(async () => (await import('../screens/runbook')).Runbook).Screen,
};
// After the first look; most people open a job next.
const PREPARE_AFTER_MS = 1500;
const TITLES = Object.fromEntries(PLACES);
// The badge calls answers stale after 20 seconds, and some screens ask nothing else. A collector that
// is replaced by another version ends the stream, so nothing is asked while that is live.
const WHO_EVERY_MS = 12_000;

function Missing({ route }: ScreenProps) {
  return <Empty title={`There is no screen “${route.screen}”`} hint="The link may be of a newer page." />;
}

function titleOf(route: Route): string {
  const parts = [route.tab, route.name, TITLES[route.screen] ?? ''].filter(Boolean);
  return `${parts.join(' · ') || route.screen} – Tachograph`;
}

// Draws again when the person signs in or out, or chooses other colours or another zone.
function useChanges(): void {
  const [, draw] = useState(0);
  useEffect(() => {
    const again = (): void => draw((n) => n + 1);
    const off = [auth.on(again), choices.on(again)];
    return () => off.forEach((f) => f());
  }, []);
}

function useNotice(): string {
  const [text, set] = useState('');
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (event: Event): void => {
      set(String((event as CustomEvent).detail));
      clearTimeout(timer);
      timer = setTimeout(() => set(''), 4000);
    };
    window.addEventListener('tacho-notice', show);
    return () => window.removeEventListener('tacho-notice', show);
  }, []);
  return text;
}

// A new screen begins at its top, and screen readers hear it.
function useArrival(route: Route): void {
  const first = useRef(true);
  useEffect(() => {
    document.title = titleOf(route);
  }, [route.screen, route.name, route.tab]);
  useEffect(() => {
    if (!first.current) document.getElementById('main')?.focus({ preventScroll: true });
    first.current = false;
  }, [route.screen, route.name]);
}

// The page keeps running while the collector is replaced by another version.
function Outdated({ version }: { version: string }) {
  const first = useRef('');
  if (!first.current) first.current = version;
  if (!version || version === first.current) return null;
  return (
    <p class="banner" role="status">
      The collector is now version {version}; this page is of {first.current}.{' '}
      <button onClick={() => location.reload()}>Load the new page</button>
    </p>
  );
}

export function Shell() {
  const route = useRoute();
  const [open, setOpen] = useState<'' | 'palette' | 'help'>('');
  const who = usePoll(auth.needed ? '' : 'who', (signal) => whoAmI({}, signal, 2), WHO_EVERY_MS, 0);
  const text = useNotice();
  useChanges();
  useArrival(route);
  const search = (): void => setOpen(auth.needed ? '' : 'palette');
  useEffect(() => {
    if (auth.needed) setOpen((now) => (now === 'palette' ? '' : now));
  }, [auth.needed]);
  useEffect(() => {
    const timer = setTimeout(JOB.prepare, PREPARE_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  const to = (screen: string) => (): void => go({ screen, name: '', tab: '' });
  useKeys([
    { keys: 'ctrl+k /', help: 'Search', run: search },
    { keys: '?', help: 'Keys', run: () => setOpen('help') },
    { keys: 'g,f', help: 'Fleet', run: to('fleet') },
    { keys: 'g,c', help: 'Compare', run: to('compare') },
    { keys: 'g,h', help: 'Hosts', run: to('hosts') },
    { keys: 'g,a', help: 'Agents', run: to('agents') },
    { keys: 'c', help: 'Copy the link', run: () => void copyText(location.href) },
    { keys: 'p', help: 'Pause or go on', run: () => live.pause(!live.paused) },
  ]);
  const Screen = Object.hasOwn(SCREENS, route.screen) ? SCREENS[route.screen] : Missing;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>To the content</a>
      <Header route={route} who={who.data} search={search} help={() => setOpen('help')} />
      <Outdated version={who.data?.version ?? ''} />
      <main id="main" tabIndex={-1}>
        {auth.needed ? <SignIn key={auth.reason} /> : <WhoContext.Provider value={who.data}><Screen key={`${route.screen}/${route.name}`} route={route} /></WhoContext.Provider>}
      </main>
      {open === 'palette' && !auth.needed ? <Palette close={() => setOpen('')} /> : null}
      {open === 'help' ? <Help close={() => setOpen('')} /> : null}
      <div role="status" class={text ? 'notice' : 'vh'}>{text}</div>
    </>
  );
}
