// The URL holds everything that a screen shows, so that a link shows the same to everybody:
// #/SCREEN/NAME/TAB?key=value&…  Screens leave out values that are their defaults.
import { useEffect, useState } from 'preact/hooks';
import { listeners } from '../api/listeners';

export interface Route {
  screen: string;
  name: string;
  tab: string;
  q: Record<string, string>;
}

export const FIRST_SCREEN = 'fleet';
// What all tabs of a job share: the axis, its range, the cursor, the attempts.
const KEPT_ACROSS_TABS = ['x', 'r', 'c', 'at'];
export const LONGEST_LINK = 2000;

// Encodes what would end a part, and leaves the rest readable.
function encode(text: string, keep: RegExp): string {
  return encodeURIComponent(text).replace(/%[0-9A-F]{2}/g, (code) => {
    const char = String.fromCharCode(parseInt(code.slice(1), 16));
    return keep.test(char) ? char : code;
  });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // A link that somebody cut short or typed.
  }
}

const IN_PATH = /[@:,+$]/;
const IN_QUERY = /[@:,$/|^]/;

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#/, '').replace(/^\//, '');
  const cut = text.indexOf('?');
  const path = (cut < 0 ? text : text.slice(0, cut)).split('/').map(decode);
  const q: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const part of cut < 0 ? [] : text.slice(cut + 1).split('&')) {
    if (!part) continue;
    const equals = part.indexOf('=');
    const key = decode(equals < 0 ? part : part.slice(0, equals));
    q[key] = equals < 0 ? '1' : decode(part.slice(equals + 1));
  }
  return { screen: path[0] || FIRST_SCREEN, name: path[1] ?? '', tab: path[2] ?? '', q };
}

export function formatRoute(r: Route): string {
  const path = [r.screen === FIRST_SCREEN && !r.name ? '' : r.screen, r.name, r.tab];
  while (path.length > 1 && !path[path.length - 1]) path.pop();
  const query = Object.keys(r.q)
    .filter((key) => r.q[key] !== '' && r.q[key] !== undefined)
    .map((key) => `${encode(key, IN_QUERY)}=${encode(r.q[key], IN_QUERY)}`);
  const text = `#/${path.map((part) => encode(part, IN_PATH)).join('/')}`;
  return query.length ? `${text}?${query.join('&')}` : text;
}

// `change` on top of `now`. A key of q that is '' goes away. Another screen or name begins with an
// empty q; another tab keeps what tabs share.
export function merge(now: Route, change: Partial<Route>): Route {
  const screen = change.screen ?? now.screen;
  const moved = screen !== now.screen || (change.name !== undefined && change.name !== now.name);
  const name = change.name ?? (moved ? '' : now.name);
  const tab = change.tab ?? (moved ? '' : now.tab);
  const q: Record<string, string> = {};
  if (!moved) {
    for (const key of Object.keys(now.q)) {
      if (tab === now.tab || KEPT_ACROSS_TABS.includes(key)) q[key] = now.q[key];
    }
  }
  for (const key of Object.keys(change.q ?? {})) q[key] = change.q![key];
  for (const key of Object.keys(q)) if (q[key] === '' || q[key] === undefined) delete q[key];
  return { screen, name, tab, q };
}

export function route(): Route {
  return parseRoute(typeof location === 'undefined' ? '' : location.hash);
}

const told = listeners();
const tell = told.tell;
if (typeof window !== 'undefined') {
  window.addEventListener('hashchange', tell);
  window.addEventListener('popstate', tell);
}

export function href(change: Partial<Route>): string {
  return formatRoute(merge(route(), change));
}

// 'push' is for what a person did on purpose, so that Back undoes it; 'replace' for what follows
// the pointer.
export function go(change: Partial<Route>, how: 'push' | 'replace' = 'push'): void {
  const target = href(change);
  if (target === formatRoute(route())) return;
  if (target.length > LONGEST_LINK) {
    window.dispatchEvent(new CustomEvent('tacho-notice', { detail: 'The link would be longer than 2,000 characters: select fewer.' }));
    return;
  }
  if (how === 'push') history.pushState(null, '', target);
  else history.replaceState(null, '', target);
  tell();
}

export function useRoute(): Route {
  const [now, set] = useState(route);
  useEffect(() => {
    const update = (): void => set(route());
    update(); // It may have changed between the first rendering and this effect.
    return told.on(update);
  }, []);
  return now;
}
