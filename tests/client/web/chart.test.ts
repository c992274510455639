// What charts compute before anything is drawn.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Axis } from '../../../client/web/src/chart/axis';
import { fold, lowerBound, nearest, runs } from '../../../client/web/src/chart/fold';
import { EMPTY, encode, HOLE, NAN, pool, scaleFor } from '../../../client/web/src/chart/heat';
import { contrast, luminance, ramp, rgb, scheme, styles, inkOn } from '../../../client/web/src/chart/palette';
import { beyond, extent } from '../../../client/web/src/chart/robust';
import { smooth } from '../../../client/web/src/chart/smooth';
import { axisTicks, elapsedLabel, logTicks, ticks, timeLabel, timeTicks, unitTicks } from '../../../client/web/src/chart/ticks';
import type { Curve, MatrixData } from '../../../client/web/src/chart/types';

const curve = (x: number[], mid: number[], more: Partial<Curve> = {}): Curve => ({
  name: 'loss', colour: 0, x: Float64Array.from(x), mid: Float64Array.from(mid), ...more,
});
const count = (n: number) => Array.from({ length: n }, (_, i) => i);

test('ticks are round, inside, ascending and about as many as asked', () => {
  assert.deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks(-0.1, 0.1, 4), [-0.1, -0.05, 0, 0.05, 0.1]);
  for (const [a, b] of [[0, 3e-7], [1e9, 1e9 + 3], [-5, 1234567], [2 ** 53 - 10, 2 ** 53]]) {
    const at = ticks(a, b, 5);
    assert.ok(at.length >= 2 && at.length <= 12, `${a}..${b}: ${at}`);
    at.forEach((t, i) => assert.ok(t >= a - (b - a) * 1e-6 && t <= b + (b - a) * 1e-6 && (i === 0 || t > at[i - 1])));
  }
  assert.deepEqual(ticks(5, 5, 4), [5]);
  assert.deepEqual(ticks(NaN, NaN, 4), []);
});

test('a logarithmic scale has powers of ten, and steps have whole numbers', () => {
  assert.deepEqual(logTicks(1e-6, 1e2, 4).map(Math.log10).map(Math.round), [-6, -4, -2, 0, 2]);
  assert.deepEqual(logTicks(1, 60, 5), [1, 2, 5, 10, 20, 50]);
  assert.deepEqual(logTicks(0, 10, 4), []);
  assert.deepEqual(axisTicks('step', 3, 6, 10).at, [3, 4, 5, 6]);
});

