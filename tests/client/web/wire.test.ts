import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { MatrixDecoder, RangeDecoder, encodeMatrix, encodeRange } from '../../../client/web/src/api/wire';
import { ms, ns } from '../../../client/web/src/api/json';

interface Vectors {
  range: string[];
  packed: string;
  rangeRequest: string;
  matrixRequest: string;
  matrix: string[];
}
const vectors = JSON.parse(readFileSync(`${process.env.VECTORS}/wire.json`, 'utf8')) as Vectors;
const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'base64'));

test('pieces of a series are joined, and NaN, infinity and large numbers stay', () => {
  const decoder = new RangeDecoder();
  for (const piece of vectors.range) decoder.add(bytes(piece));
  const [points, buckets] = decoder.done();
  assert.equal(points.metric.name, 'loss');
  assert.equal(points.task, 3);
  assert.equal(points.host, 'hé');
  assert.deepEqual({ ...points.labels }, { le: '+Inf' });
  assert.deepEqual([...points.steps], [-1, 9007199254740991, 7]);
  assert.deepEqual([...points.values], [1.5, NaN, -Infinity]);
  assert.deepEqual([...points.attempts], [0, 300, 1]);
  assert.ok(Math.abs(points.times[0] - 1795537526003.2047) < 1e-3);
  assert.equal(buckets.buckets, true);
  assert.equal(buckets.task, null);
  assert.equal(buckets.bucketWidth, 10);
  assert.deepEqual([buckets.min[0], buckets.max[0], buckets.values[0], buckets.counts[0], buckets.nonFinite[0]], [0.5, 2, 1, 10, 3]);
  assert.deepEqual([buckets.times[0], buckets.lastTimes[0], buckets.steps[0], buckets.lastSteps[0]], [1, 2, 0, 9]);
});

test('packed messages hold the same', () => {
  const decoder = new RangeDecoder();
  decoder.add(bytes(vectors.packed));
  assert.deepEqual(decoder.done().map((series) => series.metric.name), ['loss', 'x']);
});

test('a message that is cut short is refused, wherever it is cut', () => {
  const whole = bytes(vectors.range[0]);
  let refused = 0;
  for (let end = 1; end < whole.length; end++) {
    try {
      new RangeDecoder().add(whole.subarray(0, end));
    } catch {
      refused++;
    }
  }
  assert.ok(refused > whole.length / 2);
});

test('requests are the bytes that protobuf writes', () => {
  const range = encodeRange({
    selector: { job: 'j', metrics: ['loss', 'b'], matchers: [{ label: 'task', op: 'OP_MATCHES', value: '1|2' }] },
    time: { beginUnixNs: '1795537526003204697', endUnixNs: '-5' },
    steps: { begin: 0, end: -3 },
    axis: 'AXIS_STEP', maxPoints: 1000,
    aggregation: { function: 'AGGREGATE_FUNCTION_QUANTILE', by: ['host'], quantile: 0.25 },
    maxSeries: 70000, attempts: 'ATTEMPTS_EFFECTIVE', counter: 'COUNTER_FUNCTION_RATE',
    packed: true,
  });
  // Repeated enums are packed there, and one by one here; every reader takes both.
  const expected = Buffer.from(bytes(vectors.rangeRequest)).toString('hex').replace('5a020102', '');
  assert.equal(Buffer.from(range).toString('hex'), expected);
  const matrix = encodeMatrix({
    selector: { job: 'j', metrics: ['m'] }, rows: 'chip', axis: 'AXIS_TIME', attempts: 'ATTEMPTS_LATEST', maxColumns: 500,
    value: 'BUCKET_VALUE_MAX', worst: 8,
  });
  assert.equal(Buffer.from(matrix).toString('hex'), Buffer.from(bytes(vectors.matrixRequest)).toString('hex'));
  assert.throws(() => encodeRange({ axis: 'AXIS_NONE' as 'AXIS_STEP' }), /AXIS_NONE/);
});

test('a matrix in several messages keeps the places of its bad cells', () => {
  const decoder = new MatrixDecoder(false);
  for (const piece of vectors.matrix) decoder.add(bytes(piece));
  const matrix = decoder.done();
  assert.deepEqual([matrix.first, matrix.width, matrix.columns, matrix.rowsTotal, matrix.samples], [-20, 5, 2, 3, 77]);
  assert.deepEqual([...matrix.values], [1, 2, NaN, 4, 5, NaN]);
  assert.deepEqual([...matrix.nonFinite], [2, 5]);
  assert.deepEqual(matrix.rows.map((row) => [row.task, row.host, row.chip, row.label]), [[0, 'a', '', ''], [1, 'b', '', ''], [null, 'c', '3', 'l']]);
  assert.ok(Number.isNaN(matrix.rows[1].score) && matrix.rows[0].score === 1.25);
});

test('nanoseconds become milliseconds and back without losing a millisecond', () => {
  assert.equal(ms('1795537526003204697'), 1795537526003.2047);
  assert.equal(ns(1795537526003.25), '1795537526003250000');
  assert.equal(ms(undefined), null);
});
