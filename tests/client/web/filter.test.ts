import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FleetJob } from '../../../client/web/src/api/types';
import { parseFilter, toggle } from '../../../client/web/src/app/filter';
import { find } from '../../../client/web/src/app/match';
import { apply } from '../../../client/web/src/screens/fleet_data';
import { columnsOf, sortJobs } from '../../../client/web/src/screens/fleet_columns';

const job = (name: string, more: Partial<FleetJob> = {}, severity = ''): FleetJob => ({
  job: { name, state: 'JOB_STATE_RUNNING', marks: { tags: ['keep'], group: 'g' } },
  conditions: severity ? [{ condition: 'Stalled', severity: `CONDITION_SEVERITY_${severity}` as 'CONDITION_SEVERITY_CRITICAL' }] : [],
  ...more,
});
const holds = (text: string, of: FleetJob): boolean => parseFilter(text).test(of);

test('each word of the filter must hold', () => {
  const llama = job('llama-70b', {}, 'CRITICAL');
  for (const text of ['', 'LLAMA', 'llama 70b', 'state:running', 'state:silent,running', 'sev:critical', 'tag:keep group:g', '-bert', '-state:ended', 'name:lla']) {
    assert.equal(holds(text, llama), true, text);
  }
  for (const text of ['bert', 'llama bert', 'state:ended', 'sev:healthy', 'tag:other', '-llama', '-sev:critical']) {
    assert.equal(holds(text, llama), false, text);
  }
});

test('attributes and hosts are asked of the collector, and mistakes are named', () => {
  const filter = parseFilter('user=ana model~an.* x!=1 host:host-1* "note=two words" state:runing');
  assert.deepEqual(filter.matchers, [
    { label: 'user', op: 'OP_EQUAL', value: 'ana' },
    { label: 'model', op: 'OP_MATCHES', value: 'an.*' },
    { label: 'x', op: 'OP_NOT_EQUAL', value: '1' },
    { label: 'host', op: 'OP_MATCHES', value: 'host-1.*' },
    { label: 'note', op: 'OP_EQUAL', value: 'two words' },
  ]);
  assert.deepEqual(filter.problems, ['state:runing']);
  assert.deepEqual(parseFilter('-host:x -user=ana -x!~y').problems, ['-host:x', '-user=ana', '-x!~y'], 'there is no opposite of these');
});

test('a tile switches its word on, off, and in the place of its sister', () => {
  assert.equal(toggle('llama', 'state:silent'), 'llama state:silent');
  assert.equal(toggle('llama state:silent', 'state:silent'), 'llama');
  assert.equal(toggle('state:silent', 'state:ended'), 'state:ended');
  assert.equal(toggle('user="ana b"', 'state:silent'), 'user="ana b" state:silent');
  assert.equal(toggle('user="ana b" state:silent', 'state:silent'), 'user="ana b"');
});

test('changes are laid over what is known, and a complete answer replaces it', () => {
  const first = apply(null, { revision: '5', complete: true, jobs: [job('a'), job('b'), job('hosts')] });
  assert.deepEqual([...first.jobs.keys()], ['a', 'b']);
  const counted = apply(first, { revision: '6', totals: { jobs: 3, running: 3, critical: 1 } });
  assert.deepEqual(counted.totals, { jobs: 2, running: 2, silent: 0, ended: 0, critical: 1 });
  const second = apply(first, { revision: '6', jobs: [job('b', { chips: 4 }), job('c')], gone: ['a'] });
  assert.deepEqual([...second.jobs.keys()], ['b', 'c']);
  assert.equal(second.jobs.get('b')?.chips, 4);
  assert.equal(first.jobs.get('b')?.chips, undefined);
  assert.deepEqual([...apply(second, { revision: '1', complete: true, jobs: [job('z')] }).jobs.keys()], ['z']);
});

test('the sickest come first, and what is absent last in either direction', () => {
  const jobs = [job('a', { rank: 1 }), job('b', { rank: 3, goodputRatio: 0.5 }), job('c', { rank: 3, goodputRatio: 0.9 })];
  const names = (key: string, down: boolean): string =>
    sortJobs(jobs, columnsOf(['goodput']).find((column) => column.key === key), down).map((j) => j.job?.name).join('');
  assert.equal(names('state', true), 'bca');
  assert.equal(names('goodput', true), 'cba');
  assert.equal(names('goodput', false), 'bca');
  assert.equal(names('job', false), 'abc');
});

test('the palette finds words in any order, and beginnings first', () => {
  const entries = [{ text: 'x-llama-70b' }, { text: 'llama-70b' }, { text: 'bert', also: 'Straggling' }, { text: 'llama-70b › Tasks', weak: true }];
  assert.deepEqual(find(entries, '70b llama', 9).map((e) => e.text), ['llama-70b', 'llama-70b › Tasks', 'x-llama-70b']);
  assert.deepEqual(find(entries, 'strag', 9).map((e) => e.text), ['bert']);
  assert.deepEqual(find(entries, 'nothing', 9), []);
});
