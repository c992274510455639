// What charts say: at the cursor, as text to copy, and along lanes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Axis } from '../../../client/web/src/chart/axis';
import { csv, csvCell, curveGrid } from '../../../client/web/src/chart/csv';
import { pressed } from '../../../client/web/src/chart/keys';
import { spanAt } from '../../../client/web/src/chart/lanes';
import { nextBad, readout } from '../../../client/web/src/chart/readout';
import type { Curve, HeatLayer, Layer, MatrixData } from '../../../client/web/src/chart/types';

const show = (v: number) => String(v);
const loss: Curve = {
  name: 'loss', colour: 0, x: Float64Array.of(0, 10, 20, 30), mid: Float64Array.of(4, 3, NaN, 2),
  low: Float64Array.of(4, 2.5, NaN, 2), high: Float64Array.of(4, 3.5, NaN, 2), bad: Uint32Array.of(0, 0, 64, 0),
};
const layer: Layer = { kind: 'curve', label: 'loss', height: 100, curves: [loss], y: 'robust' };

function axisAt(x: number): Axis {
  const axis = new Axis('step', [0, 30], (f) => f());
  axis.point(x, true);
  return axis;
}

test('the line at the cursor has the value, its band, and how many are not finite', () => {
  const at = (x: number) => readout([layer], axisAt(x), null, 300, `step ${x}`, show);
  assert.equal(at(0), 'step 0 · loss 4');
  assert.equal(at(11), 'step 11 · loss 3 (2.5 to 3.5)');
  assert.equal(at(20), 'step 20 · loss NaN, 64 not finite');
  const axis = new Axis('step', [0, 1000], (f) => f());
  axis.point(500);
  assert.equal(readout([layer], axis, null, 300, 'step 500', show), 'step 500 · loss –', 'far from any sample');
});

function heat(): HeatLayer {
  const row = (task: number, host: string) => ({ task, host, chip: '', label: '', firstColumn: 0, lastColumn: 2, holes: 0, score: 1, nonFinite: 0 });
  const matrix: MatrixData = {
    metric: { name: 'm', unit: 's', help: '' }, first: 0, width: 10, columns: 3, median: Float32Array.of(1, 1, 1),
    low: Float32Array.of(1, 1, 1), high: Float32Array.of(1, 1, 1), rowsTotal: 2, samples: 6,
    rows: [row(0, 'host-0'), row(417, 'host-52')], values: Float32Array.of(1, 1, 1, 2, NaN, 1.5), nonFinite: Uint32Array.of(4),
  };
  return { kind: 'heat', label: 'worst', matrix, colour: 'ratio', rowHeight: 14 };
}

test('a map names the row under the pointer, else the highest of the column', () => {
  const at = (x: number, row: number | null) =>
    readout([layer, heat()], axisAt(x), row === null ? null : { layer: 1, row, lane: null }, 300, 's', show);
  assert.match(at(5, null), /highest 417 host-52 2, 2× the median/);
  assert.match(at(15, 1), /^s · 417 host-52, not finite · loss/, 'what the pointer is on comes first');
  assert.match(at(5, 0), /^s · 0 host-0 1, 1× the median/);
});

test('the next value that is not finite is found in both directions', () => {
  assert.equal(nextBad([layer], 0, true), 20);
  assert.equal(nextBad([layer], 25, false), 20);
  assert.equal(nextBad([layer], 20, true), null);
});

test('a moment is met near it, a bar within it; a moment above a bar wins', () => {
  const lane = {
    name: 'time',
    spans: [
      { from: 0, to: 100, kind: 'productive_step', text: 'productive' },
      { from: 50, to: 50, kind: 'down', text: 'down' },
      { from: 100, to: 100, kind: 'down', text: 'restart' },
      { from: 100, to: 120, kind: 'wasted', text: 'wasted' },
    ],
  };
  assert.equal(spanAt(lane, 101, 3)?.text, 'restart', 'even if the bar comes later');
  assert.equal(spanAt(lane, 20, 3)?.text, 'productive');
  assert.equal(spanAt(lane, 52, 3)?.text, 'down');
  assert.equal(spanAt(lane, 110, 3)?.text, 'wasted');
  assert.equal(spanAt(lane, 200, 3), null);
});

test('curves are one table by place, and a cell can neither break a line nor be a formula', () => {
  const other: Curve = { name: 'a,b', colour: 1, x: Float64Array.of(10, 15), mid: Float64Array.of(7, Infinity) };
  const grid = curveGrid([loss, other], 0, 20, 'step');
  assert.deepEqual(grid.head, ['step', 'loss', 'loss low', 'loss high', 'loss not finite', 'a,b']);
  assert.equal(csv(grid), 'step,loss,loss low,loss high,loss not finite,"a,b"\n0,4,4,4,0,\n10,3,2.5,3.5,0,7\n15,,,,,Infinity\n20,NaN,NaN,NaN,64,\n');
  assert.equal(csvCell('=HYPERLINK("x")'), `"'=HYPERLINK(""x"")"`);
  assert.equal(csvCell(-1.5), '-1.5');
});

test('keys move the cursor from sample to sample, zoom, find NaN, and leave other keys alone', () => {
  const axis = axisAt(10);
  const target = { axis, layers: [layer], moveRow: () => false };
  const press = (key: string, more: object = {}) =>
    pressed({ key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...more } as KeyboardEvent, target);
  assert.equal(press('ArrowRight'), 'cursor');
  assert.equal(axis.cursor, 20);
  press('ArrowLeft', { shiftKey: true });
  assert.equal(axis.cursor, 0);
  assert.equal(press('n'), 'cursor');
  assert.equal(axis.cursor, 20);
  assert.equal(press('w'), 'key');
  assert.deepEqual([axis.from, axis.to], [10, 25]);
  assert.equal(press('0'), 'key');
  assert.deepEqual([axis.from, axis.to], [0, 30]);
  assert.equal(press('ArrowDown'), null, 'without a map the page scrolls');
  assert.equal(press('w', { ctrlKey: true }), null);
  assert.equal(press('q'), null);
  assert.equal(press('Escape'), 'leave');
  assert.equal(axis.cursor, null);
});
