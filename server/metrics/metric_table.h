// The one place that says what a metric family of the collector is: its name, type, unit, labels
// and help. Families are made from it (metric_families.h), and so are the tables of
// docs/metrics.md. The aggregates of jobs' own metrics are not here: their names come from the
// jobs.
//
// To add a metric: a row here, the code that counts it, its test, and a run of
//   TACHO_UPDATE_DOCS=1 metrics_test
// which writes the tables of docs/metrics.md anew. A new section also needs a heading there with
// the two marker lines.
#pragma once

#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::server::metrics {

struct MetricInfo {
  absl::string_view name;    // The family's name, as after "# TYPE".
  absl::string_view type;    // "gauge", "counter", "histogram", "summary".
  absl::string_view unit;    // Empty: as the help says.
  absl::string_view labels;  // By name, separated by ", "; also those that only some lines have.
  // Its meaning; one line, `code` as in Markdown, no full stop at the end.
  absl::string_view help;
  // Empty: on every page of a collector to which some job reports. Else when: "Only with TLS".
  absl::string_view when = {};
};

inline constexpr absl::string_view kOfSteppingJobs = "Of jobs that have recorded steps or phases";
inline constexpr absl::string_view kWhileTrue = "While a condition is true";
inline constexpr absl::string_view kIfRecorded = "If it is recorded";
inline constexpr absl::string_view kIfPowerIsRecorded =
    "If power of its chips or hosts is recorded";
inline constexpr absl::string_view kIfPriced = "If `cost` has prices for it";
inline constexpr absl::string_view kWithPage = "Only with a page whose address is known";
inline constexpr absl::string_view kWithTls = "Only with TLS";
inline constexpr absl::string_view kWithSpares = "Only in a cluster with spares";
inline constexpr absl::string_view kWithBucket = "Only with a bucket";
inline constexpr absl::string_view kWithSharedAcks =
    "Only while acknowledgements wait for the bucket";
inline constexpr absl::string_view kWithForward = "Only with receivers in `forward`";
inline constexpr absl::string_view kInCluster = "Only in a cluster";

inline constexpr MetricInfo kJobMetrics[] = {
    {"tacho_job_tasks", "gauge", "tasks", "job",
     "Tasks that report now. 0 for an hour after a job went silent, then the job leaves the page"},
    {"tacho_job_hosts", "gauge", "hosts", "job", "Hosts that report now"},
    {"tacho_job_last_step", "gauge", "steps", "job, stat",
     "Highest (`max`) and lowest (`min`) newest step of the tasks that report now, if they have "
     "any"},
    {"tacho_job_attempt", "gauge", "1", "job", "Newest attempt, from 0"},
    {"tacho_job_last_seen_timestamp_seconds", "gauge", "s", "job",
     "Time of the newest row, since the Unix epoch"},
    {"tacho_job_series", "gauge", "series", "job",
     "Series that report now, each counted once, whether or not an aggregate includes them"},
    {"tacho_job_silent_tasks", "gauge", "tasks", "job",
     "Tasks of the newest attempt that have reported within the hour, but not within "
     "`metrics.staleness`. If the job has ended, all its tasks"},
    {"tacho_job_tasks_left_total", "counter", "tasks", "job",
     "Times that a task left the aggregates because it went silent or ended"},
    {"tacho_job_series_left_total", "counter", "series", "job",
     "Times that a series left the aggregates because it went silent or lost its value"},
    {"tacho_aggregate_groups", "gauge", "groups", "rule",
     "Groups that each rule makes now; `rules[0]` is the first of `metrics.rules`"},
    {"tacho_aggregate_series_without_group", "gauge", "series", "rule",
     "Series that are in no group of the rule, because it already has `max_groups` groups"},
    {"tacho_aggregate_series_in_conflict", "gauge", "series", "rule",
     "Series that the rule does not show, because another rule already makes their lines, or their "
     "family has another type"},
    {"tacho_aggregate_series_left_out", "gauge", "lines", "",
     "Lines that this scrape left out because of `metrics.max_series`"},
    {"tacho_job_aggregates_left_out", "gauge", "lines", "job",
     "Lines of the job that this scrape left out because of `metrics.max_series`",
     "Only for jobs with such lines"},
};

