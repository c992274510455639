// Protobuf by hand, for the two calls whose answers are large: requests by a table, answers into
// typed arrays. Field numbers are those of query.proto and view.proto.
import type { MatrixData, MatrixRow } from '../chart/types';
import type { MatrixRequest, RangeRequest } from './types';

type Scalar = 'string' | 'bool' | 'uint' | 'int' | 'sfixed64' | 'double';
type Field = [number, Scalar] | [number, 'enum', string[]] | [number, 'message', Schema];
type Schema = Record<string, Field>;

const OPS = ['OP_UNSPECIFIED', 'OP_EQUAL', 'OP_NOT_EQUAL', 'OP_MATCHES', 'OP_NOT_MATCHES'];
const AXES = ['AXIS_UNSPECIFIED', 'AXIS_TIME', 'AXIS_STEP'];
const ATTEMPTS = ['UNSPECIFIED', 'ALL', 'EFFECTIVE', 'LATEST'].map((name) => `ATTEMPTS_${name}`);
const COUNTERS = ['UNSPECIFIED', 'INCREASE', 'RATE'].map((name) => `COUNTER_FUNCTION_${name}`);
const FUNCTIONS = ['UNSPECIFIED', 'SUM', 'AVG', 'MIN', 'MAX', 'P50', 'P90', 'P99', 'COUNT', 'STDDEV', 'QUANTILE'].map(
  (name) => `AGGREGATE_FUNCTION_${name}`,
);
const BUCKET_VALUES = ['UNSPECIFIED', 'MIN', 'MAX', 'AVG', 'FIRST', 'LAST', 'SUM'].map((name) => `BUCKET_VALUE_${name}`);

const MATCHER: Schema = { label: [1, 'string'], op: [2, 'enum', OPS], value: [3, 'string'] };
const SELECTOR: Schema = { job: [1, 'string'], metrics: [2, 'string'], matchers: [3, 'message', MATCHER] };
const TIME_RANGE: Schema = { beginUnixNs: [1, 'sfixed64'], endUnixNs: [2, 'sfixed64'] };
const STEP_RANGE: Schema = { begin: [1, 'int'], end: [2, 'int'] };
const AGGREGATION: Schema = { function: [1, 'enum', FUNCTIONS], by: [2, 'string'], quantile: [3, 'double'] };
const RANGE: Schema = {
  selector: [1, 'message', SELECTOR],
  time: [2, 'message', TIME_RANGE],
  steps: [3, 'message', STEP_RANGE],
  axis: [4, 'enum', AXES],
  maxPoints: [5, 'uint'],
  aggregation: [6, 'message', AGGREGATION],
  maxSeries: [7, 'uint'],
  maxSamples: [8, 'uint'],
  attempts: [9, 'enum', ATTEMPTS],
  counter: [10, 'enum', COUNTERS],
  bucketValues: [11, 'enum', BUCKET_VALUES],
  packed: [12, 'bool'],
};
const MATRIX: Schema = {
  selector: [1, 'message', SELECTOR],
  rows: [2, 'string'],
  axis: [3, 'enum', AXES],
  time: [4, 'message', TIME_RANGE],
  steps: [5, 'message', STEP_RANGE],
  attempts: [6, 'enum', ATTEMPTS],
  maxColumns: [7, 'uint'],
  value: [8, 'enum', BUCKET_VALUES],
  worst: [9, 'uint'],
  counter: [10, 'enum', COUNTERS],
};

function varint(value: bigint, out: number[]): void {
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) out.push(Number(rest & 127n) | 128);
  out.push(Number(rest));
}

function fixed(fill: (view: DataView) => void, out: number[]): void {
  const bytes = new Uint8Array(8);
  fill(new DataView(bytes.buffer));
  out.push(...bytes);
}

function sized(bytes: ArrayLike<number>, out: number[]): void {
  varint(BigInt(bytes.length), out);
  for (let i = 0; i < bytes.length; i++) out.push(bytes[i]);
}

const WIRE_TYPE: Record<string, number> = { string: 2, message: 2, sfixed64: 1, double: 1 };

