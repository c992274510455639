import type { AxisKind } from './axis';

// Where an axis has its lines and labels: at round values, at most about `count` of them.

export function ticks(a: number, b: number, count: number): number[] {
  if (!(b > a)) return Number.isFinite(a) ? [a] : [];
  return multiples(a, b, roundStep((b - a) / Math.max(1, count)));
}

// 1, 2 or 5 times a power of ten, near `raw`.
export function roundStep(raw: number): number {
  const power = 10 ** Math.floor(Math.log10(raw));
  const part = raw / power;
  return (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10) * power;
}

function multiples(a: number, b: number, step: number): number[] {
  const out: number[] = [];
  // Counted, not added up, so that rounding does not pile up.
  const first = Math.ceil(a / step - 1e-9);
  const last = Math.floor(b / step + 1e-9);
  for (let i = first; i <= last && out.length < 1000; i++) out.push(clean(i * step, step));
  return out;
}

function clean(value: number, step: number): number {
  const digits = Math.max(0, Math.min(20, 2 - Math.floor(Math.log10(step))));
  return digits > 18 ? value : Number(value.toFixed(digits)) + 0;
}

// Round in the unit in which the values are written: bytes in powers of 1,024, long times in minutes
// and hours.
export function unitTicks(a: number, b: number, count: number, unit = ''): number[] {
  const largest = Math.max(Math.abs(a), Math.abs(b));
  if (unit === 's' && largest >= 120 && b - a >= 10) return timeTicks(a * 1000, b * 1000, count).map((t) => t / 1000);
  if (unit !== 'By' || largest < 1024) return ticks(a, b, count);
  const scale = 1024 ** Math.min(5, Math.floor(Math.log2(largest) / 10));
  return ticks(a / scale, b / scale, count).map((t) => t * scale);
}

// For a logarithmic scale: powers of ten, with 2 and 5 where there are few.
export function logTicks(a: number, b: number, count: number): number[] {
  if (!(a > 0) || !(b > a)) return [];
  const low = Math.floor(Math.log10(a));
  const high = Math.ceil(Math.log10(b));
  const every = Math.max(1, Math.ceil((high - low) / Math.max(1, count)));
  const parts = (high - low) * 3 <= count * 2 && every === 1 ? [1, 2, 5] : [1];
  const out: number[] = [];
  for (let e = low; e <= high; e += every) {
    for (const part of parts) {
      const value = part * 10 ** e;
      if (value >= a * (1 - 1e-9) && value <= b * (1 + 1e-9)) out.push(value);
    }
  }
  return out.length > 1 ? out : ticks(a, b, count);
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS = [
  SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY,
];

function timeStep(raw: number): number {
  if (raw < SECOND) return roundStep(raw);
  return TIME_STEPS.find((step) => step >= raw * 0.75) ?? roundStep(raw / DAY) * DAY;
}

// Round times of the zone that is `offset` ms ahead of UTC.
export function timeTicks(a: number, b: number, count: number, offset = 0): number[] {
  if (!(b > a)) return [];
  const step = timeStep((b - a) / Math.max(1, count));
  return multiples(a + offset, b + offset, step).map((t) => t - offset);
}

const two = (n: number) => String(n).padStart(2, '0');

// `step` is the distance of two ticks: it decides how much of the time is worth saying.
export function timeLabel(ms: number, step: number, offset = 0): string {
  const t = new Date(ms + offset);
  const day = `${two(t.getUTCMonth() + 1)}-${two(t.getUTCDate())}`;
  if (step >= DAY) return day;
  const hour = `${two(t.getUTCHours())}:${two(t.getUTCMinutes())}`;
  if (step >= MINUTE) return hour === '00:00' ? day : hour;
  const second = `${hour}:${two(t.getUTCSeconds())}`;
  if (step >= SECOND) return second;
  return `${second}.${String(t.getUTCMilliseconds()).padStart(3, '0')}`;
}

// Seconds as 1:02:03, or 12.5 s below a minute.
export function elapsedLabel(seconds: number, step: number): string {
  const sign = seconds < 0 ? '−' : '';
  const s = Math.abs(seconds);
  if (s < 60 && step < 60) return `${sign}${Number(s.toFixed(step < 1 ? 3 : 0))} s`;
  const whole = Math.round(s);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const clock = hours ? `${hours}:${two(minutes)}` : String(minutes);
  return hours && whole % 60 === 0 ? `${sign}${clock} h` : `${sign}${clock}:${two(whole % 60)}`;
}

export interface AxisTicks {
  at: number[];
  label: (x: number) => string;
}

export function axisTicks(kind: AxisKind, a: number, b: number, count: number, offset = 0): AxisTicks {
  if (kind === 'time') {
    const at = timeTicks(a, b, count, offset);
    const step = at.length > 1 ? at[1] - at[0] : b - a;
    return { at, label: (x) => timeLabel(x, step, offset) };
  }
  if (kind === 'elapsed') {
    const at = timeTicks(a * 1000, b * 1000, count).map((ms) => ms / 1000);
    const step = at.length > 1 ? at[1] - at[0] : b - a;
    return { at, label: (x) => elapsedLabel(x, step) };
  }
  const at = ticks(a, b, Math.max(1, Math.min(count, b - a))).filter((x) => Number.isInteger(x));
  return { at, label: (x) => x.toLocaleString('en') };
}