inline constexpr MetricInfo kConditionMetrics[] = {
    {"tacho_job_condition", "gauge", "1", "job, condition, severity",
     "1 while the condition is true, 0 while it is false. Absent while there is no data to judge "
     "it",
     "Once there is data to judge a job"},
    {"tacho_job_condition_info", "gauge", "1",
     "job, condition, severity, reason, host, task, chip, step, metric",
     "Always 1. One line for each suspect host of a condition that is true, at most 16, or one "
     "without a host. Labels that do not apply are empty",
     kWhileTrue},
    {"tacho_job_condition_since_timestamp_seconds", "gauge", "s", "job, condition",
     "When the condition began, as far as the data shows, since the Unix epoch", kWhileTrue},
    {"tacho_job_condition_culprits", "gauge", "1", "job, condition",
     "Number of tasks, hosts, chips or metrics that the condition is about, at most 16",
     kWhileTrue},
    {"tacho_conditions_lines_left_out", "gauge", "lines", "",
     "Lines of conditions that this scrape left out because of `metrics.max_series`"},
    {"tacho_conditions_jobs", "gauge", "jobs", "", "Jobs that are judged"},
    {"tacho_job_conditions_evaluated_total", "counter", "1", "", "Times that a job was judged"},
    {"tacho_conditions_evaluation_seconds", "histogram", "s", "",
     "Time to judge one job by all conditions"},
    {"tacho_conditions_window_series", "gauge", "series", "",
     "Series whose recent values are kept in memory to judge jobs"},
    {"tacho_conditions_window_bytes", "gauge", "bytes", "",
     "Memory of these values, at most `conditions.total_bytes`"},
    {"tacho_conditions_series_left_out_total", "counter", "series", "",
     "Series that did not fit into `conditions.total_bytes`"},
    {"tacho_conditions_jobs_left_out_total", "counter", "1", "",
     "Batches and events of jobs beyond `conditions.max_jobs`"},
    {"tacho_conditions_fallen_behind_total", "counter", "1", "",
     "Times that the judge fell so far behind that it read the newest rows from the store instead"},
    {"tacho_conditions_events_total", "counter", "events", "outcome",
     "Events of conditions: `stored`, or `refused` by the disk and tried again"},
};

inline constexpr MetricInfo kGoodputMetrics[] = {
    {"tacho_job_goodput_seconds_total", "counter", "s", "job, bucket",
     "Wall time by what it was spent on, each second in exactly one bucket: `productive_step`, "
     "`initializing`, `compiling`, `restoring`, `data_wait`, `checkpoint`, `evaluation`, `wasted`, "
     "`stalled`, `down`, `other`, `waiting_for_others`. `docs/goodput.md` defines them. When steps "
     "are repeated, the repetition counts as `wasted` here, not the first run, so that no bucket "
     "falls",
     kOfSteppingJobs},
    {"tacho_job_wall_seconds_total", "counter", "s", "job",
     "Wall time since the first attempt began: the sum of the buckets", kOfSteppingJobs},
    {"tacho_job_goodput_ratio", "gauge", "1", "job",
     "Time in productive steps divided by wall time, since the first attempt began",
     kOfSteppingJobs},
    {"tacho_job_lost_to_hosts_seconds", "gauge", "s", "job",
     "What the whole job lost to slow hosts, for which all others waited in each step. "
     "`docs/goodput.md` defines it; the time is in the buckets, too",
     "If tasks record their own work"},
    {"tacho_job_host_lost_seconds", "gauge", "s", "job, host, reason",
     "The same by host, and by what it was slow in: `input`, `compute`, `communication`, "
     "`checkpoint`; the 10 worst hosts of a job",
     "If tasks record their own work"},
    {"tacho_job_mfu_ratio", "gauge", "1", "job",
     "Model FLOPs utilisation over the newest steps, at most 1,000: `flops_per_step` / (mean step "
     "time × `device_count` × peak FLOP/s of a device)",
     "If the attempt's attributes have what it needs"},
    {"tacho_job_tokens_per_second", "gauge", "1/s", "job",
     "Tokens per second of the whole job over the newest steps: growth of its counter `tokens`, or "
     "else `tokens_per_step` / mean step time",
     "If one of them is recorded"},
    {"tacho_job_step_time_seconds", "summary", "s", "job, quantile",
     "Quantiles 0.5, 0.9 and 0.99 of the newest step times of the reference task, at most 1,000. "
     "`_count` and `_sum` cover the same steps, so they can fall",
     kOfSteppingJobs},
    {"tacho_job_planned_steps", "gauge", "steps", "job", "The attribute `planned_steps`",
     kIfRecorded},
    {"tacho_job_progress_ratio", "gauge", "1", "job",
     "Steps done divided by `planned_steps`, at most 1", kIfRecorded},
    {"tacho_job_remaining_seconds", "gauge", "s", "job",
     "Estimated time left: steps left × wall time of a step over the newest steps, pauses included",
     "If `planned_steps` is recorded"},
    {"tacho_job_info", "gauge", "1",
     "job, attempt, model, batch_size, device_kind, device_count, source_revision, "
     "config_fingerprint",
     "Always 1. The labels hold attributes of the newest attempt, empty if not recorded",
     kOfSteppingJobs},
    {"tacho_job_host_info", "gauge", "1", "job, host",
     "Always 1, for each host that last ran tasks of the newest attempt: says which series of "
     "hosts "
     "and chips belong to the job",
     kOfSteppingJobs},
    {"tacho_job_host_lines_left_out", "gauge", "lines", "",
     "Lines of `tacho_job_host_info` that this scrape left out because of `metrics.max_series`"},
    {"tacho_goodput_jobs", "gauge", "jobs", "", "Jobs that have a ledger now"},
    {"tacho_goodput_jobs_left_out", "gauge", "jobs", "",
     "Live jobs without a ledger, because there are more than 1,000"},
    {"tacho_goodput_ledgers_total", "counter", "ledgers", "", "Ledgers that were made"},
    {"tacho_goodput_failures_total", "counter", "ledgers", "",
     "Ledgers that could not be made, because the store could not be read"},
    {"tacho_goodput_compute_seconds_total", "counter", "s", "",
     "Time spent on making ledgers, at most a tenth of one thread's"},
    {"tacho_goodput_oldest_seconds", "gauge", "s", "", "Age of the oldest ledger on the page"},
};

