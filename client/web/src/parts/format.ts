// Numbers and times as tachoctl writes them (client/ctl/text/format.h).
import { collectorNow } from '../api/live';

export type Zone = 'utc' | 'local';

const WHOLE_BELOW = 1e15;
const ABSENT = '–';

const FURTHER = 25; // Digits behind which a double that is not half has shown it.

// `text` is rounded with halves away from zero, `exact` has that many digits more. Printf rounds halves
// to even.
function even(text: string, exact: string): string {
  if (Number(text[text.length - 1]) % 2 === 0 || !/^50*$/.test(exact.slice(-FURTHER))) return text;
  return exact.slice(0, -FURTHER).replace(/\.$/, '');
}

const fixed = (value: number, decimals: number): string => even(value.toFixed(decimals), value.toFixed(decimals + FURTHER));

// Printf's %.{digits}g.
function general(value: number, digits: number): string {
  if (value === 0) return '0'; // It has no exponent.
  const exponent = Math.floor(Math.log10(Math.abs(Number(value.toExponential(digits - 1)))));
  if (exponent < -4 || exponent >= digits) {
    const [rounded, power] = value.toExponential(digits - 1).split('e');
    const mantissa = even(rounded, value.toExponential(digits - 1 + FURTHER).split('e')[0]);
    const short = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa;
    return `${short}e${power[0]}${power.slice(1).padStart(2, '0')}`;
  }
  const text = fixed(value, Math.max(0, digits - 1 - exponent));
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

function thousands(value: number): string {
  const sign = value < 0 ? '-' : '';
  return sign + Math.abs(Math.round(value)).toString().replace(/\B(?=(\d{3})+$)/g, ',');
}

const PREFIXES: [number, string][] = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

function scaled(value: number, unit: string, steps: [number, string][]): string {
  for (const [size, prefix] of steps) {
    if (Math.abs(value) >= size) return `${general(value / size, 4)} ${prefix}${unit}`;
  }
  return unit ? `${general(value, 4)} ${unit}` : general(value, 4);
}

const BINARY: [number, string][] = [[2 ** 50, 'Pi'], [2 ** 40, 'Ti'], [2 ** 30, 'Gi'], [2 ** 20, 'Mi'], [2 ** 10, 'Ki']];

function twoUnits(large: number, largeName: string, small: number, smallName: string): string {
  return small === 0 ? `${large}${largeName}` : `${large}${largeName} ${small}${smallName}`;
}

// "850ms", "12s", "3m 20s", "2h 5m", "4d 3h".
function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return ABSENT;
  if (seconds < 0) return `-${duration(-seconds)}`;
  if (seconds < 1) return `${Math.floor(seconds * 1000)}ms`;
  const s = Math.floor(seconds);
  if (s < 60) return `${s}s`;
  if (s < 3600) return twoUnits(Math.floor(s / 60), 'm', s % 60, 's');
  if (s < 86400) return twoUnits(Math.floor(s / 3600), 'h', Math.floor((s % 3600) / 60), 'm');
  return twoUnits(Math.floor(s / 86400), 'd', Math.floor((s % 86400) / 3600), 'h');
}

let zone: Zone = 'utc';

function parts(milliseconds: number): string[] {
  const date = new Date(milliseconds);
  if (Number.isNaN(date.getTime())) return [ABSENT, ''];
  const local = new Date(milliseconds - date.getTimezoneOffset() * 60_000);
  return (zone === 'utc' ? date : local).toISOString().replace('Z', '').split('T');
}

export const fmt = {
  // Six significant digits, whole numbers below 1e15 in full.
  num(value: number | null | undefined): string {
    if (value === null || value === undefined) return ABSENT;
    if (Number.isNaN(value)) return 'NaN';
    if (!Number.isFinite(value)) return value > 0 ? '+∞' : '−∞';
    if (Number.isInteger(value) && Math.abs(value) < WHOLE_BELOW) return String(value === 0 ? 0 : value);
    return general(value, 6);
  },
  // "1,234,567": steps and counts.
  count(value: number | null | undefined): string {
    return value === null || value === undefined || !Number.isFinite(value) ? ABSENT : thousands(value);
  },
  // "3 tasks", "1 task".
  plural(value: number, noun: string): string {
    return `${thousands(value)} ${noun}${value === 1 ? '' : 's'}`;
  },
  // Four significant digits and a prefix: "2.124 M", "75.92 ktokens/s".
  si(value: number | null | undefined, unit = ''): string {
    if (value === null || value === undefined) return ABSENT;
    return Number.isFinite(value) ? scaled(value, unit, PREFIXES).trim() : fmt.num(value);
  },
  bytes(value: number | null | undefined): string {
    if (value === null || value === undefined) return ABSENT;
    return Number.isFinite(value) ? scaled(value, 'B', BINARY) : fmt.num(value);
  },
  // A time that is measured, such as a step's: "0.4496 s", "12.5 ms".
  seconds(value: number | null | undefined): string {
    if (value === null || value === undefined) return ABSENT;
    if (!Number.isFinite(value)) return fmt.num(value);
    const size = Math.abs(value);
    if (size === 0 || (size >= 0.1 && size < 120)) return `${general(value, 4)} s`;
    if (size >= 120) return duration(value);
    return size >= 1e-4 ? `${general(value * 1e3, 4)} ms` : `${general(value * 1e6, 4)} µs`;
  },
  duration,
  // "99.9 %": "100.0 %" only if it is all of it.
  percent(ratio: number | null | undefined): string {
    if (ratio === null || ratio === undefined || !Number.isFinite(ratio)) return ABSENT;
    return `${fixed(100 * (ratio < 1 ? Math.min(ratio, 0.999) : ratio), 1)} %`;
  },
  // "2026-01-31 12:00:00" in the zone that the person chose; milliseconds since the Unix epoch.
  time(milliseconds: number | null | undefined, withMillis = false): string {
    if (milliseconds === null || milliseconds === undefined) return ABSENT;
    const [date, clock] = parts(milliseconds);
    return `${date} ${withMillis ? clock : clock.slice(0, 8)}`.trim();
  },
  clock(milliseconds: number): string {
    return parts(milliseconds)[1].slice(0, 8);
  },
  // "12s ago" by the collector's clock.
  ago(milliseconds: number | null | undefined): string {
    if (milliseconds === null || milliseconds === undefined) return ABSENT;
    const age = (collectorNow() - milliseconds) / 1000;
    if (age < -1) return `in ${duration(-age)}`;
    return age < 1 ? 'just now' : `${duration(age)} ago`;
  },
  // A value with the UCUM unit of its metric.
  value(value: number | null | undefined, unit = ''): string {
    if (unit === 's') return fmt.seconds(value);
    if (unit === 'By') return fmt.bytes(value);
    if (value === null || value === undefined || !Number.isFinite(value)) return fmt.num(value);
    return unit === '' || unit === '1' ? fmt.num(value) : `${fmt.num(value)} ${unit.replace(/^\{(.*)\}$/, '$1')}`;
  },
  // Control and bidirectional characters as escapes: names and texts are anybody's.
  text(value: string): string {
    return value.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (c) =>
      `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  },
  get zone(): Zone {
    return zone;
  },
  setZone(value: Zone): void {
    zone = value;
  },
};
