// Choices of a person that do not belong in a link: colours, the time zone, single-letter keys.
import { listeners } from '../api/listeners';
import { fmt, type Zone } from '../parts/format';

export type Scheme = 'auto' | 'light' | 'dark';

function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function store(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // The choice then lasts as long as the tab.
  }
}

const told = listeners();
const tell = told.tell;
let scheme: Scheme = 'auto';
let keys = true;

function paint(): void {
  if (scheme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = scheme;
}

export const choices = {
  get scheme(): Scheme {
    return scheme;
  },
  get keys(): boolean {
    return keys;
  },
  on: told.on,
  start(): void {
    const value = stored('tacho-theme');
    scheme = value === 'light' || value === 'dark' ? value : 'auto';
    keys = stored('tacho-keys') !== 'off';
    fmt.setZone(stored('tacho-zone') === 'local' ? 'local' : 'utc');
    paint();
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', tell);
  },
  setScheme(value: Scheme): void {
    scheme = value;
    store('tacho-theme', value === 'auto' ? null : value);
    paint();
    tell();
  },
  setZone(value: Zone): void {
    fmt.setZone(value);
    store('tacho-zone', value === 'utc' ? null : value);
    tell();
  },
  setKeys(on: boolean): void {
    keys = on;
    store('tacho-keys', on ? null : 'off');
    tell();
  },
};

export function dark(): boolean {
  return scheme === 'dark' || (scheme === 'auto' && window.matchMedia('(prefers-color-scheme: dark)').matches);
}