inline constexpr MetricInfo kCostMetrics[] = {
    {"tacho_job_energy_joules", "gauge", "J", "job, bucket",
     "Energy of the job's chips and hosts as far as their power is known, by what the time went "
     "to. "
     "`docs/cost.md` defines it",
     kIfPowerIsRecorded},
    {"tacho_job_energy_covered_ratio", "gauge", "1", "job",
     "The part of the time of these chips and hosts of which power is known", kIfPowerIsRecorded},
    {"tacho_job_chip_seconds", "gauge", "s", "job",
     "Chips times wall time. Time down counts, but for spot chips",
     "If the number of chips is known, and their power is recorded or anything has a price"},
    {"tacho_job_cost", "gauge", "currency", "job, currency, bucket, of",
     "What the job has cost so far, by what the time went to; `of` is `chips` or `energy`",
     kIfPriced},
    {"tacho_job_chip_seconds_not_priced", "gauge", "s", "job",
     "The part of `tacho_job_chip_seconds` that has no price, and is not in `tacho_job_cost`",
     kIfPriced},
    {"tacho_job_cost_per_step", "gauge", "currency", "job, currency",
     "Cost so far by productive steps", kIfPriced},
    {"tacho_job_cost_per_million_tokens", "gauge", "currency", "job, currency",
     "Cost so far by tokens of productive steps", "If the job has a price and records tokens"},
    {"tacho_job_cost_per_accuracy_point", "gauge", "currency", "job, currency",
     "Cost so far by percentage points that accuracy has gained",
     "If the job has a price and records accuracy"},
    {"tacho_cost_jobs", "gauge", "jobs", "", "Jobs whose energy or cost is known now"},
    {"tacho_cost_made_total", "counter", "1", "", "Times that a job's cost was made"},
    {"tacho_cost_failures_total", "counter", "1", "",
     "Times that it could not be made, because the store could not be read"},
    {"tacho_cost_compute_seconds_total", "counter", "s", "",
     "Time spent on that, at most a twentieth of one thread's"},
    {"tacho_cost_oldest_seconds", "gauge", "s", "", "Age of the oldest cost on the page"},
};

