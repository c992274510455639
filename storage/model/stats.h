// Figures of a store.
#pragma once

#include <cstdint>

#include "storage/model/series.h"

namespace tacho::storage {

// Figures for the collector's own metrics.
struct StoreStats {
  uint64_t rows_appended = 0;     // Since Open().
  uint64_t samples_appended = 0;  // Values, stale markers left out.
  uint64_t batches_appended = 0;
  uint64_t batches_repeated = 0;  // Dropped as already durable.
  uint64_t commits = 0;           // Synced writes.
  double commit_seconds = 0;      // Spent in them.
  uint64_t commit_latency_us_buckets[24] =
      {};                        // [i]: commits of less than 2^i µs and no less than 2^(i-1).
  uint64_t queued_bytes = 0;     // Waiting for the disk or being written.
  uint64_t queued_messages = 0;  // As queued_bytes.
  uint64_t series = 0;
  uint64_t jobs = 0;
  // How many of them are in memory: see StoreOptions::job_idle.
  uint64_t series_in_memory = 0;
  uint64_t jobs_in_memory = 0;
  uint64_t layouts = 0;               // In memory.
  uint64_t text_bytes_in_memory = 0;  // Names and labels of the jobs in memory.
  SeriesId next_series_id = 1;        // Every existing series has a lower id.
  uint64_t open_rows = 0;             // In the head.
  uint64_t open_bytes = 0;
  uint64_t open_raw_bytes = 0;  // Those of open_bytes that are not compressed.
  uint64_t journal_entries = 0;
  uint64_t journal_bytes = 0;
  uint64_t rows_sealed = 0;
  uint64_t columns_sealed = 0;
  uint64_t column_bytes_sealed = 0;  // Keys and values handed to RocksDB.
  uint64_t partitions = 0;
  uint64_t partitions_dropped = 0;
  uint64_t over_retention_bytes = 0;  // What the day written now holds beyond retention_bytes.
  uint64_t merges = 0;
  uint64_t frames_merged = 0;  // Small frames that became part of another.
  uint64_t merge_bytes = 0;    // Keys and values of merged frames, handed to RocksDB.
  // What the log had once made durable and Open() did not find (commit_mark.h): commits, messages
  // in them that were acknowledged, rows in these.
  uint64_t missing_commits = 0;
  uint64_t missing_messages = 0;
  uint64_t missing_rows = 0;
  // Written to disk since Open(): to the log (journal, columns, everything else), by writing
  // memtables out, by compacting.
  uint64_t log_bytes_written = 0;
  uint64_t flush_bytes_written = 0;
  uint64_t compaction_bytes_written = 0;
  uint64_t ballast_bytes = 0;  // Held back for a full disk now.
  uint64_t read_only = 0;      // 1: opened on a full disk, and not written to since.
  uint64_t disk_bytes = 0;     // Live SST files and WAL of all column families.
  uint64_t memtable_bytes = 0;
  uint64_t block_cache_bytes = 0;
  uint64_t column_cache_bytes = 0;   // Decoded columns and what is known of others.
  uint64_t column_cache_hits = 0;    // Look-ups that found their column,
  uint64_t column_cache_misses = 0;  // and those that did not.
  uint64_t pending_compaction_bytes = 0;
};

}  // namespace tacho::storage
