// The colours of charts in both schemes. They are here and not in a style sheet because a canvas
// wants numbers, and because tests check them: contrast with the background, and luminance that
// only rises or only falls along the heat colours, which is what remains for a reader who does not
// see red and green apart.

export type Rgb = readonly [number, number, number];

export interface Scheme {
  dark: boolean;
  background: string;
  text: string;
  dim: string;
  grid: string;
  lane: string;
  bad: string;
  warn: string;
  select: string;
  series: readonly string[];
  heat: readonly Rgb[];
  hole: Rgb;
  nan: Rgb;
  empty: Rgb;
  kinds: Readonly<Record<string, string>>;
}

export const DASHES: readonly (readonly number[])[] = [[], [6, 3], [2, 2], [9, 3, 2, 3]];

const LIGHT: Scheme = {
  dark: false,
  background: '#ffffff', text: '#16181d', dim: '#5a6170', grid: '#e4e7ec', lane: '#eef0f4',
  bad: '#c01520', warn: '#8a5a00', select: '#16181d',
  series: ['#1859b8', '#b4540a', '#0b7a5c', '#a8328c', '#5b46c2', '#3d7d0f', '#0d7591', '#8a6116'],
  heat: [[238, 244, 251], [186, 212, 236], [232, 163, 61], [176, 28, 28]],
  hole: [124, 58, 180], nan: [226, 0, 146], empty: [255, 255, 255],
  kinds: {
    productive_step: '#7db98e', initializing: '#c8b560', compiling: '#b09fdb', restoring: '#8fb4d9',
    data_wait: '#e0a458', waiting_for_others: '#d68fb0', checkpoint: '#5b93c9', evaluation: '#8cc7bd', wasted: '#d9803a',
    stalled: '#cf4f42', down: '#6b7280', other: '#c3c8d0',
    attempt: '#b4c0d4', attempt_odd: '#8299c4', critical: '#c01520', warning: '#d99a1c', info: '#4f7fc0',
    event: '#4f7fc0', good: '#2f8f5b', failure: '#c01520', notice: '#b07400', silent: '#9aa1ad',
  },
};

const DARK: Scheme = {
  dark: true,
  background: '#101216', text: '#e8eaee', dim: '#a2a9b6', grid: '#2a2e36', lane: '#1f2329',
  bad: '#ff6b6b', warn: '#f0b64a', select: '#ffffff',
  series: ['#6aa9ff', '#f0914a', '#3fc79a', '#ee82cf', '#a999ff', '#97c94a', '#4cc3dd', '#d8b45c'],
  heat: [[20, 34, 52], [38, 86, 134], [224, 92, 52], [255, 214, 84]],
  hole: [168, 92, 224], nan: [255, 60, 180], empty: [16, 18, 22],
  kinds: {
    productive_step: '#3f8a58', initializing: '#8c7b30', compiling: '#7a68ac', restoring: '#4f7aa8',
    data_wait: '#b5772c', waiting_for_others: '#a0557e', checkpoint: '#3a75b0', evaluation: '#4a8f86', wasted: '#b85f22',
    stalled: '#d0493c', down: '#767d8a', other: '#555b66',
    attempt: '#45516a', attempt_odd: '#54709f', critical: '#e0484f', warning: '#d99a1c', info: '#6a9be0',
    event: '#6aa9ff', good: '#3fc77f', failure: '#ff6b6b', notice: '#f0b64a', silent: '#6d7480',
  },
};

export function scheme(dark: boolean): Scheme {
  return dark ? DARK : LIGHT;
}

export function rgb(hex: string): Rgb {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

// Relative luminance of WCAG 2, from 0 to 1.
export function luminance([r, g, b]: Rgb): number {
  const part = (v: number) => {
    const s = v / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
}

export function contrast(a: Rgb, b: Rgb): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

// Black or white, whichever is better read on `fill`.
export function inkOn(fill: string): string {
  return luminance(rgb(fill)) > 0.18 ? '#000000' : '#ffffff';
}

// The heat colours in `size` steps.
export function ramp(stops: readonly Rgb[], size: number): Rgb[] {
  return Array.from({ length: size }, (_, i) => {
    const t = (i / (size - 1)) * (stops.length - 1);
    const k = Math.min(stops.length - 2, Math.floor(t));
    const mix = (c: 0 | 1 | 2) => Math.round(stops[k][c] + (stops[k + 1][c] - stops[k][c]) * (t - k));
    return [mix(0), mix(1), mix(2)] as const;
  });
}

function hash(text: string): number {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return (h ^ (h >>> 15)) >>> 0;
}

export interface LineStyle {
  colour: number;
  dash: number;
}

// A style for each name. A name alone always gets the same one, on every screen; only where two of
// one chart would look alike, the later takes the next free.
export function styles(names: readonly string[]): LineStyle[] {
  const colours = LIGHT.series.length;
  const total = colours * DASHES.length;
  const taken = new Set<number>();
  return names.map((name) => {
    let place = hash(name) % colours;
    for (let i = 0; i < total && taken.has(place); i++) place = (place + 1) % total;
    taken.add(place);
    return { colour: place % colours, dash: Math.floor(place / colours) % DASHES.length };
  });
}