inline constexpr MetricInfo kIngestMetrics[] = {
    {"tacho_ingest_streams", "gauge", "streams", "", "Open streams of agents"},
    {"tacho_ingest_batches_total", "counter", "batches", "",
     "Batches that passed admission, repeats included"},
    {"tacho_ingest_lost_messages_total", "counter", "messages", "",
     "Messages that agents reported as lost in their spools (full or torn), or that are `gone` as "
     "`tacho_ingest_acknowledged_missing_messages_total` says; repeated reports included"},
    {"tacho_ingest_lost_rows_total", "counter", "rows", "",
     "Rows in the lost messages, as far as the agents knew"},
    {"tacho_ingest_acknowledged_missing_messages_total", "counter", "messages", "fate",
     "Messages that, as agents know, were acknowledged and that the store no longer had when they "
     "connected: `gone` (their spools no longer have them either), `again` (sent again)"},
    {"tacho_ingest_rows_total", "counter", "rows", "",
     "Rows that passed admission, repeats included"},
    {"tacho_ingest_samples_accepted_total", "counter", "samples", "",
     "Samples that passed admission, repeats and stale markers included"},
    {"tacho_ingest_samples_rejected_total", "counter", "samples", "reason",
     "Samples that were refused although their message was accepted"},
    {"tacho_ingest_samples_folded_total", "counter", "samples", "",
     "Samples that were added up in overflow series, stale markers included"},
    {"tacho_limit_series_total", "counter", "series", "limit, action",
     "Series that met a limit when a layout defined them, counted each time a layout does so. "
     "`limit` is the key under `limits`, or `names` for texts that are not allowed. An event or "
     "the attributes of a job too many count as one. `action` is `reject`, `fold` or `observe`"},
    {"tacho_limit", "gauge", "1", "limit",
     "The limit. For `series_per_job`, `series_per_metric` and `values_per_label`: of the job, "
     "metric or label that is nearest to its own limit, among the eight largest of each job in "
     "use"},
    {"tacho_limit_used", "gauge", "1", "limit", "How much of that limit is used"},
    {"tacho_limit_headroom_ratio", "gauge", "1", "limit",
     "The share of that limit that is left, from 1 to 0; below 0 if the limit was lowered under "
     "what is in use"},
    {"tacho_ingest_messages_refused_total", "counter", "messages", "reason",
     "Messages that were refused as a whole"},
    {"tacho_ingest_acks_total", "counter", "messages", "", "Acknowledgements sent"},
    {"tacho_ingest_throttled_total", "counter", "1", "how", "Times that a stream was slowed down"},
    {"tacho_ingest_throttled_seconds_total", "counter", "s", "how",
     "Time in which streams were not read from; a pause counts when it is over"},
    {"tacho_ingest_stream_ends_total", "counter", "streams", "code",
     "Streams that ended, by gRPC status code"},
    {"tacho_ingest_clock_offset_seconds", "histogram", "s", "",
     "How far the clocks of agents are ahead: when they connect, less the time that their first "
     "message took; and when they have been set"},
    {"tacho_ingest_clock_uncertainty_seconds", "histogram", "s", "",
     "Largest possible error of a measurement of an agent's clock; about one a second and agent"},
    {"tacho_ingest_clock_steps_total", "counter", "steps", "direction",
     "Times that the clock of a connected agent was set, by more than the measurements may be "
     "wrong: `ahead` or `back`"},
};

inline constexpr MetricInfo kInteropMetrics[] = {
    {"tacho_interop_samples_total", "counter", "samples", "protocol",
     "Samples of other tools that were stored, repeats and the ends of series included. "
     "`tacho_ingest_samples_rejected_total` counts those that were refused"},
    {"tacho_interop_exemplars_total", "counter", "exemplars", "protocol",
     "Exemplars that other tools sent; they are left out"},
    {"tacho_interop_strings_total", "counter", "values", "protocol",
     "Values of other tools that are texts; they are left out"},
    {"tacho_interop_events_total", "counter", "events", "protocol",
     "Events of other tools that were stored, repeats included"},
    {"tacho_interop_log_records_rejected_total", "counter", "records", "protocol",
     "Log records of other tools that did not become events, whatever the reason"},
    {"tacho_interop_push_groups", "gauge", "groups", "",
     "Groups of pushed series that are known: those that were pushed within `interop.push_expiry` "
     "and since the collector started"},
    {"tacho_interop_statsd_values_total", "counter", "values", "",
     "Values of StatsD that were added up. Only with StatsD open"},
    {"tacho_interop_statsd_dropped_total", "counter", "see reason", "reason",
     "What came over StatsD and was left out. `kernel`: datagrams that came faster than they were "
     "read. `connection`: connections above the bound, or with a line that is too long. Lines: "
     "`unreadable`; `event` and `service_check` of DogStatsD. Values: `no_room` for another "
     "series, above `interop.statsd.max_series` or 64 MiB; `other_type` than the series has. "
     "`not_stored`: samples that the store refused or could not take. Only with StatsD open"},
    {"tacho_interop_statsd_series", "gauge", "series", "",
     "Names of StatsD with their tags; at most `interop.statsd.max_series`. Only with StatsD open"},
    {"tacho_interop_series", "gauge", "series", "",
     "Series of other tools whose place is remembered; at most `interop.max_series`"},
    {"tacho_writes_forwarded_total", "counter", "requests", "result",
     "Parts of requests of other tools that were passed on to the member of the cluster that keeps "
     "their jobs: `ok`, `refused` (the member's own error) and `unreachable`",
     kInCluster},
};

