#include "server/http/store_metrics.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "server/http/families.h"

namespace tacho::server::http {
namespace {

using prometheus::MetricFamily;

struct Figure {
  const char* name;
  const char* help;
  uint64_t storage::StoreStats::*value;
};

using Stats = storage::StoreStats;

constexpr Figure kCounters[] = {
    {"tacho_storage_samples_appended_total", "Values made durable, stale markers left out.",
     &Stats::samples_appended},
    {"tacho_storage_rows_appended_total", "Rows made durable.", &Stats::rows_appended},
    {"tacho_storage_batches_total", "Batches made durable.", &Stats::batches_appended},
    {"tacho_storage_batches_repeated_total", "Batches dropped because they were durable already.",
     &Stats::batches_repeated},
    {"tacho_storage_rows_sealed_total", "Rows compressed into columns.", &Stats::rows_sealed},
    {"tacho_storage_columns_sealed_total", "Columns written.", &Stats::columns_sealed},
    {"tacho_storage_column_bytes_sealed_total", "Bytes of the columns written, keys included.",
     &Stats::column_bytes_sealed},
    {"tacho_storage_partitions_dropped_total", "Days dropped by age or for their bytes.",
     &Stats::partitions_dropped},
    {"tacho_storage_frames_merged_total", "Small frames that became part of a longer one.",
     &Stats::frames_merged},
    {"tacho_storage_merge_bytes_total", "Bytes of merged columns written, keys included.",
     &Stats::merge_bytes},
    {"tacho_rocksdb_log_bytes_written_total", "Bytes written to RocksDB's log.",
     &Stats::log_bytes_written},
    {"tacho_rocksdb_flush_bytes_written_total", "Bytes of tables written out of memory.",
     &Stats::flush_bytes_written},
    {"tacho_rocksdb_compaction_bytes_written_total", "Bytes of tables written by compactions.",
     &Stats::compaction_bytes_written},
    {"tacho_storage_column_cache_hits_total", "Look-ups of decoded columns that found them.",
     &Stats::column_cache_hits},
    {"tacho_storage_column_cache_misses_total", "Look-ups of decoded columns that did not.",
     &Stats::column_cache_misses},
};

constexpr Figure kGauges[] = {
    {"tacho_storage_queue_bytes", "Batches that wait for the disk.", &Stats::queued_bytes},
    {"tacho_storage_series", "Series in the index.", &Stats::series},
    {"tacho_storage_jobs", "Jobs in the index.", &Stats::jobs},
    {"tacho_storage_series_in_memory", "Series of jobs in use.", &Stats::series_in_memory},
    {"tacho_storage_jobs_in_memory", "Jobs in use.", &Stats::jobs_in_memory},
    {"tacho_storage_layouts", "Layouts of jobs in use.", &Stats::layouts},
    {"tacho_storage_text_bytes", "Names and labels of jobs in use.", &Stats::text_bytes_in_memory},
    {"tacho_storage_open_rows", "Rows in memory that are not yet sealed.", &Stats::open_rows},
    {"tacho_storage_open_bytes", "Memory of the rows that are not yet sealed.", &Stats::open_bytes},
    {"tacho_storage_partitions", "Days on disk.", &Stats::partitions},
    {"tacho_storage_disk_bytes", "Files of the database: tables and write-ahead log.",
     &Stats::disk_bytes},
    {"tacho_storage_over_retention_bytes",
     "Bytes beyond storage.retention_bytes that are kept because they are today's.",
     &Stats::over_retention_bytes},
    {"tacho_storage_column_cache_bytes", "Columns that queries have decoded, kept for the next.",
     &Stats::column_cache_bytes},
    {"tacho_journal_entries", "Messages in the journal.", &Stats::journal_entries},
    {"tacho_journal_bytes", "Bytes of the messages in the journal.", &Stats::journal_bytes},
    {"tacho_rocksdb_memtable_bytes", "RocksDB's memtables.", &Stats::memtable_bytes},
    {"tacho_rocksdb_block_cache_bytes", "RocksDB's block cache in use.", &Stats::block_cache_bytes},
    {"tacho_rocksdb_pending_compaction_bytes", "What RocksDB estimates it has yet to compact.",
     &Stats::pending_compaction_bytes},
};

// The last bucket of the store holds everything longer, so its bound is infinity.
MetricFamily SyncLatency(const Stats& stats) {
  prometheus::ClientMetric metric;
  uint64_t cumulative = 0;
  const size_t count = std::size(stats.commit_latency_us_buckets);
  for (size_t i = 0; i < count; ++i) {
    cumulative += stats.commit_latency_us_buckets[i];
    const double bound = i + 1 == count ? std::numeric_limits<double>::infinity()
                                        : std::ldexp(1e-6, static_cast<int>(i));
    metric.histogram.bucket.push_back({cumulative, bound});
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum = stats.commit_seconds;
  return {"tacho_journal_sync_duration_seconds",
          "Time of one journal write with its sync to disk, which makes many batches durable.",
          prometheus::MetricType::Histogram,
          {std::move(metric)}};
}

}  // namespace

std::vector<MetricFamily> StoreFamilies(const Stats& stats) {
  std::vector<MetricFamily> families;
  for (const Figure& figure : kCounters) {
    families.push_back(
        CounterFamily(figure.name, figure.help, static_cast<double>(stats.*figure.value)));
  }
  for (const Figure& figure : kGauges) {
    families.push_back(
        GaugeFamily(figure.name, figure.help, static_cast<double>(stats.*figure.value)));
  }
  families.push_back(SyncLatency(stats));
  return families;
}

}  // namespace tacho::server::http
