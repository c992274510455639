// The families that the page makes itself: the store, the HTTP port, the log, the process.
#pragma once

#include "server/metrics/metric_info.h"

namespace tacho::server::metrics {

inline constexpr MetricInfo kStorageMetrics[] = {
    {"tacho_storage_samples_appended_total", "counter", "samples", "",
     "Values made durable; stale markers are none"},
    {"tacho_storage_rows_appended_total", "counter", "rows", "", "Rows made durable"},
    {"tacho_storage_batches_total", "counter", "batches", "", "Batches made durable"},
    {"tacho_storage_batches_repeated_total", "counter", "batches", "",
     "Batches dropped because they were durable already"},
    {"tacho_storage_rows_sealed_total", "counter", "rows", "", "Rows compressed into columns"},
    {"tacho_storage_columns_sealed_total", "counter", "columns", "", "Columns written"},
    {"tacho_storage_column_bytes_sealed_total", "counter", "bytes", "",
     "Bytes of the columns written, keys included"},
    {"tacho_storage_partitions_dropped_total", "counter", "days", "",
     "Days dropped by age or for their bytes"},
    {"tacho_storage_frames_merged_total", "counter", "frames", "",
     "Small frames of slow or short-lived sources that became part of a longer one"},
    {"tacho_storage_merge_bytes_total", "counter", "bytes", "",
     "Bytes of merged columns written, keys included"},
    {"tacho_storage_over_retention_bytes", "gauge", "bytes", "",
     "Bytes beyond `storage.retention_bytes` that are kept because the day is being written"},
    {"tacho_storage_queue_bytes", "gauge", "bytes", "", "Batches that wait for the disk"},
    {"tacho_storage_series", "gauge", "series", "", "Series that the index holds"},
    {"tacho_storage_jobs", "gauge", "jobs", "", "Jobs that the index holds"},
    {"tacho_storage_series_in_memory", "gauge", "series", "",
     "Series of jobs in use: of which something was recorded or asked for within the hour"},
    {"tacho_storage_jobs_in_memory", "gauge", "jobs", "", "Jobs in use"},
    {"tacho_storage_layouts", "gauge", "layouts", "", "Layouts of jobs in use"},
    {"tacho_storage_text_bytes", "gauge", "bytes", "", "Names and labels of jobs in use"},
    {"tacho_storage_open_rows", "gauge", "rows", "", "Rows in memory that are not yet sealed"},
    {"tacho_storage_open_bytes", "gauge", "bytes", "",
     "Memory of the rows that are not yet sealed; past 80 MiB they are sealed or compressed early, "
     "past 160 MiB refused"},
    {"tacho_storage_partitions", "gauge", "days", "", "Days on disk"},
    {"tacho_storage_disk_bytes", "gauge", "bytes", "", "Tables and write-ahead log"},
    {"tacho_storage_column_cache_bytes", "gauge", "bytes", "",
     "Columns that queries have decoded, kept for the next; at most `storage.column_cache_bytes` "
     "but for what queries hold"},
    {"tacho_storage_column_cache_hits_total", "counter", "lookups", "",
     "Look-ups of decoded columns that found them"},
    {"tacho_storage_column_cache_misses_total", "counter", "lookups", "",
     "Look-ups of decoded columns that did not"},
    {"tacho_journal_sync_duration_seconds", "histogram", "s", "",
     "One journal write with its sync. It makes many batches durable: this is the least time an "
     "acknowledgement takes"},
    {"tacho_journal_entries", "gauge", "messages", "",
     "Messages in the journal: what a restart reads again"},
    {"tacho_journal_bytes", "gauge", "bytes", "", "Bytes of the messages in the journal"},
    {"tacho_rocksdb_log_bytes_written_total", "counter", "bytes", "",
     "Written to RocksDB's log: the journal, then columns"},
    {"tacho_rocksdb_flush_bytes_written_total", "counter", "bytes", "",
     "Tables written out of memory"},
    {"tacho_rocksdb_compaction_bytes_written_total", "counter", "bytes", "",
     "Tables written by compactions"},
    {"tacho_rocksdb_memtable_bytes", "gauge", "bytes", "", "RocksDB's memtables"},
    {"tacho_rocksdb_block_cache_bytes", "gauge", "bytes", "", "RocksDB's block cache in use"},
    {"tacho_rocksdb_pending_compaction_bytes", "gauge", "bytes", "",
     "What RocksDB estimates it has yet to compact"},
    {"tacho_storage_refusing", "gauge", "1", "",
     "1 while the disk refuses and nothing is stored, else 0: alert on it"},
    {"tacho_storage_available_bytes", "gauge", "bytes", "",
     "Room that is left on the file system of `storage.path`"},
};

inline constexpr MetricInfo kHttpMetrics[] = {
    {"tacho_http_connections", "gauge", "connections", "",
     "Connections to the HTTP port that are open"},
    {"tacho_http_connections_closed_total", "counter", "connections", "reason",
     "Closed unserved: `slow` (no whole request within 10 s, or an answer not taken within 60 "
     "s), `crowded` (the one that waited longest for its client made room for another), `busy` "
     "(answered 503: nobody waited), `too_large` (a head above 16 KiB)"},
};

inline constexpr MetricInfo kLogMetrics[] = {
    {"tacho_log_lines_total", "counter", "lines", "level", "Lines that were logged"},
    {"tacho_log_lines_left_out_total", "counter", "lines", "",
     "Lines that were not, because too many of their kind were within a minute"},
};

inline constexpr MetricInfo kProcessMetrics[] = {
    {"tacho_ready", "gauge", "1", "", "1 while `/readyz` is 200, else 0"},
    {"tacho_build_info", "gauge", "1", "version", "Always 1; the label `version` tells"},
    {"tacho_scrape_collect_seconds", "gauge", "s", "", "Time it took to compute this page"},
    {"process_cpu_seconds_total", "counter", "s", "", "User and system CPU time"},
    {"process_resident_memory_bytes", "gauge", "bytes", "", "Resident memory"},
    {"process_open_fds", "gauge", "files", "", "Open file descriptors"},
    {"process_start_time_seconds", "gauge", "s", "", "Start, since the Unix epoch"},
};

}  // namespace tacho::server::metrics