inline constexpr MetricInfo kConnectionMetrics[] = {
    {"tacho_quota_limit", "gauge", "as the key", "quota",
     "Quotas in force, by their key without `quotas.`; for a rate, 0 means no limit"},
    {"tacho_quota_used", "gauge", "as the key", "quota",
     "How much of the quota is in use: `pending_bytes`, `memory_bytes`, `connections`"},
    {"tacho_connections_refused_total", "counter", "connections", "reason",
     "Connections that were closed as soon as they were made: `total`, `address`, `memory`, "
     "`penalty`"},
    {"tacho_connections_closed_total", "counter", "connections", "reason",
     "Connections that were shut down for what they did: `silent` (no call), `unfinished` (half a "
     "message), `flood` (bytes that are no messages), `oversized` (a welcomed agent's message far "
     "above `ingest.max_message_bytes`), `calls` (began too many)"},
};

inline constexpr MetricInfo kStorageMetrics[] = {
    {"tacho_storage_samples_appended_total", "counter", "samples", "",
     "Values made durable, without stale markers"},
    {"tacho_storage_rows_appended_total", "counter", "rows", "", "Rows made durable"},
    {"tacho_storage_batches_total", "counter", "batches", "", "Batches made durable"},
    {"tacho_storage_batches_repeated_total", "counter", "batches", "",
     "Batches dropped because they were durable already"},
    {"tacho_storage_rows_sealed_total", "counter", "rows", "", "Rows compressed into columns"},
    {"tacho_storage_columns_sealed_total", "counter", "columns", "", "Columns written"},
    {"tacho_storage_column_bytes_sealed_total", "counter", "bytes", "",
     "Bytes of the columns written, keys included"},
    {"tacho_storage_partitions_dropped_total", "counter", "days", "",
     "Days dropped because of their age or size"},
    {"tacho_storage_frames_merged_total", "counter", "frames", "",
     "Small frames of slow or short-lived sources that were merged into a longer one"},
    {"tacho_storage_merge_bytes_total", "counter", "bytes", "",
     "Bytes of merged columns written, keys included"},
    {"tacho_storage_over_retention_bytes", "gauge", "bytes", "",
     "Bytes beyond `storage.retention_bytes` that are kept because the day is being written"},
    {"tacho_storage_missing_commits", "gauge", "commits", "",
     "Commits that the write-ahead log had once made durable and that were gone when the store was "
     "opened; 0 if its end was there"},
    {"tacho_storage_missing_messages", "gauge", "messages", "",
     "Acknowledged messages in the missing commits"},
    {"tacho_storage_missing_rows", "gauge", "rows", "", "Rows in the missing messages"},
    {"tacho_storage_queue_bytes", "gauge", "bytes", "", "Bytes of batches that wait for the disk"},
    {"tacho_storage_series", "gauge", "series", "", "Series in the index"},
    {"tacho_storage_jobs", "gauge", "jobs", "", "Jobs in the index"},
    {"tacho_storage_series_in_memory", "gauge", "series", "",
     "Series of jobs in use. A job is in use for an hour after rows or queries of it"},
    {"tacho_storage_jobs_in_memory", "gauge", "jobs", "", "Jobs in use"},
    {"tacho_storage_layouts", "gauge", "layouts", "", "Layouts of jobs in use"},
    {"tacho_storage_text_bytes", "gauge", "bytes", "",
     "Memory of the names and labels of jobs in use"},
    {"tacho_storage_open_rows", "gauge", "rows", "", "Rows in memory that are not sealed yet"},
    {"tacho_storage_open_bytes", "gauge", "bytes", "",
     "Memory of the rows that are not sealed yet. Beyond 80 MiB they are sealed or compressed "
     "early, beyond 160 MiB refused"},
    {"tacho_storage_partitions", "gauge", "days", "", "Days on disk"},
    {"tacho_storage_disk_bytes", "gauge", "bytes", "",
     "Bytes of the database's files: tables and write-ahead log"},
    {"tacho_storage_column_cache_bytes", "gauge", "bytes", "",
     "Memory of decoded columns that are kept for the next query; at most "
     "`storage.column_cache_bytes`, not counting what running queries hold"},
    {"tacho_storage_column_cache_hits_total", "counter", "lookups", "",
     "Decoded columns that were found in the cache"},
    {"tacho_storage_column_cache_misses_total", "counter", "lookups", "",
     "Decoded columns that were not found in the cache"},
    {"tacho_journal_sync_duration_seconds", "histogram", "s", "",
     "Duration of one journal write with its sync, which makes many batches durable. An "
     "acknowledgement takes at least this long"},
    {"tacho_journal_entries", "gauge", "messages", "",
     "Messages in the journal, which a restart reads again"},
    {"tacho_journal_bytes", "gauge", "bytes", "", "Bytes of the messages in the journal"},
    {"tacho_rocksdb_log_bytes_written_total", "counter", "bytes", "",
     "Bytes written to RocksDB's log: the journal, then columns"},
    {"tacho_rocksdb_flush_bytes_written_total", "counter", "bytes", "",
     "Bytes of tables written out of memory"},
    {"tacho_rocksdb_compaction_bytes_written_total", "counter", "bytes", "",
     "Bytes of tables written by compactions"},
    {"tacho_rocksdb_memtable_bytes", "gauge", "bytes", "", "Memory of RocksDB's memtables"},
    {"tacho_rocksdb_block_cache_bytes", "gauge", "bytes", "", "RocksDB's block cache in use"},
    {"tacho_rocksdb_pending_compaction_bytes", "gauge", "bytes", "",
     "Bytes that RocksDB estimates it still has to compact"},
    {"tacho_storage_refusing", "gauge", "1", "",
     "1 while the disk refuses writes and nothing is stored, else 0: alert on it"},
    {"tacho_storage_read_only", "gauge", "1", "",
     "1 while a store that was opened on a full disk is only read, else 0"},
    {"tacho_storage_ballast_bytes", "gauge", "bytes", "",
     "Size of the ballast (`storage.ballast_bytes`); 0 while it is given up, because the disk is "
     "full, or if there is none"},
    {"tacho_storage_available_bytes", "gauge", "bytes", "",
     "Free space of the file system of `storage.path`"},
};

