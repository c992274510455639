// Records and exports what a plan says, with the SDK as an application uses it.
//
//   node send.mjs < plan.json > report.json
//
// The plan: {"protocol": "grpc" | "http/protobuf" | "http/json", "url", "temporality", "gzip", "resource": {},
// "instruments": [{"name", "kind", "unit", "description", "whole", "bounds", "exponential"}],
// "rounds": [[{"at": index of an instrument, "value", "attributes"}]]}. Each round is recorded and then exported once.
// The report: {"times": the time of each round's points, in ns, as text, "warnings": the SDK's own words}.
import { diag, DiagLogLevel, ValueType } from '@opentelemetry/api';
import { OTLPMetricExporter as GrpcExporter } from '@opentelemetry/exporter-metrics-otlp-grpc';
import { OTLPMetricExporter as JsonExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPMetricExporter as ProtoExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { AggregationType, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { readFileSync } from 'node:fs';

const plan = JSON.parse(readFileSync(0, 'utf8'));
const warnings = [];
const note = (...words) => warnings.push(words.map(String).join(' '));
diag.setLogger({ error: note, warn: note, info() {}, debug() {}, verbose() {} }, DiagLogLevel.WARN);

const Exporter = { grpc: GrpcExporter, 'http/protobuf': ProtoExporter, 'http/json': JsonExporter }[plan.protocol];
const exporter = new Exporter({
  url: plan.url,
  temporalityPreference: { delta: 0, cumulative: 1 }[plan.temporality],
  compression: plan.gzip ? 'gzip' : 'none',
});
// A collection has one time, which the SDK alone knows.
const times = [];
const send = exporter.export.bind(exporter);
exporter.export = (metrics, done) => {
  const points = metrics.scopeMetrics.flatMap(scope => scope.metrics).flatMap(metric => metric.dataPoints);
  const found = new Set(points.map(({ endTime: [s, ns] }) => String(BigInt(s) * 1_000_000_000n + BigInt(ns))));
  if (found.size !== 1) note(`a collection with ${found.size} times`);
  times.push([...found][0]);
  send(metrics, done);
};
const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000, exportTimeoutMillis: 60_000 });
const provider = new MeterProvider({
  resource: resourceFromAttributes(plan.resource),
  readers: [reader],
  views: plan.instruments.filter(one => one.exponential).map(one => ({
    instrumentName: one.name,
    aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM, options: { recordMinMax: true } },
  })),
});
const meter = provider.getMeter('test_otel_sdk');

const observed = new Map(); // What the callbacks of this round report.
const record = plan.instruments.map(one => {
  const options = {
    unit: one.unit,
    description: one.description,
    valueType: one.whole ? ValueType.INT : ValueType.DOUBLE,
    advice: one.bounds ? { explicitBucketBoundaries: one.bounds } : undefined,
  };
  const instrument = meter[`create${one.kind}`](one.name, options);
  if (one.kind.startsWith('Observable')) {
    observed.set(one.name, []);
    instrument.addCallback(result => {
      for (const [value, attributes] of observed.get(one.name)) result.observe(value, attributes);
    });
    return (value, attributes) => observed.get(one.name).push([value, attributes]);
  }
  return (value, attributes) => (instrument.record ?? instrument.add).call(instrument, value, attributes);
});

const number = value => (typeof value === 'string' ? Number(value) : value); // JSON has no NaN.
for (const round of plan.rounds) {
  for (const list of observed.values()) list.length = 0;
  for (const { at, value, attributes } of round) record[at](number(value), attributes);
  await provider.forceFlush();
}
process.stdout.write(JSON.stringify({ times, warnings }));
process.exit(); // What is recorded is out; a shutdown would export once more.
