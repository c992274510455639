import { useEffect, useState } from 'preact/hooks';
import { choices, dark as isDark } from '../app/theme';
import { fmt } from '../parts/format';
import { cells } from './heat';
import { DASHES, ramp, scheme, type Rgb } from './palette';
import type { Layer } from './types';

// What the colours of a layer mean.

export function useDark(): boolean {
  const [dark, set] = useState(isDark);
  useEffect(() => choices.on(() => set(isDark())), []);
  return dark;
}

const css = ([r, g, b]: Rgb) => `rgb(${r},${g},${b})`;

export function Swatch({ colour, dash, dark }: { colour: number; dash: number; dark: boolean }) {
  return (
    <svg class="swatch" width="20" height="8" aria-hidden="true">
      <line x1="0" y1="4" x2="20" y2="4" stroke={scheme(dark).series[colour]} stroke-width="2.5"
        stroke-dasharray={DASHES[dash].join(' ')} />
    </svg>
  );
}

export function Legend({ layer }: { layer: Layer }) {
  const dark = useDark();
  if (layer.kind === 'curve') {
    const named = layer.curves.filter((c) => !c.faint);
    if (named.length < 2) return null;
    return (
      <ul class="legend">
        {named.map((c) => (
          <li key={c.name}><Swatch colour={c.colour} dash={c.dash ?? 0} dark={dark} /> {fmt.text(c.name)}</li>
        ))}
      </ul>
    );
  }
  if (layer.kind !== 'heat') return null;
  const { scale } = cells(layer);
  const colours = scheme(dark);
  const end = (v: number) => (layer.colour === 'ratio' ? `${fmt.num(v)}×` : fmt.value(v, layer.matrix.metric.unit));
  return (
    <ul class="legend">
      <li>
        {end(scale[0])}{' '}
        <svg class="swatch" width="64" height="10" aria-hidden="true">
          {ramp(colours.heat, 16).map((colour, i) => (
            <rect key={i} x={i * 4} y="0" width="4.5" height="10" fill={css(colour)} />
          ))}
        </svg>{' '}
        {end(scale[1])}
      </li>
      <li><Box fill={css(colours.hole)} /> no sample</li>
      <li><Box fill={css(colours.nan)} /> not finite</li>
    </ul>
  );
}

function Box({ fill }: { fill: string }) {
  return <svg class="swatch" width="10" height="10" aria-hidden="true"><rect width="10" height="10" fill={fill} /></svg>;
}