inline constexpr MetricInfo kBucketMetrics[] = {
    {"tacho_bucket_requests_total", "counter", "requests", "operation, code",
     "Requests to the bucket that have ended. `code` is the status of HTTP, 0 if there was no "
     "whole "
     "answer",
     kWithBucket},
    {"tacho_bucket_request_duration_seconds", "histogram", "s", "operation",
     "Duration of one request to the bucket", kWithBucket},
    {"tacho_bucket_bytes_total", "counter", "bytes", "direction",
     "Bytes of bodies, `sent` to the bucket or `received` from it", kWithBucket},
    {"tacho_bucket_retries_total", "counter", "requests", "reason",
     "Requests that were sent again: `slow` (no byte for too long), `failed` (no connection, or it "
     "broke), `busy` (the service asked to come later), `expired` (the credentials), `error` (a "
     "5xx)",
     kWithBucket},
    {"tacho_bucket_cache_hits_total", "counter", "pieces", "",
     "Pieces of objects that queries found in memory or in `bucket.cache_path`", kWithBucket},
    {"tacho_bucket_cache_misses_total", "counter", "requests", "",
     "Times that queries had to fetch pieces from the bucket", kWithBucket},
    {"tacho_bucket_cache_disk_errors_total", "counter", "pieces", "",
     "Pieces that could not be kept in `bucket.cache_path`, or were damaged there", kWithBucket},
    {"tacho_bucket_cache_bytes", "gauge", "bytes", "",
     "Bytes in `bucket.cache_path`, at most `bucket.cache_bytes`", kWithBucket},
    {"tacho_bucket_days", "gauge", "days", "", "Days whose columns are in the bucket", kWithBucket},
    {"tacho_bucket_failing", "gauge", "1", "",
     "1 while days cannot be moved into the bucket and stay on the disk, else 0: alert on it",
     kWithBucket},
    {"tacho_shard_unshipped_bytes", "gauge", "bytes", "shard",
     "Bytes of messages that are on the disk and wait for the bucket, at most about "
     "`cluster.max_unshipped_bytes`",
     kWithSharedAcks},
    {"tacho_shard_unshipped_seconds", "gauge", "s", "shard",
     "How long the oldest of these messages has been waiting: alert on it", kWithSharedAcks},
    {"tacho_shard_epoch", "gauge", "1", "shard",
     "Number of times that a collector has become the owner of this data in the bucket, this one "
     "the last",
     kWithSharedAcks},
    {"tacho_shard_fenced", "gauge", "1", "shard",
     "1 once another collector has become the owner, and this one acknowledges nothing more, else "
     "0: alert on it",
     kWithSharedAcks},
    {"tacho_shard_commits_total", "counter", "commits", "shard",
     "Copies of the index and the state that went into the bucket", kWithSharedAcks},
    {"tacho_shard_failed_commits_total", "counter", "commits", "shard",
     "Such copies that failed; each is tried again", kWithSharedAcks},
    {"tacho_shard_restore_seconds", "gauge", "s", "shard",
     "How long it took at the start to restore the store from the bucket; 0 if it was on the disk",
     kWithSharedAcks},
};

