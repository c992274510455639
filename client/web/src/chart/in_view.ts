// Draws a component again when the part of the axis that is in view changes; not when the cursor moves.
import { useEffect, useState } from 'preact/hooks';
import type { Axis } from './axis';

export function useRangeInView(axis: Axis): void {
  const [, draw] = useState('');
  useEffect(() => axis.on(() => draw(`${axis.from} ${axis.to}`)), [axis]);
}
