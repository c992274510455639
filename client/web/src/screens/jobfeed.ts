// What the page's stream says of the open job: rows of the metrics on the screen, and events. Query.Watch
// sends each sample once, as it becomes durable, after those of the last seconds.
import type { Source } from '../api/feed';
import { feed } from '../api/feed';
import { ms, ns, num } from '../api/json';
import { listeners } from '../api/listeners';
import { collectorNow, live } from '../api/live';
import type { Points, RecordedEvent, SeriesInfo, WatchResponse } from '../api/types';

export interface Row {
  step: number;
  value: number;
}

// `late`: a row that an answer before may not have, at a step that it has.
export type Changed = (rows: Row[], late: boolean) => void;

// Rows of this time come before new ones: they say how far each series is.
const HISTORY_MS = 30_000;
const MOST_SERIES = 4096;
const MOST_METRICS = 40;
const MOST_EVENTS = 2000;
const MOST_ROWS = 20_000; // Of a metric.
// Charts that come into view together are one request; so are rows that come together.
const GATHER_MS = 250;

interface Place {
  step: number;
  time: number;
}

// The recent rows of one metric, of the newest attempt.
export class RecentRows {
  rows: Row[] = [];
  attempt = 0;
  private floor = -Infinity; // From this step on, no row is missing.
  private newest = new Map<string, Place>();

  // Whether the row is new to us; null: it comes late, or instead of another.
  add(series: string, attempt: number, step: number, time: number, value: number, history: boolean): boolean | null {
    if (!Number.isFinite(step)) return false;
    if (attempt < this.attempt) return history ? false : null;
    if (attempt > this.attempt) this.restart(attempt);
    const last = this.newest.get(series);
    if (last && time <= last.time) return history ? false : null;
    if (history && !last) this.floor = Math.max(this.floor, step);
    const late = !history && last !== undefined && step < last.step;
    this.newest.set(series, { step, time });
    this.rows.push({ step, value });
    if (this.rows.length > MOST_ROWS) this.trim();
    return late ? null : true;
  }

  // The step up to which every series has sent its rows, if all later ones are here; else null.
  settled(): number | null {
    let lowest = Infinity;
    for (const { step } of this.newest.values()) lowest = Math.min(lowest, step);
    return Number.isFinite(lowest) && lowest >= this.floor - 1 ? lowest : null;
  }

  get tip(): number {
    let highest = -Infinity;
    for (const { step } of this.newest.values()) highest = Math.max(highest, step);
    return highest;
  }

  after(step: number): Row[] {
    return this.rows.filter((row) => row.step > step);
  }

  private restart(attempt: number): void {
    this.attempt = attempt;
    this.rows = [];
    this.newest.clear();
    this.floor = -Infinity;
  }

  private trim(): void {
    for (const row of this.rows.splice(0, MOST_ROWS / 2)) this.floor = Math.max(this.floor, row.step + 1);
  }
}

interface Wanted {
  metric: string;
  changed: Changed;
}

interface News {
  rows: Row[];
  late: boolean;
}

export class JobFeed {
  job = '';
  lastStep = -Infinity;
  lastSeenMs = 0;
  private readonly tips = listeners();
  readonly onTip = this.tips.on;
  events: RecordedEvent[] = []; // Those of the stream, in its order.
  private readonly eventful = listeners();
  readonly onEvent = this.eventful.on;
  private wanted = new Set<Wanted>();
  private asked: string[] = []; // The metrics of the present request.
  private recent = new Map<string, RecentRows>();
  private news = new Map<string, News>();
  private flushing = false;
  private gathering: ReturnType<typeof setTimeout> | undefined;

  open(job: string): void {
    this.job = job;
    this.lastStep = -Infinity;
    this.lastSeenMs = 0;
    this.asked = [];
    this.events = [];
    this.recent.clear();
  }

  close(): void {
    this.job = '';
    this.wanted.clear();
    clearTimeout(this.gathering);
    feed.watch(null);
  }

