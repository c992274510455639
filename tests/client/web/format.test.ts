import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fmt } from '../../../client/web/src/parts/format';

// What client/ctl/text/format.cc writes for these values.
const WRITERS: Record<string, (value: number) => string> = {
  number: fmt.num, share: fmt.percent, thousands: fmt.count, duration: fmt.duration,
};

test('numbers, shares, counts and durations are those of tachoctl', () => {
  const lines = readFileSync(`${process.env.VECTORS}/format.tsv`, 'utf8').split('\n').filter((line) => line && !line.startsWith('#'));
  assert.ok(lines.length > 30);
  for (const line of lines) {
    const [kind, value, text] = line.split('\t');
    assert.equal(WRITERS[kind](Number(value)), text, `${kind} ${value}`);
  }
});

test('what is not finite says so, and what is absent is a dash', () => {
  assert.deepEqual([NaN, Infinity, -Infinity, null, undefined].map(fmt.num), ['NaN', '+∞', '−∞', '–', '–']);
  assert.equal(fmt.percent(NaN), '–');
  assert.equal(fmt.seconds(null), '–');
});

test('measured times, prefixes and bytes have four digits', () => {
  assert.equal(fmt.seconds(0.44961), '0.4496 s');
  assert.equal(fmt.seconds(0.0125), '12.5 ms');
  assert.equal(fmt.seconds(0.00002), '20 µs');
  assert.equal(fmt.seconds(3700), '1h 1m');
  assert.equal(fmt.si(2124000), '2.124 M');
  assert.equal(fmt.bytes(80 * 2 ** 30), '80 GiB');
  assert.equal(fmt.bytes(17), '17 B');
});

test('times are in the zone that the person chose', () => {
  assert.equal(fmt.time(Date.UTC(2026, 0, 31, 12, 0, 0, 123)), '2026-01-31 12:00:00');
  assert.equal(fmt.time(Date.UTC(2026, 0, 31, 12, 0, 0, 123), true), '2026-01-31 12:00:00.123');
});

test('characters that turn or hide text are shown as escapes', () => {
  assert.equal(fmt.text('a\u202eb\u0007c\u200b<b>'), 'a\\u202eb\\u0007c\\u200b<b>');
  assert.equal(fmt.text('\u061c'), '\\u061c');
});
