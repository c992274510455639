// The collectors that share the jobs, and the bucket that they share.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Board } from './board';
import { graphs, numbers, type Section } from './grid';
import { each, figure, kHere, kInstance, lines, per, speed } from './instance';
import { kNone, limits } from './panel';
import { quantile, rate } from './query';

// US dollars for one request of S3 in us-east-1; docs/cluster.md has the same.
const kWrite = 0.005 / 1000;
const kRead = 0.0004 / 1000;
const kMonthS = 30 * 86400;

const kReads = `${kHere},operation=~"get.*"`;
const kWrites = `${kHere},operation=~"put.*|list"`;

const kState = [
  figure({
    title: 'Members',
    description: 'Collectors that share the jobs, by cluster.members; 1 without a cluster.',
    expr: `max(tacho_cluster_members{${kHere}})`,
    legend: 'members',
    unit: units.NoUnit,
    decimals: 0,
  }),
  figure({
    title: 'Waiting for a shard',
    description: 'Collectors that would take over a lost shard. With spares and none of them ' +
      'waiting, nobody would.',
    expr: `max(tacho_cluster_standbys{${kHere}})`,
    legend: 'spares',
    unit: units.NoUnit,
    decimals: 0,
  }),
  figure({
    title: 'Takeovers',
    description: 'Shards that a spare has taken over in the time shown.',
    expr: `sum(increase(tacho_cluster_takeovers_total{${kHere}}[$__range]))`,
    legend: 'takeovers',
    unit: units.NoUnit,
    decimals: 0,
  }),
  figure({
    title: 'Fenced',
    description: 'Collectors that acknowledge nothing, because another one owns their shard.',
    expr: `sum(tacho_shard_fenced{${kHere}})`,
    legend: 'fenced',
    unit: units.NoUnit,
    thresholds: kNone,
    decimals: 0,
  }),
  figure({
    title: 'Days that cannot be moved',
    description: 'Collectors that fail to move days into the bucket.',
    expr: `sum(tacho_bucket_failing{${kHere}})`,
    legend: 'failing',
    unit: units.NoUnit,
    thresholds: kNone,
    decimals: 0,
  }),
  figure({
    title: 'Price of requests a month',
    description: 'What the requests of the last minutes would cost in a month at the prices of ' +
      'S3 in us-east-1, in US dollars: 0.005 a thousand writes and lists, 0.0004 a thousand reads.',
    expr: `${kMonthS} * (${kWrite} * sum(${rate('tacho_bucket_requests_total', kWrites)}) + ` +
      `(${kRead} * sum(${rate('tacho_bucket_requests_total', kReads)}) or vector(0)))`,
    legend: 'US dollars',
    unit: units.NoUnit,
    decimals: 2,
  }),
];

const kJobs: Section = {
  title: 'Members',
  lines: [
    graphs(
      lines({
        title: 'Rows by member',
        description: 'Rows of agents that each member has taken, repeats included.',
        unit: units.CountsPerSecond,
        queries: [{
          expr: `sum by (instance) (${rate('tacho_ingest_rows_total', kHere)})`,
          legend: '{{instance}}',
        }],
      }),
      lines({
        title: 'Streams by member',
        description: 'Open streams of agents.',
        unit: units.Short,
        queries: [{
          expr: `sum by (instance) (tacho_ingest_streams{${kHere}})`, legend: '{{instance}}',
        }],
        decimals: 0,
      }),
      lines({
        title: 'Series by member',
        description: 'Series that each member keeps in memory for jobs in use.',
        unit: units.Short,
        queries: [{
          expr: `sum by (instance) (tacho_limit_used{limit="series",${kHere}})`,
          legend: '{{instance}}',
        }],
        decimals: 0,
      }),
    ),
    graphs(
      lines({
        title: 'Waiting for the bucket',
        description: 'Time that the oldest message of each shard has been waiting for the bucket. ' +
          'Agents are not acknowledged meanwhile.',
        unit: units.Seconds,
        thresholds: limits(5, 60),
        showThresholds: true,
        queries: [{
          expr: `max by (shard) (tacho_shard_unshipped_seconds{${kHere}})`,
          legend: 'shard {{shard}}',
        }],
      }),
      lines({
        title: 'Bytes that wait for the bucket',
        description: 'Messages of each shard that are on the disk and not in the bucket yet.',
        unit: units.BytesIEC,
        queries: [{
          expr: `max by (shard) (tacho_shard_unshipped_bytes{${kHere}})`,
          legend: 'shard {{shard}}',
        }],
      }),
      lines({
        title: 'Owners so far',
        description: 'How often each shard has had a new owner. It rises with every start and ' +
          'every takeover.',
        unit: units.Short,
        queries: [{
          expr: `max by (shard) (tacho_shard_epoch{${kHere}})`, legend: 'shard {{shard}}',
        }],
        decimals: 0,
      }),
    ),
  ],
};

const kBucket: Section = {
  title: 'Bucket',
  lines: [
    graphs(
      lines({
        title: 'Requests by kind',
        description: 'Requests to the bucket that have ended, by what they ask for.',
        unit: units.RequestsPerSecond,
        queries: [per('tacho_bucket_requests_total', 'operation')],
      }),
      lines({
        title: 'Answers by code',
        description: 'Statuses of HTTP; 0: there was no whole answer. 404 and 412 are part of ' +
          'normal work.',
        unit: units.RequestsPerSecond,
        queries: [per('tacho_bucket_requests_total', 'code')],
      }),
      lines({
        title: 'Duration of requests',
        description: 'p99 by what is asked for.',
        unit: units.Seconds,
        queries: [{
          expr: quantile(0.99, 'tacho_bucket_request_duration_seconds', kHere, ['operation']),
          legend: '{{operation}}',
        }],
      }),
    ),
    graphs(
      lines({
        title: 'Bytes to and from the bucket',
        description: 'Bodies of requests and answers.',
        unit: units.BytesPerSecondIEC,
        queries: [per('tacho_bucket_bytes_total', 'direction')],
      }),
      lines({
        title: 'Days in the bucket',
        description: 'Days whose columns are read from the bucket, by collector.',
        unit: units.Short,
        queries: [{
          expr: `max by (instance) (tacho_bucket_days{${kHere}})`, legend: '{{instance}}',
        }],
        decimals: 0,
      }),
      lines({
        title: 'Cache of queries',
        description: 'Pieces of old days that queries found in memory or on the disk, and those ' +
          'that they had to fetch.',
        unit: units.CountsPerSecond,
        queries: [
          speed('tacho_bucket_cache_hits_total', 'found'),
          speed('tacho_bucket_cache_misses_total', 'fetched'),
        ],
      }),
    ),
    graphs(
      lines({
        title: 'Cache on the disk',
        description: 'Bytes in bucket.cache_path.',
        unit: units.BytesIEC,
        queries: [each('tacho_bucket_cache_bytes', 'used')],
      }),
      lines({
        title: 'Queries asked of other members',
        description: 'Calls about jobs that another member keeps, by how they ended.',
        unit: units.CountsPerSecond,
        queries: [per('tacho_queries_forwarded_total', 'result')],
      }),
    ),
  ],
};

export const kCluster: Board = {
  name: 'cluster',
  description: 'The collectors that share the jobs, and their bucket: owners, takeovers, what ' +
    'waits, requests and their price.',
  variables: [kInstance],
  screen: 'collector',
  sections: [
    { title: 'State', lines: [numbers(...kState.slice(0, 4)), numbers(...kState.slice(4))] },
    kJobs, kBucket,
  ],
};
