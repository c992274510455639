// What a host and its chips did in a stretch of time: one call for all metrics, a curve for each
// chip.
import { useMemo } from 'preact/hooks';
import { range } from '../api/calls';
import { ns } from '../api/json';
import { usePoll } from '../api/poll';
import type { Series } from '../api/wire';
import type { Axis } from '../chart/axis';
import { styles } from '../chart/palette';
import { Stack } from '../chart/stack';
import type { Curve, Layer, ZoomCause } from '../chart/types';
import { Failed, Loading, Stale } from '../parts/states';
import { useKept, type Extent } from './view';

export const CHIP_METRICS = ['chip_clock_hertz', 'chip_temperature_celsius', 'chip_duty_cycle_ratio', 'chip_power_watts', 'chip_hbm_used_bytes'];
export const HOST_METRICS = ['host_cpu_utilization_ratio', 'host_memory_available_bytes'];
export const HOST_COUNTERS = ['host_network_receive_bytes_total', 'host_network_transmit_bytes_total', 'host_disk_read_bytes_total', 'host_disk_written_bytes_total'];

const EVERY_MS = 10_000;
const POINTS = 400;
const HEIGHT = 90;
const MOST_CHIPS = 16;

async function fetchSeries(host: string, metrics: string[], time: Extent | null, counters: boolean, signal: AbortSignal): Promise<Series[]> {
  return range({
    selector: { job: 'hosts', metrics, matchers: [{ label: 'host', op: 'OP_EQUAL', value: host }] },
    axis: 'AXIS_TIME', maxPoints: POINTS, bucketValues: ['BUCKET_VALUE_AVG', 'BUCKET_VALUE_MIN', 'BUCKET_VALUE_MAX'], packed: true,
    ...(counters ? { counter: 'COUNTER_FUNCTION_RATE' } : {}),
    ...(time ? { time: { beginUnixNs: ns(time[0]), endUnixNs: ns(time[1] + 1) } } : {}),
  }, signal);
}

function nameOf(s: Series): string {
  const labels = Object.entries(s.labels).map(([k, v]) => (k === 'chip' ? `chip ${v}` : v));
  return labels.join(' ') || s.metric.name;
}

// A clock in Hz has more digits than fit beside a scale.
function inGiga(s: Series): Series {
  const scaled = (values: Float64Array) => values.map((v) => v / 1e9);
  return s.metric.unit === 'Hz'
    ? { ...s, metric: { ...s.metric, unit: 'GHz' }, values: scaled(s.values), min: scaled(s.min), max: scaled(s.max) }
    : s;
}

// A chart for each metric, in the order of `metrics`; metrics that the host does not have are left out.
export function chartsOf(found: Series[], metrics: string[], rate: string[]): Layer[] {
  return metrics.flatMap((metric): Layer[] => {
    const mine = found.filter((s) => s.metric.name === metric && s.times.length).map(inGiga);
    if (!mine.length) return [];
    const shown = mine.slice(0, MOST_CHIPS);
    const look = styles(shown.map(nameOf));
    const curves = shown.map((s, i): Curve => ({
      name: nameOf(s), ...look[i], x: s.times, mid: s.values, bad: s.nonFinite.length === s.times.length ? s.nonFinite : undefined,
      ...(s.min.length === s.times.length && s.max.length === s.times.length && shown.length <= 2 ? { low: s.min, high: s.max } : {}),
    }));
    const left = mine.length - shown.length;
    const note = [mine[0].metric.help, left ? `the first ${shown.length} of ${mine.length}` : ''].filter(Boolean).join(' ');
    const unit = mine[0].metric.unit;
    return [{ kind: 'curve', label: rate.includes(metric) ? `${metric}, a second` : metric, note, height: HEIGHT, curves, y: 'all', unit }];
  });
}

interface Props {
  host: string;
  time: Extent | null; // ms; null: everything.
  link: string; // What the URL says of the time: see View.range.
  axis: Axis;
  metrics: string[];
  onZoom?: (from: number, to: number, cause: ZoomCause) => void;
}

export function HostCharts({ host, time, link, axis, metrics, onZoom }: Props) {
  const counters = metrics.filter((m) => /_total$/.test(m));
  const gauges = metrics.filter((m) => !/_total$/.test(m));
  const what = `${host} ${metrics.join()}`;
  const polled = usePoll(`${what} ${link}`, async (signal) => {
    const [a, b] = await Promise.all([
      gauges.length ? fetchSeries(host, gauges, time, false, signal) : [],
      counters.length ? fetchSeries(host, counters, time, true, signal) : [],
    ]);
    return [...a, ...b];
  }, EVERY_MS);
  const { error, stale, ageMs, reload } = polled;
  const data = useKept(polled.data, what);
  const layers = useMemo(() => (data ? chartsOf(data, metrics, counters) : []), [data]);
  if (!data) return error ? <Failed error={error} retry={reload} /> : <Loading height={metrics.length * HEIGHT} label="Loading the charts of the host" />;
  if (!layers.length) return <p class="dim">The agent of this host recorded nothing in this stretch of time.</p>;
  return (
    <>
      {error && !polled.data ? <Failed error={error} retry={reload} /> : null}
      {stale ? <Stale ageMs={ageMs} error={error} /> : null}
      <Stack axis={axis} label={`Signals of ${host}`} layers={layers} onZoom={onZoom} />
    </>
  );
}