function encodeField(name: string, field: Field, value: unknown, out: number[]): void {
  const [number, type] = field;
  varint(BigInt(number * 8 + (WIRE_TYPE[type] ?? 0)), out);
  switch (type) {
    case 'string':
      return sized(new TextEncoder().encode(String(value)), out);
    case 'message':
      return sized(encodeMessage(field[2] as Schema, value as Record<string, unknown>), out);
    case 'sfixed64':
      return fixed((view) => view.setBigInt64(0, BigInt(value as string), true), out);
    case 'double':
      return fixed((view) => view.setFloat64(0, Number(value), true), out);
    case 'bool':
      return varint(value ? 1n : 0n, out);
    case 'enum': {
      const index = (field[2] as string[]).indexOf(String(value));
      if (index < 0) throw new Error(`${name} has no value ${String(value)}`);
      return varint(BigInt(index), out);
    }
    default:
      return varint(BigInt(value as string | number), out);
  }
}

function encodeMessage(schema: Schema, message: Record<string, unknown>): number[] {
  const out: number[] = [];
  for (const [name, value] of Object.entries(message)) {
    if (value === undefined || value === null) continue;
    const field = schema[name];
    if (!field) throw new Error(`the request has no field ${name}`);
    for (const one of Array.isArray(value) ? value : [value]) encodeField(name, field, one, out);
  }
  return out;
}

export function encodeRange(request: RangeRequest): Uint8Array {
  return Uint8Array.from(encodeMessage(RANGE, request as Record<string, unknown>));
}

export function encodeMatrix(request: MatrixRequest): Uint8Array {
  return Uint8Array.from(encodeMessage(MATRIX, request as Record<string, unknown>));
}

// Reads one message. Numbers above 2^53 lose digits, which no caller has.
class Reader {
  at = 0;
  field = 0;
  private type = 0;
  private readonly view: DataView;

  constructor(readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  next(): boolean {
    if (this.at >= this.bytes.length) return false;
    const key = this.uint();
    this.field = Math.floor(key / 8);
    this.type = key % 8;
    return true;
  }

  uint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) throw new Error('the answer is cut short');
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  // sint64: the sign is in the lowest bit.
  zigzag(): number {
    const value = this.uint();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }

  double(): number {
    const value = this.view.getFloat64(this.at, true);
    this.at += 8;
    return value;
  }

  chunk(): Uint8Array {
    const length = this.uint();
    if (this.at + length > this.bytes.length) throw new Error('the answer is cut short');
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  text(): string {
    return UTF8.decode(this.chunk());
  }

  skip(): void {
    if (this.type === 0) this.uint();
    else if (this.type === 1) this.at += 8;
    else if (this.type === 2) this.chunk();
    else if (this.type === 5) this.at += 4;
    else throw new Error(`the answer has a field of unknown kind ${this.type}`);
  }
}

const UTF8 = new TextDecoder();

function float64s(bytes: Uint8Array): Float64Array {
  return new Float64Array(bytes.slice().buffer);
}

function float32s(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.slice().buffer);
}

// sfixed64 as doubles, times `scale`.
function fixed64s(bytes: Uint8Array, scale: number): Float64Array {
  const words = new Int32Array(bytes.slice().buffer);
  const out = new Float64Array(words.length / 2);
  for (let i = 0; i < out.length; i++) out[i] = (words[2 * i + 1] * 4294967296 + (words[2 * i] >>> 0)) * scale;
  return out;
}

function varints(bytes: Uint8Array): Uint32Array {
  const reader = new Reader(bytes);
  let count = 0;
  for (const byte of bytes) if (byte < 128) count++;
  const out = new Uint32Array(count);
  for (let i = 0; i < count; i++) out[i] = Math.min(reader.uint(), 0xffffffff);
  return out;
}

export interface SeriesMetric {
  name: string;
  type: number; // MetricType: 1 gauge, 2 counter, 3 histogram.
  unit: string;
  help: string;
}

// One series of a Range answer. `times` are ms since the Unix epoch. Samples: values, and attempts.
// Buckets: times and steps are those of their first samples, `values` are the averages, and what
// was not asked for is an empty array.
export interface Series {
  metric: SeriesMetric;
  job: string;
  task: number | null;
  host: string;
  labels: Record<string, string>;
  buckets: boolean;
  bucketWidth: number;
  times: Float64Array;
  steps: Float64Array;
  values: Float64Array;
  attempts: Uint32Array;
  lastTimes: Float64Array;
  lastSteps: Float64Array;
  min: Float64Array;
  max: Float64Array;
  first: Float64Array;
  last: Float64Array;
  sum: Float64Array;
  counts: Uint32Array;
  nonFinite: Uint32Array;
}