test('bytes are round in powers of 1,024, and long times in minutes', () => {
  const gib = 2 ** 30;
  assert.deepEqual(unitTicks(0.5 * gib, 80 * gib, 4, 'By').map((v) => v / gib), [20, 40, 60, 80]);
  assert.deepEqual(unitTicks(0, 4000, 4, 's'), [0, 900, 1800, 2700, 3600]);
  assert.deepEqual(unitTicks(0, 1, 5, 's'), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(unitTicks(0, 800, 4, 'By'), [0, 200, 400, 600, 800]);
});

test('times are round in the zone that was chosen, and say no more than they must', () => {
  const noon = Date.UTC(2026, 10, 24, 12, 0, 0);
  assert.deepEqual(timeTicks(noon, noon + 3_600_000, 4).map((t) => timeLabel(t, 900_000)), ['12:00', '12:15', '12:30', '12:45', '13:00']);
  const india = 5.5 * 3_600_000;
  const days = timeTicks(noon, noon + 3 * 86_400_000, 3, india);
  assert.ok(days.length >= 2 && days.every((t) => (t + india) % 86_400_000 === 0));
  assert.equal(timeLabel(days[0], 86_400_000, india), '11-25');
  assert.equal(timeLabel(noon + 5, 5), '12:00:00.005');
  assert.equal(elapsedLabel(3723, 60), '1:02:03');
  assert.equal(elapsedLabel(7200, 3600), '2:00 h');
  assert.equal(elapsedLabel(12.5, 0.5), '12.5 s');
});

test('the axis stays within the whole, follows it while it is not zoomed, and tells once a frame', () => {
  const frames: (() => void)[] = [];
  const axis = new Axis('step', [0, 1000], (f) => frames.push(f));
  let told = 0;
  axis.on(() => told++);
  frames.splice(0).forEach((f) => f());
  told = 0;
  axis.setFull(0, 2000);
  assert.deepEqual([axis.from, axis.to, axis.zoomed], [0, 2000, false]);
  axis.show(1900, 2400);
  assert.deepEqual([axis.from, axis.to, axis.zoomed], [1500, 2000, true]);
  axis.setFull(0, 3000);
  assert.deepEqual([axis.from, axis.to], [1500, 2000], 'a reader who zoomed is not moved');
  axis.zoom(0.5, 1750);
  assert.deepEqual([axis.from, axis.to], [1625, 1875]);
  axis.show(10, 10);
  assert.equal(axis.to - axis.from, 1, 'never narrower than a step');
  axis.show(NaN, 5);
  assert.equal(axis.from, 10);
  assert.ok(Math.abs(axis.px(axis.at(37, 100), 100) - 37) < 1e-9);
  assert.equal(frames.length, 1);
  frames.forEach((f) => f());
  assert.equal(told, 1);
  new Axis('time', [5, 5]).setFull(7, 7); // Nothing to divide by zero.
});

test('a million samples become pixel columns without losing an extreme or a NaN', () => {
  const n = 1_000_000;
  const c = curve([], []);
  c.x = new Float64Array(n).map((_, i) => i);
  c.mid = new Float64Array(n).map((_, i) => Math.sin(i / 1e5));
  c.bad = new Uint32Array(n);
  c.mid[123_456] = 61;
  c.mid[777_777] = NaN;
  c.bad[777_777] = 1;
  fold(c, 0, n, 1000); // Compiles it.
  const began = performance.now();
  const out = fold(c, 0, n, 1000);
  const took = performance.now() - began;
  assert.equal(out.x.length, 1000);
  assert.equal(Math.max(...out.high), 61);
  assert.equal(out.bad.reduce((a, b) => a + b, 0), 1);
  assert.equal(out.bad[777], 1);
  assert.ok(Number.isFinite(out.mid[777]), 'the other samples of that pixel are drawn');
  assert.ok(took < 500, `${took} ms`); // 12 ms on an idle machine; this one may be loaded.
});

test('few samples are kept as they are, and lines leave the picture on both sides', () => {
  const c = curve(count(100), count(100));
  const out = fold(c, 10.5, 20.5, 500);
  assert.deepEqual([...out.x], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21]);
  assert.deepEqual([...fold(curve([], []), 0, 1, 10).x], []);
  assert.deepEqual([...fold(curve([5], [-0]), 0, 10, 10).mid], [-0]);
  const far = curve(count(40).map((i) => 2 ** 53 - 80 + 2 * i), count(40));
  assert.equal(fold(far, 2 ** 53 - 80, 2 ** 53, 4).mid.length, 4);
});

