// The header: screens, search, what the person prefers, and whether what is shown is live.
import { useEffect, useRef, useState } from 'preact/hooks';
import { auth } from '../api/auth';
import { collectorNow, live } from '../api/live';
import type { WhoAmIResponse } from '../api/types';
import { fmt } from '../parts/format';
import { PLACES } from './places';
import { href, type Route } from './route';
import { choices, type Scheme } from './theme';

const STALE_AFTER_MS = 20_000;
const SKEW_MS = 5000;

function badge(): [string, string] {
  if (live.paused) return ['paused', 'paused'];
  const age = live.lastAnswerMs ? fmt.duration((Date.now() - live.lastAnswerMs) / 1000) : '';
  if (live.failing) return ['lost', age ? `no answer for ${age}` : 'no answer'];
  if (!live.lastAnswerMs) return ['stale', 'connecting'];
  const old = Date.now() - live.lastAnswerMs > STALE_AFTER_MS;
  return old ? ['stale', `stale ${age}`] : ['', `live ${Date.now() - live.lastAnswerMs < 1000 ? '0s' : age}`];
}

function Live() {
  const [, tick] = useState(0);
  useEffect(() => {
    const again = (): void => tick((n) => n + 1);
    const timer = setInterval(again, 1000);
    const off = live.on(again);
    return () => {
      clearInterval(timer);
      off();
    };
  }, []);
  const [kind, text] = badge();
  const zone = fmt.zone === 'utc' ? 'UTC' : 'local';
  return (
    <button
      class="livebox" aria-pressed={live.paused} title={live.failing || 'Press to stop or start updates'}
      onClick={() => live.pause(!live.paused)}
    >
      <span class={`live ${kind}`}>{text}</span>{' '}
      <span class="dim clock">{fmt.clock(collectorNow())} {zone}</span>
    </button>
  );
}

function Choice<T extends string>({ legend, now, values, choose }: { legend: string; now: T; values: [T, string][]; choose: (value: T) => void }) {
  return (
    <fieldset>
      <legend>{legend}</legend>
      {values.map(([value, title]) => (
        <button key={value} aria-pressed={now === value} onClick={() => choose(value)}>{title}</button>
      ))}
    </fieldset>
  );
}

function Account({ who }: { who: WhoAmIResponse | null }) {
  if (!who) return null;
  const jobs = who.jobsPattern ? `jobs ${who.jobsPattern}` : 'every job';
  return (
    <>
      <p class="dim">
        Collector {who.version}. {who.authentication ? `You are ${who.name || 'without a name'}; ${jobs}.` : 'It asks for no token.'}
      </p>
      {Math.abs(live.skewMs) > SKEW_MS ? (
        <p class="dim">
          This computer’s clock is {fmt.duration(Math.abs(live.skewMs) / 1000)} {live.skewMs > 0 ? 'behind' : 'ahead of'} the collector’s.
        </p>
      ) : null}
      {auth.token ? <button onClick={() => auth.signOut()}>Sign out</button> : null}
    </>
  );
}

function Menu({ who, help }: { who: WhoAmIResponse | null; help: () => void }) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const close = (event: Event): void => {
      const outside = event instanceof KeyboardEvent ? event.key === 'Escape' : !box.current?.contains(event.target as Node);
      if (outside) setOpen(false);
    };
    document.addEventListener('pointerdown', close);
    document.addEventListener('keydown', close);
    return () => {
      document.removeEventListener('pointerdown', close);
      document.removeEventListener('keydown', close);
    };
  }, [open]);
  const schemes: [Scheme, string][] = [['auto', 'System'], ['light', 'Light'], ['dark', 'Dark']];
  return (
    <div class="menu" ref={box}>
      <button aria-expanded={open} onClick={() => setOpen(!open)}>View</button>
      {open ? (
        <div>
          <Choice legend="Colours" now={choices.scheme} values={schemes} choose={(value) => choices.setScheme(value)} />
          <Choice legend="Times" now={fmt.zone} values={[['utc', 'UTC'], ['local', 'Local']]} choose={(value) => choices.setZone(value)} />
          <Account who={who} />
          <p class="actions"><button onClick={help}>Keys <kbd>?</kbd></button></p>
        </div>
      ) : null}
    </div>
  );
}

export interface HeaderProps {
  route: Route;
  who: WhoAmIResponse | null;
  search: () => void;
  help: () => void;
}

export function Header({ route, who, search, help }: HeaderProps) {
  return (
    <header class="top">
      <a class="brand" href={href({ screen: 'fleet', name: '', tab: '' })}>Tachograph</a>
      <nav aria-label="Screens">
        {PLACES.map(([screen, title]) => (
          <a key={screen} href={href({ screen, name: '', tab: '' })} aria-current={route.screen === screen ? 'page' : undefined}>{title}</a>
        ))}
      </nav>
      <button class="search" onClick={search} aria-keyshortcuts="Control+K">Search <kbd>Ctrl K</kbd></button>
      <Live />
      <Menu who={who} help={help} />
    </header>
  );
}
