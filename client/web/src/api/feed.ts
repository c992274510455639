// The one stream of a page: what the collector sends by itself about what is on the screen. While the
// feed is live, polls of the same things rest (poll.ts). Without it they go on: the collector may
// refuse a stream (query.max_watches), a proxy may hold it back, or other windows have enough of them.
//
// A screen names its source by watch(). A source of the same subject replaces the old one only when
// the new stream is complete, so that nothing is missed in between. A hidden or paused page has none.
import { auth } from './auth';
import { listeners } from './listeners';
import { live } from './live';
import { asRpcError, nextDelay } from './retry';
import { RpcError, isAbort, streamJson } from './rpc';

// Takes one message of a stream; true: what follows is new (`live`).
export type Take = (message: unknown) => boolean;

export interface Source {
  subject: string; // A stream of another subject ends at once.
  key: string; // Another key is another request.
  method: string;
  request: () => unknown;
  // A stream begins. `gap`: what happened between the last one and this one may be missing.
  begin: (gap: boolean) => Take;
}

interface Link {
  source: Source;
  abort: AbortController;
  take: Take;
  heard: number; // ms, by our clock.
}

const FIRST_RETRY_MS = 1000;
// The collector says something every 15 seconds.
const SILENT_MS = 40_000;
const LOOK_EVERY_MS = 5000;
// A refusal that time may heal, but not soon.
const REFUSED_MS = 60_000;
const HOPELESS = ['unauthenticated', 'permission_denied', 'invalid_argument', 'unimplemented', 'not_found'];
// A browser opens six connections to a host, for all windows together; calls need some of them.
const MOST_WINDOWS = 3;
const ANSWERS_MS = 60;

export class Feed {
  private readonly told = listeners();
  readonly on = this.told.on;
  private wanted: Source | null = null;
  private open: Link | null = null; // Live.
  private coming: Link | null = null;
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private channel: BroadcastChannel | null = null;
  private others = new Set<string>();
  private readonly id = Math.random().toString(36).slice(2);

  get live(): boolean {
    return this.open !== null;
  }

  start(): void {
    document.addEventListener('visibilitychange', () => this.turn());
    live.on(() => this.turn());
    auth.on(() => this.turn());
    setInterval(() => this.look(), LOOK_EVERY_MS);
    if (typeof BroadcastChannel === 'undefined') return;
    this.channel = new BroadcastChannel('tacho-streams');
    this.channel.onmessage = ({ data }: MessageEvent<{ ask?: boolean; open?: string }>) => {
      if (data.ask && (this.open || this.coming)) this.channel?.postMessage({ open: this.id });
      if (data.open) this.others.add(data.open);
    };
  }

  watch(source: Source | null): void {
    if (source?.key === this.wanted?.key) return;
    this.wanted = source;
    this.failures = 0;
    if (this.open && this.open.source.subject !== source?.subject) this.drop();
    this.connect();
  }

  private resting(): boolean {
    return !this.wanted || live.paused || auth.needed || (typeof document !== 'undefined' && document.visibilityState !== 'visible');
  }

  // The page was hidden, paused or signed out, or is back.
  private turn(): void {
    if (this.resting()) {
      this.coming?.abort.abort();
      this.coming = null;
      clearTimeout(this.timer);
      this.timer = undefined;
      this.drop();
    } else if (!this.open && !this.coming && this.timer === undefined) {
      this.connect();
    }
  }

  private drop(): void {
    const was = this.open;
    this.open = null;
    was?.abort.abort();
    if (was) this.told.tell();
  }

  private connect(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.coming?.abort.abort();
    this.coming = null;
    if (this.resting()) return this.drop();
    const source = this.wanted!;
    const link: Link = { source, abort: new AbortController(), take: () => false, heard: Date.now() };
    this.coming = link;
    void this.run(link);
  }

  private async run(link: Link): Promise<void> {
    const { source, abort } = link;
    try {
      await this.room();
      if (this.coming !== link) return;
      link.take = source.begin(!this.open);
      const take = (message: unknown): void => this.message(link, message);
      await streamJson(source.method, source.request(), take, { signal: abort.signal, attempts: 1, apart: true });
      this.ended(link, new RpcError('unavailable', 'The stream ended.'));
    } catch (error) {
      this.ended(link, error);
    }
  }

  // Rejects if enough windows of this browser have a stream.
  private async room(): Promise<void> {
    if (!this.channel || this.open) return;
    this.others.clear();
    this.channel.postMessage({ ask: true });
    await new Promise((resolve) => setTimeout(resolve, ANSWERS_MS));
    if (this.others.size >= MOST_WINDOWS) throw new RpcError('resource_exhausted', 'Other windows have streams.');
  }

  private message(link: Link, message: unknown): void {
    if (link !== this.open && link !== this.coming) return;
    link.heard = Date.now();
    live.answered();
    if (!link.take(message) || link !== this.coming) return;
    const old = this.open;
    this.open = link;
    this.coming = null;
    this.failures = 0;
    old?.abort.abort();
    if (!old) this.told.tell();
  }

  private ended(link: Link, error: unknown): void {
    if (link === this.open) this.drop();
    else if (link === this.coming) this.coming = null;
    else return;
    const failure = asRpcError(error);
    if (this.coming || isAbort(error) || HOPELESS.includes(failure.code)) return;
    this.failures++;
    const refused = failure.code === 'resource_exhausted' ? REFUSED_MS : 0;
    const delay = nextDelay(FIRST_RETRY_MS, this.failures - 1, Math.max(refused, failure.retryAfterMs ?? 0), Math.random());
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), delay);
  }

  // A connection that a network swallowed says nothing more, and no error either.
  private look(): void {
    for (const link of [this.open, this.coming]) {
      if (!link || Date.now() - link.heard < SILENT_MS) continue;
      link.abort.abort();
      this.ended(link, new RpcError('unavailable', 'The stream is silent.'));
    }
  }
}

export const feed = new Feed();