const FLOATS = ['times', 'steps', 'values', 'lastTimes', 'lastSteps', 'min', 'max', 'first', 'last', 'sum'] as const;
const UINTS = ['attempts', 'counts', 'nonFinite'] as const;
type ArrayName = (typeof FLOATS)[number] | (typeof UINTS)[number];

interface Pieces {
  series: Series;
  parts: Partial<Record<ArrayName, (Float64Array | Uint32Array)[]>>;
}

const NS_TO_MS = 1e-6;
type ReadArray = (bytes: Uint8Array) => Float64Array | Uint32Array;
const asTimes: ReadArray = (bytes) => fixed64s(bytes, NS_TO_MS);
const asSteps: ReadArray = (bytes) => fixed64s(bytes, 1);
const POINTS: Record<number, [ArrayName, ReadArray]> = {
  1: ['times', asTimes],
  2: ['steps', asSteps],
  3: ['values', float64s],
  4: ['attempts', varints],
};
const BUCKETS: Record<number, [ArrayName, ReadArray]> = {
  1: ['times', asTimes],
  2: ['lastTimes', asTimes],
  3: ['steps', asSteps],
  4: ['lastSteps', asSteps],
  5: ['min', float64s],
  6: ['max', float64s],
  7: ['values', float64s],
  8: ['first', float64s],
  9: ['last', float64s],
  10: ['counts', varints],
  11: ['nonFinite', varints],
  12: ['sum', float64s],
};

function emptySeries(): Series {
  const none = new Float64Array(0);
  const noCounts = new Uint32Array(0);
  return {
    metric: { name: '', type: 0, unit: '', help: '' }, job: '', task: null, host: '', labels: {}, buckets: false, bucketWidth: 0,
    times: none, steps: none, values: none, lastTimes: none, lastSteps: none, min: none, max: none, first: none, last: none, sum: none,
    attempts: noCounts, counts: noCounts, nonFinite: noCounts,
  };
}

function readMetric(bytes: Uint8Array): SeriesMetric {
  const metric: SeriesMetric = { name: '', type: 0, unit: '', help: '' };
  const r = new Reader(bytes);
  while (r.next()) {
    if (r.field === 1) metric.name = r.text();
    else if (r.field === 2) metric.type = r.uint();
    else if (r.field === 3) metric.unit = r.text();
    else if (r.field === 4) metric.help = r.text();
    else r.skip();
  }
  return metric;
}

function readInfo(bytes: Uint8Array, series: Series): void {
  const r = new Reader(bytes);
  while (r.next()) {
    if (r.field === 1) series.metric = readMetric(r.chunk());
    else if (r.field === 2) series.job = r.text();
    else if (r.field === 3) series.task = r.uint();
    else if (r.field === 4) series.host = r.text();
    else if (r.field === 5) readLabel(r.chunk(), series.labels);
    else r.skip();
  }
}

function readLabel(bytes: Uint8Array, labels: Record<string, string>): void {
  let name = '';
  let value = '';
  const r = new Reader(bytes);
  while (r.next()) {
    if (r.field === 1) name = r.text();
    else if (r.field === 2) value = r.text();
    else r.skip();
  }
  Object.defineProperty(labels, name, { value, enumerable: true, configurable: true });
}

// Collects the messages of a Range answer; a series may come in several.
export class RangeDecoder {
  private readonly all = new Map<number, Pieces>();

  add(bytes: Uint8Array): void {
    let index = 0;
    let info: Uint8Array | null = null;
    let data: Uint8Array | null = null;
    let buckets = false;
    let width = 0;
    const r = new Reader(bytes);
    while (r.next()) {
      if (r.field === 1) index = r.uint();
      else if (r.field === 2) info = r.chunk();
      else if (r.field === 3 || r.field === 4) {
        buckets = r.field === 4;
        data = r.chunk();
      } else if (r.field === 5) this.add(r.chunk());
      else if (r.field === 6) width = r.uint();
      else r.skip();
    }
    if (!info && !data) return; // Only `more` was in it.
    let pieces = this.all.get(index);
    if (!pieces) this.all.set(index, (pieces = { series: emptySeries(), parts: {} }));
    if (info) readInfo(info, pieces.series);
    if (width) pieces.series.bucketWidth = width;
    if (data) this.arrays(data, buckets, pieces);
  }