  // Until the returned function is called, `changed` gets the rows of the metric.
  want(metric: string, changed: Changed): () => void {
    const mine = { metric, changed };
    this.wanted.add(mine);
    clearTimeout(this.gathering);
    this.gathering = setTimeout(() => this.gather(), GATHER_MS);
    return () => void this.wanted.delete(mine);
  }

  // Rows of the metric, while the stream sends all of them.
  of(metric: string): RecentRows | null {
    return feed.live ? (this.recent.get(metric) ?? null) : null;
  }

  // Metrics that are no longer in view stay for a while, so that scrolling needs no new stream.
  private gather(): void {
    const now = [...new Set([...this.wanted].map((w) => w.metric))].slice(0, MOST_METRICS);
    const all = [...new Set([...this.asked, ...now])].sort();
    const next = all.length > MOST_METRICS ? now.sort() : all;
    if (!this.job || !next.length || next.join('\n') === this.asked.join('\n')) return;
    this.asked = next;
    feed.watch(this.source(this.job, next));
  }

  private source(job: string, metrics: string[]): Source {
    return {
      subject: `job ${job}`,
      key: JSON.stringify([job, ...metrics]),
      method: 'tacho.v1.Query/Watch',
      request: () => ({
        selector: { job, metrics }, beginUnixNs: ns(collectorNow() - HISTORY_MS), events: true, maxSeries: String(MOST_SERIES),
      }),
      begin: (gap) => {
        if (gap) this.recent.clear();
        const series = new Map<number, SeriesInfo>();
        let history = true;
        return (message) => {
          const { series: info, samples, event, live: mark, alive } = message as WatchResponse;
          if (info) series.set(info.index ?? 0, info.series ?? {});
          if (samples) this.samples(series.get(samples.index ?? 0) ?? {}, samples.points ?? {}, history);
          if (event) this.event(event, history);
          const clock = ms((mark ?? alive)?.clockUnixNs);
          if (clock !== null) live.clock(clock);
          if (mark) history = false;
          return mark !== undefined;
        };
      },
    };
  }

  private event(event: RecordedEvent, history: boolean): void {
    this.events = [...this.events.slice(-MOST_EVENTS), event];
    if (!history) this.eventful.tell();
  }

  private samples(info: SeriesInfo, points: Points, history: boolean): void {
    const metric = info.metric?.name ?? '';
    const rows = this.rowsOf(metric);
    // Of one series, whatever its number in another stream.
    const series = `${info.task ?? ''} ${info.host ?? ''} ${(info.labels ?? []).map((l) => `${l.name}=${l.value}`).join()}`;
    const news = this.news.get(metric) ?? { rows: [], late: false };
    (points.values ?? []).forEach((value, i) => {
      const time = ms(points.timesUnixNs?.[i]) ?? 0;
      const step = points.steps?.[i] === undefined ? NaN : num(points.steps[i]);
      const taken = rows.add(series, points.attempts?.[i] ?? 0, step, time, num(value), history);
      if (taken) news.rows.push({ step, value: num(value) });
      if (taken === null) news.late = true;
      this.lastSeenMs = Math.max(this.lastSeenMs, time);
      if (step > this.lastStep) this.lastStep = step;
    });
    this.news.set(metric, news);
    this.flush();
  }

  private rowsOf(metric: string): RecentRows {
    const known = this.recent.get(metric);
    if (known) return known;
    const made = new RecentRows();
    this.recent.set(metric, made);
    return made;
  }

  private flush(): void {
    if (this.flushing) return;
    this.flushing = true;
    setTimeout(() => {
      this.flushing = false;
      const news = this.news;
      this.news = new Map();
      for (const { metric, changed } of [...this.wanted]) {
        const mine = news.get(metric);
        if (mine) changed(mine.rows, mine.late);
      }
      this.tips.tell();
    }, GATHER_MS);
  }
}

// Of the job that is open; there is one at a time.
export const jobFeed = new JobFeed();
