// An exponential moving average as TensorBoard draws it, with two differences: the past fades with
// the distance in steps instead of with the number of points, so that a reduced curve and a full
// one agree; and a constant stays exactly constant.

const spacings = new WeakMap<object, number>(); // The cursor asks at each move.

// The median distance of neighbours: what counts as one step of fading.
export function spacing(x: ArrayLike<number>): number {
  let known = spacings.get(x);
  if (known === undefined) spacings.set(x, (known = medianGap(x)));
  return known;
}

function medianGap(x: ArrayLike<number>): number {
  const gaps: number[] = [];
  for (let i = 1; i < x.length; i++) if (x[i] > x[i - 1]) gaps.push(x[i] - x[i - 1]);
  gaps.sort((a, b) => a - b);
  return gaps.length ? gaps[gaps.length >> 1] : 1;
}

// `weight` is that of the past at one distance of `unit`: 0 changes nothing. Values that are not
// finite stay as they are and do not touch the average.
export function smooth(
  x: ArrayLike<number>, y: ArrayLike<number>, weight: number, unit = spacing(x),
): Float64Array {
  const out = Float64Array.from(y);
  if (!(weight > 0)) return out;
  const keep = Math.min(weight, 0.9999);
  let average = NaN;
  let mass = 0; // Of all values so far; dividing by it removes the pull towards 0 at the start.
  let last = 0;
  for (let i = 0; i < y.length; i++) {
    if (!Number.isFinite(y[i])) continue;
    const distance = mass > 0 ? Math.max(0, (x[i] - last) / unit) : 1;
    const fade = keep ** distance;
    const gain = 1 - keep;
    mass = mass * fade + gain;
    // As a correction to the average, so that y equal to it adds exactly nothing.
    average = average === average ? average + (gain / mass) * (y[i] - average) : y[i];
    out[i] = average;
    last = x[i];
  }
  return out;
}
