// Asks again and again while the page is visible. Old data stays while a refresh fails.
import { useEffect, useRef, useState } from 'preact/hooks';
import { auth } from './auth';
import { live } from './live';
import { RpcError, isAbort } from './rpc';

export interface Polled<T> {
  data: T | null;
  error: RpcError | null;
  ageMs: number;
  stale: boolean;
  reload(): void;
}

const LONGEST_MS = 60_000;
const JITTER = 0.2;

// How long to wait before the next call: ± 20 % so that tabs do not march in step, doubling with
// each failure, and never sooner than the collector says. `random` is in [0, 1).
export function nextDelay(everyMs: number, failures: number, retryAfterMs: number | null, random: number): number {
  const doubled = failures === 0 ? everyMs : Math.min(Math.max(everyMs, 1000) * 2 ** failures, LONGEST_MS);
  return Math.max(doubled * (1 - JITTER + 2 * JITTER * random), retryAfterMs ?? 0);
}

export function asRpcError(error: unknown): RpcError {
  if (error instanceof RpcError) return error;
  return new RpcError('internal', error instanceof Error ? error.message : String(error));
}

export interface PollerOptions<T> {
  fetch: (signal: AbortSignal) => Promise<T>;
  everyMs: number; // 0: once, and again only by reload().
  changed: () => void;
  visible?: () => boolean;
  random?: () => number;
  now?: () => number;
}

export class Poller<T> {
  data: T | null = null;
  error: RpcError | null = null;
  answeredMs = 0;
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private call: AbortController | null = null;
  private ended = false;

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

  stale(): boolean {
    const { everyMs } = this.options;
    return this.data !== null && (this.error !== null || (everyMs > 0 && this.ageMs() > 3 * everyMs + 5000));
  }

  // Whether another call is planned.
  get waits(): boolean {
    return this.timer !== null;
  }

  ageMs(): number {
    return this.answeredMs ? this.now() - this.answeredMs : 0;
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
    // Asking again cannot help: a wrong token, a request that is not understood.
    const hopeless = this.error && ['unauthenticated', 'permission_denied', 'invalid_argument', 'unimplemented'].includes(this.error.code);
    const once = this.options.everyMs === 0 && (!this.error || this.error.code !== 'unavailable');
    if (this.ended || hopeless || once) return;
    const delay = nextDelay(this.options.everyMs, this.failures, retryAfterMs, (this.options.random ?? Math.random)());
    this.timer = setTimeout(() => {
      this.timer = null;
      if (!this.resting()) this.ask();
    }, delay);
  }
}

// Calls `fetch` now and every `everyMs` (0: once), and again at once when `key` changes. An empty
// key asks nothing. The data of another key is dropped.
export function usePoll<T>(key: string, fetch: (signal: AbortSignal) => Promise<T>, everyMs: number): Polled<T> {
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
      changed: () => redraw((n) => n + 1),
    });
    poller.current = { key, poller: mine };
    const wake = (): void => mine.wake();
    const signedIn = (): void => {
      if (!auth.needed) mine.reload();
    };
    document.addEventListener('visibilitychange', wake);
    let paused = live.paused;
    const resume = (): void => {
      const was = paused;
      paused = live.paused;
      if (was && !paused) wake();
    };
    const off = [live.on(resume), auth.on(signedIn)];
    mine.start();
    return () => {
      document.removeEventListener('visibilitychange', wake);
      off.forEach((f) => f());
      mine.stop();
    };
  }, [key, everyMs]);
  const now = poller.current?.key === key ? poller.current.poller : null;
  return {
    data: now?.data ?? null,
    error: now?.error ?? null,
    ageMs: now?.ageMs() ?? 0,
    stale: now?.stale() ?? false,
    reload: () => poller.current?.poller.reload(),
  };
}
