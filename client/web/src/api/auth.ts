// The token: in this tab's session, or, if the person asks for it, in this browser. Never in a
// cookie: cookies ignore ports, so another local server would get it.

import { listeners } from './listeners';

const KEY = 'tacho-token';
const CHANNEL = 'tacho-token';

const told = listeners();
const tell = told.tell;
let token: string | null = null;
let asked = false; // The collector refused the present token, or wants one.
let reason = '';
let channel: BroadcastChannel | null = null;

function read(storage: 'sessionStorage' | 'localStorage'): string | null {
  try {
    return globalThis[storage].getItem(KEY);
  } catch {
    return null; // A browser may forbid storage; the token then lives as long as the tab.
  }
}

function write(storage: 'sessionStorage' | 'localStorage', value: string | null): void {
  try {
    if (value === null) globalThis[storage].removeItem(KEY);
    else globalThis[storage].setItem(KEY, value);
  } catch {
    // As above.
  }
}

function forget(): void {
  token = null;
  write('sessionStorage', null);
  write('localStorage', null);
  auth.refuse('');
}

export const auth = {
  get token(): string | null {
    return token;
  },
  get needed(): boolean {
    return asked;
  },
  get reason(): string {
    return reason;
  },
  on: told.on,
  // Reads what is stored, and asks the other tabs of this browser if there is nothing.
  start(): void {
    token = read('sessionStorage') ?? read('localStorage');
    if (typeof BroadcastChannel === 'undefined') return;
    channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = (event: MessageEvent<{ ask?: boolean; token?: string; signOut?: boolean }>) => {
      if (event.data.signOut) forget();
      if (event.data.ask && token && !asked) channel?.postMessage({ token });
      if (event.data.token && (asked || !token)) auth.take(event.data.token);
    };
    if (!token) channel.postMessage({ ask: true });
  },
  take(value: string): void {
    token = value;
    asked = false;
    write('sessionStorage', value);
    tell();
  },
  signIn(value: string, keep: boolean): void {
    write('localStorage', keep ? value : null);
    auth.take(value);
    channel?.postMessage({ token: value });
  },
  // In all tabs of this browser: one that kept the token would hand it back to the others.
  signOut(): void {
    forget();
    channel?.postMessage({ signOut: true });
  },
  // The collector answered 401.
  refuse(why: string): void {
    if (asked && reason === why) return;
    asked = true;
    reason = why;
    tell();
  },
};