inline constexpr MetricInfo kForwardMetrics[] = {
    {"tacho_forward_lag_seconds", "gauge", "s", "receiver",
     "How long something that is stored has been waiting to be forwarded: alert on it",
     kWithForward},
    {"tacho_forward_samples_total", "counter", "samples", "receiver",
     "Samples that the receiver has taken", kWithForward},
    {"tacho_forward_samples_left_out_total", "counter", "samples", "receiver",
     "Samples that the receiver refused for good; the log has an example", kWithForward},
    {"tacho_forward_damaged_columns_total", "counter", "columns", "receiver",
     "Damaged columns that could not be forwarded", kWithForward},
    {"tacho_forward_requests_total", "counter", "requests", "receiver, code",
     "Requests that have ended. `code` is the status of HTTP, 0 if there was no whole answer; with "
     "OTLP the name of gRPC's status",
     kWithForward},
    {"tacho_forward_retries_total", "counter", "requests", "receiver",
     "Times that the receiver took nothing and a request had to wait", kWithForward},
    {"tacho_forward_series_ended_total", "counter", "series", "receiver",
     "Series whose end the receiver was told; the markers count as samples, too", kWithForward},
    {"tacho_forward_aggregates_missed_total", "counter", "evaluations", "receiver",
     "Evaluations of aggregates that the receiver did not get, or not whole, because it was away",
     kWithForward},
    {"tacho_forward_bytes_total", "counter", "bytes", "receiver",
     "Bytes of requests, compressed; with OTLP before that", kWithForward},
};

inline constexpr MetricInfo kQueryMetrics[] = {
    {"tacho_query_requests_total", "counter", "queries", "method, code",
     "Queries that ended, by gRPC status code; TensorBoard's as `tensorboard.…`, those of View as "
     "`view.…`, remote read as `prometheus.Read`, lists of names as `prometheus.Explore`, and "
     "what other members of a cluster ask for both as `member.…`"},
    {"tacho_query_duration_seconds", "histogram", "s", "method",
     "Duration of queries, waiting for their client included"},
    {"tacho_query_active", "gauge", "queries", "",
     "Queries that run now; at most `query.max_concurrent`"},
    {"tacho_query_samples_returned_total", "counter", "samples", "",
     "Samples and buckets that `Range`, `Export` and remote read have returned"},
    {"tacho_query_remote_reads_total", "counter", "queries", "form",
     "Remote reads that were answered, by form: `samples`, or `chunks` for STREAMED_XOR_CHUNKS"},
    {"tacho_query_watches", "gauge", "watches", "",
     "Watches that are open now; at most `query.max_watches`. When a watch ends, "
     "`tacho_query_requests_total` counts it, but no duration includes it"},
    {"tacho_query_watched_samples_total", "counter", "samples", "",
     "Samples that were sent to watches as they became durable, counted for each watch"},
    {"tacho_queries_forwarded_total", "counter", "queries", "result",
     "Calls of other members of the cluster, for queries about jobs that they keep: `ok`, "
     "`refused` (the member's own error) and `unreachable`. A list asks each member, this "
     "collector included",
     kInCluster},
};

inline constexpr MetricInfo kHttpMetrics[] = {
    {"tacho_http_connections", "gauge", "connections", "", "Open connections to the HTTP port"},
    {"tacho_http_requests_total", "counter", "requests", "route, status",
     "HTTP requests by path of the route (`other`: no such path) and status; 499: the connection "
     "closed before its answer was sent",
     "Once a request has been answered"},
    {"tacho_http_request_duration_seconds", "histogram", "s", "route",
     "From the end of a request's head to the end of its answer, waiting for the client included",
     "Once a request has been answered"},
    {"tacho_http_connections_closed_total", "counter", "connections", "reason",
     "Connections that were closed without an answer: `slow` (no complete request within 10 s, or "
     "an "
     "answer not read within 60 s), `crowded` (waited longest for its client when another needed "
     "room), `busy` (answered 503: none was waiting), `too_large` (a head above 16 KiB)"},
};

