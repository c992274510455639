// The collector itself: ingest, storage, queries and process.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Board } from './board';
import { graphs, numbers, type Section } from './grid';
import { each, figure, kHere, kInstance, lines, per, speed } from './instance';
import { atLeast, kNone, limits } from './panel';
import { quantile, rate } from './query';

const kGiB = 2 ** 30;

const kState = [
  figure({
    title: 'Up',
    description: 'Whether Prometheus reaches the collector.',
    expr: 'min by (instance) (up{instance=~"$instance"})',
    unit: units.NoUnit,
    thresholds: atLeast(1),
    decimals: 0,
  }),
  figure({
    title: 'Version',
    description: 'Version of the running program.',
    expr: `max by (instance, version) (tacho_build_info{${kHere}})`,
    legend: '{{version}}',
    unit: units.NoUnit,
    text: true,
  }),
  figure({
    title: 'Running for',
    description: 'Time since the process started.',
    expr: `time() - max by (instance) (process_start_time_seconds{${kHere}})`,
    unit: units.Seconds,
    decimals: 1,
  }),
  figure({
    title: 'Configuration in force',
    description: '1: the newest configuration. 0: the last reload was refused; the log has the ' +
      'reason.',
    expr: `min by (instance) (tacho_config_last_reload_successful{${kHere}})`,
    unit: units.NoUnit,
    thresholds: atLeast(1),
    decimals: 0,
  }),
  figure({
    title: 'Ready',
    description: '1: it accepts connections and rows. 0: it starts, drains, or its disk refuses.',
    expr: `min by (instance) (tacho_ready{${kHere}})`,
    unit: units.NoUnit,
    thresholds: atLeast(1),
    decimals: 0,
  }),
  figure({
    title: 'Disk refuses',
    description: '1: nothing is stored until the disk has space or works again.',
    expr: `max by (instance) (tacho_storage_refusing{${kHere}})`,
    unit: units.NoUnit,
    thresholds: kNone,
    decimals: 0,
  }),
  figure({
    title: 'Space on the disk',
    description: 'Free space on the file system of storage.path.',
    expr: `min by (instance) (tacho_storage_available_bytes{${kHere}})`,
    unit: units.BytesIEC,
    thresholds: limits(10 * kGiB, kGiB),
  }),
  figure({
    title: 'Lines left out of the scrape',
    description: 'Lines about jobs that are off the page because of metrics.max_series.',
    expr: `max by (instance) (tacho_aggregate_series_left_out{${kHere}})`,
    unit: units.Short,
    thresholds: kNone,
    decimals: 0,
  }),
];

const kIngest: Section = {
  title: 'Ingest',
  lines: [
    graphs(
      lines({
        title: 'Samples a second',
        description: 'Values that passed admission, and values that became durable.',
        unit: units.CountsPerSecond,
        queries: [
          speed('tacho_ingest_samples_accepted_total', 'accepted'),
          speed('tacho_storage_samples_appended_total', 'durable'),
        ],
      }),
      lines({
        title: 'Agents',
        description: 'Open streams of agents.',
        unit: units.Short,
        queries: [{
          expr: `max by (instance) (tacho_ingest_streams{${kHere}})`, legend: '{{instance}}',
        }],
        decimals: 0,
      }),
    ),
    graphs(
      lines({
        title: 'Samples refused',
        description: 'By reason; docs/runbooks/TachoSamplesRejected.md says what to do.',
        unit: units.CountsPerSecond,
        thresholds: kNone,
        queries: [per('tacho_ingest_samples_rejected_total', 'reason')],
      }),
      lines({
        title: 'Rows lost by agents',
        description: 'Rows that agents reported lost because their spools were full or torn.',
        unit: units.CountsPerSecond,
        thresholds: kNone,
        queries: [speed('tacho_ingest_lost_rows_total', 'rows lost')],
      }),
      lines({
        title: 'Agents slowed down',
        description: 'Time in which streams were not read, by reason.',
        unit: units.Seconds,
        queries: [per('tacho_ingest_throttled_seconds_total', 'how')],
      }),
    ),
    graphs(
      lines({
        title: 'Headroom of the limits',
        description: 'The share of each limit that is left, where it is used most. Below 0: the ' +
          'limit was lowered below the use.',
        unit: units.PercentUnit,
        thresholds: limits(0.2, 0.05),
        queries: [{
          expr: `min by (limit) (tacho_limit_headroom_ratio{${kHere}})`, legend: '{{limit}}',
        }],
        max: 1,
        signed: true,
      }),
      lines({
        title: 'Clocks of agents',
        description: 'How far agents\' clocks were ahead when they connected, since the ' +
          'collector started: p1, median and p99.',
        unit: units.Seconds,
        queries: [0.01, 0.5, 0.99].map((q) => ({
          expr: `histogram_quantile(${q}, sum by (le) ` +
            `(tacho_ingest_clock_offset_seconds_bucket{${kHere}}))`,
          legend: `p${q * 100}`,
        })),
        signed: true,
      }),
    ),
  ],
};

