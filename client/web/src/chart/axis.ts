// The x axis that all layers of a stack share: what is in view, and where the cursor is. Listeners
// are called once a frame, however often it changes.
import { listeners } from '../api/listeners';

export type AxisKind = 'step' | 'time' | 'elapsed';

type Schedule = (f: () => void) => void;

const nextFrame: Schedule =
  typeof requestAnimationFrame === 'function' ? (f) => void requestAnimationFrame(f) : queueMicrotask;

// Nothing narrower than this part of the whole is shown: below it, doubles run out of digits.
const NARROWEST = 1e-7;

export class Axis {
  from = 0;
  to = 1;
  full: [number, number] = [0, 1];
  cursor: number | null = null;
  pinned = false; // The cursor stays when the pointer leaves.
  private readonly told = listeners();
  readonly on = this.told.on;
  private waiting = false;

  constructor(
    public kind: AxisKind,
    full: [number, number],
    private schedule: Schedule = nextFrame,
  ) {
    this.setFull(...full);
    this.showAll();
  }

  get zoomed(): boolean {
    return this.from > this.full[0] || this.to < this.full[1];
  }

  // Shows a..b, moved and narrowed so that it lies within the whole.
  show(a: number, b: number): void {
    if (!Number.isFinite(a) || !Number.isFinite(b)) return;
    const [low, high] = this.full;
    const narrowest = Math.max((high - low) * NARROWEST, this.kind === 'step' ? 1 : 0);
    const width = Math.min(Math.max(Math.abs(b - a), narrowest), high - low);
    this.from = Math.max(low, Math.min(Math.min(a, b), high - width));
    this.to = Math.min(high, this.from + width);
    this.poke();
  }

  showAll(): void {
    this.show(...this.full);
  }

  // The view stays where it is if the reader has zoomed, and grows with the whole if not.
  setFull(a: number, b: number): void {
    const zoomed = this.zoomed;
    this.full = [a, b > a ? b : a + 1];
    if (zoomed) this.show(this.from, this.to);
    else this.showAll();
  }

  // Scales the view by `factor` around `at`; below 1 zooms in.
  zoom(factor: number, at: number): void {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share: number): void {
    const shift = (this.to - this.from) * share;
    this.show(this.from + shift, this.to + shift);
  }

  point(x: number | null, pin?: boolean): void {
    if (pin !== undefined) this.pinned = pin && x !== null;
    if (this.cursor === x) return;
    this.cursor = x;
    this.poke();
  }

  px(x: number, width: number): number {
    return ((x - this.from) / (this.to - this.from)) * width;
  }

  at(px: number, width: number): number {
    return this.from + (px / width) * (this.to - this.from);
  }

  private poke(): void {
    if (this.waiting) return;
    this.waiting = true;
    this.schedule(() => {
      this.waiting = false;
      this.told.tell();
    });
  }
}
