// The end of a curve by step, which grows by the rows that come. The collector has folded everything
// up to a step; the columns from there on are folded here in the same way (Query.Compare): the values
// of a step become their mean, and the means of a column its mean.
import type { Curve } from '../chart/types';
import { joined, regrouped } from './series';
import type { Row } from './jobfeed';

const MOST_PLACES = 20_000;
const FEWEST_COLUMNS = 500;

interface Place {
  sum: number;
  finite: number;
  low: number;
  high: number;
  bad: number;
  raw: number; // Of a single sample, its value whatever it is.
  count: number;
}

const NOTHING: Place = { sum: 0, finite: 0, low: Infinity, high: -Infinity, bad: 0, raw: NaN, count: 0 };

export class BandTail {
  private places = new Map<number, Place>();
  private readonly from: number; // Where the first column that may grow begins.

  // `base` is complete up to the step `upTo`, in columns of `width` steps. `steps` is the last of its
  // columns step by step; it is not needed where columns are single steps.
  constructor(private readonly base: Curve, private readonly steps: Curve | null, readonly upTo: number, private readonly width: number) {
    this.from = base.x.length ? base.x[base.x.length - 1] : upTo;
  }

  // false: the row belongs to what the base holds already, or there are too many for a page.
  add({ step, value }: Row): boolean {
    if (step <= this.upTo || this.places.size >= MOST_PLACES) return false;
    const place = this.places.get(step) ?? { ...NOTHING };
    place.count++;
    place.raw = value;
    if (Number.isFinite(value)) {
      place.sum += value;
      place.finite++;
      place.low = Math.min(place.low, value);
      place.high = Math.max(place.high, value);
    } else {
      place.bad++;
    }
    this.places.set(step, place);
    return true;
  }

  // false: so much has come that the base should be folded anew, or columns would be too many.
  get fits(): boolean {
    return this.places.size / this.width < Math.max(this.base.x.length, FEWEST_COLUMNS);
  }

  curve(): Curve {
    if (!this.places.size) return this.base;
    const order = [...this.places].sort(([a], [b]) => a - b);
    const column = (f: (p: Place) => number): Float64Array => Float64Array.from(order, ([, p]) => f(p));
    const end: Curve = {
      ...this.base,
      x: Float64Array.from(order, ([step]) => step),
      mid: column((p) => (p.count === 1 ? p.raw : p.sum / p.finite)),
      low: this.base.low && column((p) => (p.finite ? p.low : p.raw)),
      high: this.base.high && column((p) => (p.finite ? p.high : p.raw)),
      bad: Uint32Array.from(order, ([, p]) => p.bad),
    };
    if (this.width <= 1) return joined(this.base, end);
    const whole = this.steps ? joined(this.steps, end) : end;
    return joined(this.base, regrouped(whole, this.from, this.width));
  }
}