const kStorage: Section = {
  title: 'Storage',
  lines: [
    graphs(
      lines({
        title: 'Disk',
        description: 'Tables and write-ahead log, and the journal\'s part of them.',
        unit: units.BytesIEC,
        queries: [
          each('tacho_storage_disk_bytes', 'on disk'), each('tacho_journal_bytes', 'journal'),
        ],
      }),
      lines({
        title: 'Series and jobs',
        description: 'Series in the index, and those of them in memory; jobs on the right.',
        unit: units.Short,
        queries: [
          each('tacho_storage_series', 'series'),
          each('tacho_storage_series_in_memory', 'series in memory'),
          each('tacho_storage_jobs', 'jobs'),
        ],
        right: [{ pattern: 'jobs', unit: units.Short, label: 'jobs' }],
      }),
    ),
    graphs(
      lines({
        title: 'Sync of the journal',
        description: 'Time of one journal write with its sync. An acknowledgement takes at ' +
          'least as long.',
        unit: units.Seconds,
        thresholds: limits(0.05, 0.5),
        queries: [
          { expr: quantile(0.5, 'tacho_journal_sync_duration_seconds', kHere), legend: 'p50' },
          { expr: quantile(0.99, 'tacho_journal_sync_duration_seconds', kHere), legend: 'p99' },
        ],
      }),
      lines({
        title: 'Waiting in memory',
        description: 'Batches that wait for the disk, and rows that are not sealed yet. Past ' +
          '160 MiB of open rows the collector refuses rows.',
        unit: units.BytesIEC,
        thresholds: limits(80 << 20, 160 << 20),
        queries: [
          each('tacho_storage_queue_bytes', 'for the disk'),
          each('tacho_storage_open_bytes', 'open rows'),
        ],
      }),
      lines({
        title: 'Bytes written',
        description: 'Bytes that RocksDB writes: its log, flushes, compactions.',
        unit: units.BytesPerSecondSI,
        queries: [
          speed('tacho_rocksdb_log_bytes_written_total', 'log'),
          speed('tacho_rocksdb_flush_bytes_written_total', 'flush'),
          speed('tacho_rocksdb_compaction_bytes_written_total', 'compaction'),
        ],
      }),
    ),
  ],
};

const kAnswers: Section = {
  title: 'Queries, conditions and scrapes',
  lines: [
    graphs(
      lines({
        title: 'Queries a second',
        description: 'Finished queries, by method and gRPC status code.',
        unit: units.RequestsPerSecond,
        queries: [{
          expr: `sum by (method, code) (${rate('tacho_query_requests_total', kHere)})`,
          legend: '{{method}} {{code}}',
        }],
      }),
      lines({
        title: 'Time of queries',
        description: 'p99 of the duration, with the time spent waiting for the client.',
        unit: units.Seconds,
        queries: [{
          expr: quantile(0.99, 'tacho_query_duration_seconds', kHere, ['method']),
          legend: '{{method}}',
        }],
      }),
    ),
    graphs(
      lines({
        title: 'Judging all jobs',
        description: 'Time to evaluate the conditions of all jobs once: median and p99.',
        unit: units.Seconds,
        queries: [
          { expr: quantile(0.5, 'tacho_conditions_evaluation_seconds', kHere), legend: 'p50' },
          { expr: quantile(0.99, 'tacho_conditions_evaluation_seconds', kHere), legend: 'p99' },
        ],
      }),
      lines({
        title: 'Scrape',
        description: 'Time to compute the metrics page, and time of the whole scrape.',
        unit: units.Seconds,
        thresholds: limits(0.1, 5),
        queries: [
          { expr: `max(tacho_scrape_collect_seconds{${kHere}})`, legend: 'computing' },
          { expr: `max(scrape_duration_seconds{${kHere}})`, legend: 'scrape' },
        ],
      }),
      lines({
        title: 'Lines of the metrics page',
        description: 'Series in one scrape, and lines that are left out because of ' +
          'metrics.max_series.',
        unit: units.Short,
        queries: [
          { expr: `max(scrape_samples_scraped{${kHere}})`, legend: 'series' },
          { expr: `max(tacho_aggregate_series_left_out{${kHere}})`, legend: 'left out' },
        ],
        decimals: 0,
      }),
    ),
  ],
};

const kProcess: Section = {
  title: 'Process',
  lines: [
    graphs(
      lines({
        title: 'CPU',
        description: 'Processors that the collector keeps busy.',
        unit: units.Short,
        queries: [{
          expr: `sum by (instance) (${rate('process_cpu_seconds_total', kHere)})`,
          legend: '{{instance}}',
        }],
      }),
      lines({
        title: 'Memory',
        description: 'Resident memory of the process.',
        unit: units.BytesIEC,
        queries: [{
          expr: `max by (instance) (process_resident_memory_bytes{${kHere}})`,
          legend: '{{instance}}',
        }],
      }),
      lines({
        title: 'Log lines a second',
        description: 'By level. Read the errors.',
        unit: units.CountsPerSecond,
        queries: [per('tacho_log_lines_total', 'level')],
      }),
    ),
    graphs(
      lines({
        title: 'Quotas in use',
        description: 'Share of each quota that has a limit.',
        unit: units.PercentUnit,
        thresholds: limits(0.8, 0.95),
        showThresholds: true,
        queries: [{
          expr: `max by (quota) (tacho_quota_used{${kHere}} / (tacho_quota_limit{${kHere}} > 0))`,
          legend: '{{quota}}',
        }],
        max: 1,
      }),
      lines({
        title: 'Connections',
        description: 'Open connections to the HTTP port, open files of the process.',
        unit: units.Short,
        queries: [
          each('tacho_http_connections', 'HTTP connections'), each('process_open_fds', 'files'),
        ],
        decimals: 0,
      }),
    ),
  ],
};

export const kCollector: Board = {
  name: 'collector',
  description: 'The collector: ingest, limits, storage, queries, process.',
  variables: [kInstance],
  screen: 'collector',
  sections: [
    { title: 'State', lines: [numbers(...kState.slice(0, 4)), numbers(...kState.slice(4))] },
    kIngest, kStorage, kAnswers, kProcess,
  ],
};