test('infinity without a count is counted, a gap is not', () => {
  const mid = count(100).map((i) => (i === 50 ? Infinity : i === 60 ? NaN : 1));
  const out = fold(curve(count(100), mid), 0, 100, 10);
  assert.deepEqual([...out.bad], [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
  assert.deepEqual(runs([1, NaN, 2, 3, Infinity, 4]), [[0, 1], [2, 4], [5, 6]]);
  assert.deepEqual(runs([]), []);
  assert.equal(lowerBound([1, 2, 2, 3], 2), 1);
  assert.equal(nearest([1, 5, 9], 6.9), 1);
  assert.equal(nearest([], 6), -1);
});

test('one spike does not flatten a curve, and is told', () => {
  const c = fold(curve(count(1000), count(1000).map((i) => (i === 500 ? 61 : 2 + (i % 10) / 10))), 0, 1000, 2000);
  const robust = extent([c], 'robust');
  assert.ok(robust.high < 3.2 && robust.low > 1.8);
  assert.equal(robust.above, 1);
  assert.equal(beyond(robust, String), '1 place beyond the scale, up to 61');
  const all = extent([c], 'all');
  assert.ok(all.high > 61);
  assert.equal(beyond(all, String), '');
  const flat = extent([fold(curve([1, 2], [5, 5]), 0, 3, 100)], 'robust');
  assert.ok(flat.low < 5 && flat.high > 5 && flat.above === 0);
  const none = extent([fold(curve([1], [NaN]), 0, 3, 100)], 'robust');
  assert.ok(none.high > none.low);
});

test('a logarithmic scale says what it cannot show', () => {
  const c = fold(curve(count(10), [-1, 0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7]), 0, 10, 100);
  const e = extent([c], 'log');
  assert.equal(e.notPositive, 2);
  assert.ok(e.low > 0 && e.low < 1 && e.high > 1e7);
  assert.equal(beyond(e, String), '2 values of 0 or below, which a log scale cannot show');
});

test('smoothing leaves a constant exactly constant', () => {
  const x = count(1000).map((i) => i * 7);
  for (const value of [0.1, 1 / 3, 1e300, -7]) {
    assert.ok(smooth(x, x.map(() => value), 0.97).every((v) => v === value));
  }
});

test('smoothing fades by distance in steps, so that a reduced curve agrees with a full one', () => {
  const x = count(4000);
  const y = x.map((i) => Math.sin(i / 300));
  const full = smooth(x, y, 0.99, 1);
  const reduced = smooth(x.filter((i) => i % 8 === 0), y.filter((_, i) => i % 8 === 0), 0.99, 1);
  for (let k = 200; k < 500; k++) assert.ok(Math.abs(reduced[k] - full[8 * k]) < 0.02, `at ${8 * k}`);
});

test('smoothing starts at the first value, passes over NaN, and ends where it was off', () => {
  const out = smooth([0, 1, 2, 3], [10, NaN, 20, 30], 0.6);
  assert.equal(out[0], 10);
  assert.ok(Number.isNaN(out[1]));
  assert.ok(out[2] > 10 && out[2] < 20);
  assert.deepEqual([...smooth([0, 1], [3, 9], 0)], [3, 9]);
});

function matrix(rows: number[][], more: Partial<MatrixData> = {}): MatrixData {
  const columns = rows[0].length;
  const median = Float32Array.from(rows[0], (_, c) => {
    const column = rows.map((r) => r[c]).filter(Number.isFinite).sort((a, b) => a - b);
    return column.length ? column[column.length >> 1] : NaN;
  });
  return {
    metric: { name: 'compute_seconds', unit: 's', help: '' }, first: 0, width: 1, columns, median, low: median, high: median,
    rowsTotal: rows.length, samples: 0, values: Float32Array.from(rows.flat()), nonFinite: new Uint32Array(0),
    rows: rows.map((_, i) => ({ task: i, host: `h${i}`, chip: '', label: '', firstColumn: 0, lastColumn: columns - 1, holes: 0, score: 1, nonFinite: 0 })),
    ...more,
  };
}

test('of cells that share a pixel, NaN wins over a hole, a hole over slow, slow over usual', () => {
  const order = [EMPTY, 1, 100, 253, HOLE, NAN];
  const edges = Int32Array.from([0, 6]);
  for (let n = 1; n <= order.length; n++) {
    for (const codes of [order.slice(0, n), order.slice(0, n).reverse()]) {
      const padded = Uint8Array.from([...codes, ...Array(6 - n).fill(EMPTY)]);
      assert.equal(pool(padded, 6, [0], edges, 1)[0], order[n - 1]);
      assert.equal(pool(padded, 1, count(6), Int32Array.from([0, 1]), 1)[0], order[n - 1]);
    }
  }
});

test('one slow row of a thousand, and one missing cell, are seen in a hundred pixels', () => {
  const rows = count(1000).map((r) => count(50).map((c) => (r === 417 ? 1.6 : r === 88 && c === 20 ? NaN : 1)));
  const m = matrix(rows);
  const { codes } = encode(m, 'ratio');
  const edges = Int32Array.from(count(26), (i) => i * 2);
  const out = pool(codes, 50, count(1000), edges, 100);
  assert.ok(out.subarray(41 * 25, 42 * 25).every((v) => v > 150));
  assert.equal(out[8 * 25 + 10], HOLE);
  assert.equal(out.filter((v) => v === HOLE).length, 1);
});

test('rows may be ordered and enlarged, and columns out of view are empty', () => {
  const m = matrix([[1, 1], [1, 2], [1, 1]]);
  const { codes } = encode(m, 'ratio');
  const out = pool(codes, 2, [1, 0], Int32Array.from([-1, 0, 1, 2, 3]), 4);
  assert.equal(out.length, 16);
  assert.deepEqual([...out.subarray(0, 4)], [...out.subarray(4, 8)]);
  assert.equal(out[0], EMPTY);
  assert.ok(out[2] > out[1] && out[3] === EMPTY);
  assert.ok(out[10] === out[9], 'row 0 comes second');
});

test('before its first and after its last sample a row is empty, not a hole; NaN cells stay NaN', () => {
  const m = matrix([[NaN, 1, NaN, 1, NaN], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]], { nonFinite: Uint32Array.of(5) });
  m.rows[0].firstColumn = 1;
  m.rows[0].lastColumn = 3;
  const { codes } = encode(m, 'ratio');
  assert.deepEqual([codes[0], codes[2], codes[4], codes[5]], [EMPTY, HOLE, EMPTY, NAN]);
  const ends = encode(matrix([[0.5, 0.8, 1.4, 2, 9], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]]), 'ratio').codes;
  assert.deepEqual([...ends.subarray(0, 5)], [1, 1, 127, 253, 253]);
  assert.deepEqual(scaleFor(m, 'ratio'), [0.8, 2]);
  const [low, high] = scaleFor(matrix([[3, 3, 3]]), 'raw');
  assert.ok(high > low);
});

