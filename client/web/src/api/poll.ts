// Asks again and again while the page is visible. Old data stays while a refresh fails. While the
// page's stream is live, what it reports is asked less often, or only when it says that there is news.
import { useEffect, useRef, useState } from 'preact/hooks';
import { auth } from './auth';
import { feed } from './feed';
import { live } from './live';
import { asRpcError, nextDelay } from './retry';
import { isAbort, type RpcError } from './rpc';

export interface Polled<T> {
  data: T | null;
  error: RpcError | null;
  ageMs: number;
  stale: boolean;
  reload(): void;
  // There is something new: asks, but not within `afterMs` (`everyMs` if absent) of the last answer.
  nudge(afterMs?: number): void;
}

export interface PollerOptions<T> {
  fetch: (signal: AbortSignal) => Promise<T>;
  everyMs: number; // 0: once, and again only by reload().
  calmMs?: number; // The same while the page's stream is live; `everyMs` if absent.
  changed: () => void;
  visible?: () => boolean;
  random?: () => number;
  now?: () => number;
  streams?: () => boolean;
}

// An answer from before the first stream is asked again, unless it is as young as this.
const FRESH_MS = 10_000;

export class Poller<T> {
  data: T | null = null;
  error: RpcError | null = null;
  answeredMs = 0;
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private call: AbortController | null = null;
  private ended = false;
  private due = false; // There is something new: see nudge().
  private dueMs = 0;
  private missed = false; // The stream was away.
  private soon = false; // The timer is answersAgain()'s.

  constructor(private readonly options: PollerOptions<T>) {}

  start(): void {
    this.ask();
  }

  stop(): void {
    this.ended = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.call?.abort();
  }

  // At once, instead of the call that is at work.
  reload(): void {
    this.call?.abort();
    this.call = null;
    this.ask();
  }

  // The page is visible again, or goes on after a pause.
  wake(): void {
    if (!this.call && !this.resting() && (this.options.everyMs > 0 || !this.data)) this.ask();
  }

  nudge(afterMs = this.options.everyMs): void {
    this.due = true;
    this.dueMs = afterMs;
    if (this.call) return;
    // News must not put off what is to be tried again: there may be some every second.
    if (this.failures > 0 && this.timer !== null) this.answersAgain();
    else this.plan(null);
  }

  // The page's stream is live, or no longer.
  turned(): void {
    if (this.options.calmMs === undefined) return;
    const back = this.streams() && this.missed;
    this.missed = !this.streams();
    if (this.resting()) return;
    // An answer that is on its way may be of before the stream.
    if (back) this.reload();
    else if (this.call) return;
    else if (this.streams() && this.failures > 0 && this.timer !== null) this.answersAgain();
    else if (this.streams() && this.ageMs() > FRESH_MS) this.ask();
    else this.plan(null);
  }