  private arrays(bytes: Uint8Array, buckets: boolean, pieces: Pieces): void {
    const table = buckets ? BUCKETS : POINTS;
    pieces.series.buckets = buckets;
    const r = new Reader(bytes);
    while (r.next()) {
      const entry = table[r.field];
      if (entry) (pieces.parts[entry[0]] ??= []).push(entry[1](r.chunk()));
      else r.skip();
    }
  }

  done(): Series[] {
    const out: Series[] = [];
    for (const [, { series, parts }] of [...this.all].sort((a, b) => a[0] - b[0])) {
      for (const name of FLOATS) if (parts[name]) series[name] = concat(parts[name] as Float64Array[], Float64Array);
      for (const name of UINTS) if (parts[name]) series[name] = concat(parts[name] as Uint32Array[], Uint32Array);
      out.push(series);
    }
    return out;
  }
}

function concat<T extends Float64Array | Float32Array | Uint32Array>(parts: T[], make: new (n: number) => T): T {
  if (parts.length === 1) return parts[0];
  const out = new make(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

// Collects the messages of a Matrix answer. `time`: positions are times, and become ms.
export class MatrixDecoder {
  private readonly data: MatrixData;
  private readonly values: Float32Array[] = [];
  private readonly bad: number[] = [];
  private cells = 0;

  constructor(private readonly time: boolean) {
    const none = new Float32Array(0);
    this.data = {
      metric: { name: '', unit: '', help: '' }, first: 0, width: 1, columns: 0, median: none, low: none, high: none,
      rowsTotal: 0, samples: 0, rows: [], values: none, nonFinite: new Uint32Array(0),
    };
  }

  add(bytes: Uint8Array): void {
    const r = new Reader(bytes);
    while (r.next()) {
      if (r.field === 1) this.head(r.chunk());
      else if (r.field === 2) this.rows(r.chunk());
      else r.skip();
    }
  }

  private head(bytes: Uint8Array): void {
    const data = this.data;
    const scale = this.time ? NS_TO_MS : 1;
    const r = new Reader(bytes);
    while (r.next()) {
      if (r.field === 1) data.metric = readMetric(r.chunk());
      else if (r.field === 2) data.first = r.zigzag() * scale;
      else if (r.field === 3) data.width = r.uint() * scale;
      else if (r.field === 4) data.columns = r.uint();
      else if (r.field === 5) data.median = float32s(r.chunk());
      else if (r.field === 6) data.low = float32s(r.chunk());
      else if (r.field === 7) data.high = float32s(r.chunk());
      else if (r.field === 8) data.rowsTotal = r.uint();
      else if (r.field === 9) data.samples = r.uint();
      else r.skip();
    }
  }

  private rows(bytes: Uint8Array): void {
    const before = this.cells;
    const r = new Reader(bytes);
    while (r.next()) {
      if (r.field === 1) this.data.rows.push(readRow(r.chunk()));
      else if (r.field === 2) {
        const values = float32s(r.chunk());
        this.values.push(values);
        this.cells += values.length;
      } else if (r.field === 3) for (const at of varints(r.chunk())) this.bad.push(before + at);
      else r.skip();
    }
  }

  done(): MatrixData {
    if (this.values.length) this.data.values = concat(this.values, Float32Array);
    this.data.nonFinite = Uint32Array.from(this.bad);
    return this.data;
  }
}

function readRow(bytes: Uint8Array): MatrixRow {
  const row: MatrixRow = { task: null, host: '', chip: '', label: '', firstColumn: 0, lastColumn: 0, holes: 0, score: 0, nonFinite: 0 };
  const r = new Reader(bytes);
  while (r.next()) {
    if (r.field === 1) row.task = r.uint();
    else if (r.field === 2) row.host = r.text();
    else if (r.field === 3) row.chip = r.text();
    else if (r.field === 4) row.label = r.text();
    else if (r.field === 5) row.firstColumn = r.uint();
    else if (r.field === 6) row.lastColumn = r.uint();
    else if (r.field === 7) row.holes = r.uint();
    else if (r.field === 8) row.score = r.double();
    else if (r.field === 9) row.nonFinite = r.uint();
    else r.skip();
  }
  return row;
}