inline constexpr MetricInfo kReloadMetrics[] = {
    {"tacho_config_last_reload_successful", "gauge", "1", "",
     "1 if the configuration in force is the newest that was asked for, 0 if the last reload was "
     "refused: alert on it"},
    {"tacho_config_last_reload_success_timestamp_seconds", "gauge", "s", "",
     "When the configuration in force was read, since the Unix epoch"},
    {"tacho_auth_refused_total", "counter", "calls", "code",
     "gRPC calls and HTTP requests that were not let in: `UNAUTHENTICATED` (no token or "
     "certificate, or one that is unknown or expired), `PERMISSION_DENIED` (the role is missing)"},
    {"tacho_tls_certificate_expiry_timestamp_seconds", "gauge", "s", "",
     "When the certificate that new connections see expires, since the Unix epoch", kWithTls},
    {"tacho_tls_certificate_reload_failed", "gauge", "1", "",
     "1 while the files of `listen.tls` cannot be used and the old certificate stays in force, "
     "else 0",
     kWithTls},
    {"tacho_config_reloads_total", "counter", "reloads", "result",
     "Reloads that were asked for: `success`, `failure`"},
};

inline constexpr MetricInfo kLogMetrics[] = {
    {"tacho_log_lines_total", "counter", "lines", "level", "Lines that were logged"},
    {"tacho_log_lines_left_out_total", "counter", "lines", "",
     "Lines that were not logged, because there were too many of their kind within a minute"},
};

inline constexpr MetricInfo kProcessMetrics[] = {
    {"tacho_ready", "gauge", "1", "", "1 while `/readyz` answers 200, else 0"},
    {"tacho_clock_jumps_total", "counter", "jumps", "direction",
     "Times that the wall clock moved by more than a minute against the monotonic clock: `ahead` "
     "or `back`"},
    {"tacho_clock_doubted", "gauge", "1", "",
     "1 while the collector does not trust its own clock, as `/readyz` says, else 0"},
    {"tacho_cluster_members", "gauge", "collectors", "",
     "Collectors that share the jobs, by `cluster.members`; 1 without a cluster. Where the members "
     "of a cluster differ in it, one has another list"},
    {"tacho_cluster_shard", "gauge", "1", "",
     "The shard of the jobs that this collector keeps, from 0 on: its place in `cluster.members`"},
    {"tacho_cluster_standbys", "gauge", "collectors", "",
     "Collectors that live and wait for a shard", kWithSpares},
    {"tacho_cluster_takeovers_total", "counter", "shards", "",
     "Shards that this process has taken over", kWithSpares},
    {"tacho_build_info", "gauge", "1", "version", "Always 1; the label `version` has the version"},
    {"tacho_page_info", "gauge", "1", "url",
     "Always 1; the label `url` has the address of the page for browsers, for links (`ui.url`)",
     kWithPage},
    {"tacho_scrape_collect_seconds", "gauge", "s", "", "Time to compute this page"},
    {"process_cpu_seconds_total", "counter", "s", "", "User and system CPU time"},
    {"process_resident_memory_bytes", "gauge", "bytes", "", "Resident memory"},
    {"process_open_fds", "gauge", "files", "", "Open file descriptors"},
    {"process_start_time_seconds", "gauge", "s", "",
     "When the process was started, since the Unix epoch"},
};

// A part of docs/metrics.md, whose marker has the title.
struct MetricSection {
  absl::string_view title;
  std::span<const MetricInfo> metrics;
};

// In the order of docs/metrics.md.
inline constexpr MetricSection kMetricSections[] = {
    {"Aggregates of jobs", kJobMetrics},
    {"Conditions", kConditionMetrics},
    {"Goodput", kGoodputMetrics},
    {"Cost", kCostMetrics},
    {"Ingest", kIngestMetrics},
    {"Other tools", kInteropMetrics},
    {"Quotas and connections", kConnectionMetrics},
    {"Storage", kStorageMetrics},
    {"Bucket", kBucketMetrics},
    {"Forwarding", kForwardMetrics},
    {"Queries", kQueryMetrics},
    {"The HTTP port", kHttpMetrics},
    {"Reloads", kReloadMetrics},
    {"The log", kLogMetrics},
    {"The process", kProcessMetrics},
};

// Null if no row has that name.
constexpr const MetricInfo* FindMetric(absl::string_view name) {
  for (const MetricSection& section : kMetricSections) {
    for (const MetricInfo& info : section.metrics) {
      if (info.name == name) return &info;
    }
  }
  return nullptr;
}

// A row, by its name: where a function takes a Metric, write "tacho_ready". A name that is in no
// row does not compile.
class Metric {
 public:
  consteval Metric(const char* name) : info_(*FindMetric(name)) {}  // NOLINT: implicit by design.
  explicit Metric(const MetricInfo& info) : info_(info) {}

  const MetricInfo& info() const { return info_; }
  // As after "# HELP": without Markdown.
  std::string Help() const;

 private:
  const MetricInfo& info_;
};

}  // namespace tacho::server::metrics