test('heat colours only darken, or only lighten: a reader who does not see red still sees more', () => {
  for (const dark of [false, true]) {
    const s = scheme(dark);
    const steps = ramp(s.heat, 64).map(luminance);
    for (let i = 1; i < steps.length; i++) {
      assert.ok(dark ? steps[i] > steps[i - 1] : steps[i] < steps[i - 1], `${dark ? 'dark' : 'light'} at ${i}`);
    }
  }
});

test('every curve colour stands out from the background in both schemes, and text from its bar', () => {
  for (const dark of [false, true]) {
    const s = scheme(dark);
    assert.equal(s.series.length, 8);
    for (const colour of [...s.series, s.bad, s.warn]) assert.ok(contrast(rgb(colour), rgb(s.background)) >= 3, colour);
    for (const colour of [s.text, s.dim]) assert.ok(contrast(rgb(colour), rgb(s.background)) >= 4.5, colour);
    for (const fill of Object.values(s.kinds)) assert.ok(contrast(rgb(inkOn(fill)), rgb(fill)) >= 4.5, fill);
  }
});

test('a name has the same colour on every screen, and no two of a chart look alike', () => {
  const alone = styles(['loss'])[0];
  assert.deepEqual(styles(['grad_norm', 'accuracy', 'loss'])[2], alone);
  const many = styles(count(32).map((i) => `task ${i}`));
  assert.equal(new Set(many.map((s) => `${s.colour} ${s.dash}`)).size, 32);
  assert.ok(many.every((s) => s.colour < 8 && s.dash < 4));
});