  // Another call was answered, or the stream has news, after a failure. Tabs must not ask at one
  // moment, and a collector that said when to come again is not asked before.
  answersAgain(): void {
    const away = this.error?.code === 'unavailable' && this.error.retryAfterMs === null;
    if (!away || this.soon || this.call || this.ended || this.resting()) return;
    this.soon = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = null;
      this.soon = false;
      if (!this.resting()) this.ask();
    }, 1000 * (this.options.random ?? Math.random)());
  }

  stale(): boolean {
    const every = this.pace();
    return this.data !== null && (this.error !== null || (every > 0 && this.ageMs() > 3 * every + 5000));
  }

  // Whether another call is planned.
  get waits(): boolean {
    return this.timer !== null;
  }

  ageMs(): number {
    return this.answeredMs ? this.now() - this.answeredMs : 0;
  }

  private streams(): boolean {
    return (this.options.streams ?? (() => feed.live))();
  }

  private pace(): number {
    const { everyMs, calmMs } = this.options;
    return calmMs !== undefined && this.streams() ? calmMs : everyMs;
  }

  private now(): number {
    return (this.options.now ?? Date.now)();
  }

  private resting(): boolean {
    const visible = this.options.visible ?? (() => typeof document === 'undefined' || document.visibilityState === 'visible');
    return !visible() || (live.paused && this.data !== null);
  }

  private ask(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.due = this.soon = false;
    if (this.ended) return;
    const call = new AbortController();
    this.call = call;
    this.options.fetch(call.signal).then(
      (data) => this.call === call && this.answer(data),
      (error: unknown) => this.call === call && this.fail(error),
    );
  }

  private answer(data: T): void {
    this.call = null;
    this.data = data;
    this.error = null;
    this.failures = 0;
    this.answeredMs = this.now();
    live.answered();
    this.plan(null);
    this.options.changed();
  }

  private fail(error: unknown): void {
    this.call = null;
    if (isAbort(error)) {
      this.plan(null);
      return;
    }
    this.error = asRpcError(error);
    this.failures++;
    if (this.error.code === 'unavailable') live.failed(this.error.code, this.error.message);
    this.plan(this.error.retryAfterMs);
    this.options.changed();
  }

  private plan(retryAfterMs: number | null): void {
    if (this.soon) return;
    // Asking again cannot help: a wrong token, a request that is not understood.
    const hopeless = this.error && ['unauthenticated', 'permission_denied', 'invalid_argument', 'unimplemented'].includes(this.error.code);
    const every = this.pace();
    const once = every === 0 && !this.due && (!this.error || this.error.code !== 'unavailable');
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.ended || hopeless || once) return;
    const random = (this.options.random ?? Math.random)();
    const delay = this.due && !this.failures
      ? Math.max(0, this.dueMs - this.ageMs())
      : nextDelay(every, this.failures, retryAfterMs, random);
    this.timer = setTimeout(() => {
      this.timer = null;
      if (!this.resting()) this.ask();
    }, delay);
  }
}

// Calls `fetch` now and every `everyMs` (0: once), and again at once when `key` changes. An empty
// key asks nothing. The data of another key is dropped. `calmMs`: see PollerOptions.
export function usePoll<T>(key: string, fetch: (signal: AbortSignal) => Promise<T>, everyMs: number, calmMs?: number): Polled<T> {
  const [, redraw] = useState(0);
  const newest = useRef(fetch);
  newest.current = fetch;
  const poller = useRef<{ key: string; poller: Poller<T> } | null>(null);
  useEffect(() => {
    if (!key) {
      poller.current = null;
      return;
    }
    const mine = new Poller<T>({
      fetch: (signal) => newest.current(signal),
      everyMs,
      ...(calmMs === undefined ? {} : { calmMs }),
      changed: () => redraw((n) => n + 1),
    });
    poller.current = { key, poller: mine };
    const wake = (): void => mine.wake();
    const signedIn = (): void => {
      if (!auth.needed) mine.reload();
    };
    document.addEventListener('visibilitychange', wake);
    let paused = live.paused;
    let failing = live.failing !== '';
    const resume = (): void => {
      const [wasPaused, wasFailing] = [paused, failing];
      paused = live.paused;
      failing = live.failing !== '';
      if (wasPaused && !paused) wake();
      if (wasFailing && !failing) mine.answersAgain();
    };
    const off = [live.on(resume), auth.on(signedIn), feed.on(() => mine.turned())];
    mine.start();
    return () => {
      document.removeEventListener('visibilitychange', wake);
      off.forEach((f) => f());
      mine.stop();
    };
  }, [key, everyMs, calmMs]);
  const now = poller.current?.key === key ? poller.current.poller : null;
  return {
    data: now?.data ?? null,
    error: now?.error ?? null,
    ageMs: now?.ageMs() ?? 0,
    stale: now?.stale() ?? false,
    reload: () => poller.current?.poller.reload(),
    nudge: (afterMs) => poller.current?.poller.nudge(afterMs),
  };
}
