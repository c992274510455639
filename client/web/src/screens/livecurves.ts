// Curves of one metric that follow their job: a whole answer, and then what comes since. A band by step
// grows by the rows of the page's stream, without a call. All other curves are asked again when the
// stream says that there are new rows. Without a stream they are asked every five seconds.
import { useEffect, useRef, useState } from 'preact/hooks';
import { usePoll, type Polled } from '../api/poll';
import type { Curve } from '../chart/types';
import { jobFeed, type Row } from './jobfeed';
import { bandCurves, curves, latestCurves, type CurveRequest } from './series';
import { BandTail } from './tail';
import { useKept } from './view';

const EVERY_MS = 5000;
const WHOLE_EVERY_MS = 60_000; // In between, only what is new is asked.
const STEPS_OF_COLUMN = 1000;

interface Whole {
  key: string;
  curves: Curve[];
  wholeMs: number;
  tail: BandTail | null;
}

// What curves are known by: see View.range. What later attempts ran again changes nothing of a call.
export function curvesKey(request: CurveRequest): string {
  return JSON.stringify({ ...request, superseded: 0, range: 0 });
}

function grows(r: CurveRequest): boolean {
  return r.kind === 'step' && r.range === null && !r.raw && r.by === 'band' && !r.tasks.length;
}

// The narrowest of the last columns: one without a row is left out of an answer.
function widthOf({ x }: Curve): number {
  let width = Infinity;
  for (let i = Math.max(1, x.length - 20); i < x.length; i++) width = Math.min(width, x[i] - x[i - 1]);
  return Number.isFinite(width) ? width : 1;
}

// The curves and their growing end; null if the stream does not give that, or not yet.
async function seeded(request: CurveRequest, lastStep: number, signal: AbortSignal): Promise<Omit<Whole, 'key' | 'wholeMs'> | null> {
  const recent = grows(request) ? jobFeed.of(request.metric) : null;
  const upTo = recent?.settled() ?? null;
  // An attempt that has begun again behind others: which steps are whose is the collector's to say.
  if (!recent || upTo === null || recent.tip < lastStep) return null;
  const all = request.attempts === 'all' && Object.keys(request.superseded).length > 0;
  const [main] = await bandCurves(all ? { ...request, attempts: 'effective' } : request, signal, upTo);
  if (!main || main.x.length < 2) return null;
  const superseded = all ? (await bandCurves(request, signal)).slice(1) : [];
  const width = widthOf(main);
  const from = main.x[main.x.length - 1];
  const steps = width > 1 && upTo > from
    ? (await bandCurves({ ...request, attempts: 'effective', range: [from, upTo], points: STEPS_OF_COLUMN }, signal))[0] ?? null
    : null;
  const tail = new BandTail(main, steps, upTo, width);
  for (const row of recent.after(upTo)) tail.add(row);
  return { curves: [tail.curve(), ...superseded], tail };
}

const endOf = ([main]: Curve[]): number => (main?.x.length ? main.x[main.x.length - 1] : -Infinity);

// Whether rows that come now lie in what the request asks for.
function touches({ kind, range, origin }: CurveRequest, rows: Row[]): boolean {
  if (!range || !rows.length) return true;
  if (kind === 'step') return rows.some((row) => row.step <= range[1]);
  return (kind === 'time' ? range[1] : origin + range[1] * 1000) > jobFeed.lastSeenMs - EVERY_MS;
}

// `lastStep` is the highest step of the job as the collector last said.
export function useCurves(request: CurveRequest, wanted: boolean, lastStep: number): Polled<Curve[]> & { kept: Curve[] | null } {
  const key = curvesKey(request);
  const [, draw] = useState(0);
  const held = useRef<Whole | null>(null);
  const newest = useRef({ request, nudge: (): void => undefined });
  const fetch = async (signal: AbortSignal): Promise<Curve[]> => {
    const old = held.current;
    const grown = await seeded(request, lastStep, signal);
    const young = !grown && old?.key === key && Date.now() - old.wholeMs < WHOLE_EVERY_MS;
    const end = young ? await latestCurves(request, old.curves, signal) : null;
    const found = grown?.curves ?? end ?? (await curves(request, signal));
    held.current = { key, curves: found, wholeMs: end && old ? old.wholeMs : Date.now(), tail: grown?.tail ?? null };
    return found;
  };
  const polled = usePoll(wanted ? key : '', fetch, request.raw ? 0 : EVERY_MS, request.raw ? undefined : 0);
  newest.current = { request, nudge: polled.nudge };
  useEffect(() => {
    if (!wanted || request.raw) return;
    return jobFeed.want(request.metric, (rows, late) => {
      const now = held.current;
      const tail = now?.key === key && !late && jobFeed.of(request.metric) ? now.tail : null;
      if (now && tail && rows.every((row) => tail.add(row)) && tail.fits) {
        now.curves = [tail.curve(), ...now.curves.slice(1)];
        draw((n) => n + 1);
      } else if (touches(newest.current.request, rows)) {
        // What lies behind the end of the curve, as after a restart, is in a whole answer only.
        if (now && (late || rows.some((row) => row.step < endOf(now.curves)))) now.wholeMs = 0;
        newest.current.nudge();
      }
    });
  }, [key, wanted]);
  const data = polled.data && held.current?.key === key ? held.current.curves : polled.data;
  return { ...polled, data, kept: useKept(data, `${request.job} ${request.metric} ${request.kind}`) };
}
