// Most figures of the page are counted elsewhere and only read here, at each scrape, so that what
// counts them knows nothing of Prometheus.
#include "server/http/families.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::http {
namespace {

using metrics::OneLine;
using prometheus::MetricFamily;
using Stats = storage::StoreStats;

struct Figure {
  metrics::Metric metric;
  uint64_t Stats::*value;
};

const Figure kFigures[] = {
    {"tacho_storage_samples_appended_total", &Stats::samples_appended},
    {"tacho_storage_rows_appended_total", &Stats::rows_appended},
    {"tacho_storage_batches_total", &Stats::batches_appended},
    {"tacho_storage_batches_repeated_total", &Stats::batches_repeated},
    {"tacho_storage_rows_sealed_total", &Stats::rows_sealed},
    {"tacho_storage_columns_sealed_total", &Stats::columns_sealed},
    {"tacho_storage_column_bytes_sealed_total", &Stats::column_bytes_sealed},
    {"tacho_storage_partitions_dropped_total", &Stats::partitions_dropped},
    {"tacho_storage_frames_merged_total", &Stats::frames_merged},
    {"tacho_storage_merge_bytes_total", &Stats::merge_bytes},
    {"tacho_rocksdb_log_bytes_written_total", &Stats::log_bytes_written},
    {"tacho_rocksdb_flush_bytes_written_total", &Stats::flush_bytes_written},
    {"tacho_rocksdb_compaction_bytes_written_total", &Stats::compaction_bytes_written},
    {"tacho_storage_column_cache_hits_total", &Stats::column_cache_hits},
    {"tacho_storage_column_cache_misses_total", &Stats::column_cache_misses},
    {"tacho_storage_missing_commits", &Stats::missing_commits},
    {"tacho_storage_missing_messages", &Stats::missing_messages},
    {"tacho_storage_missing_rows", &Stats::missing_rows},
    {"tacho_storage_queue_bytes", &Stats::queued_bytes},
    {"tacho_storage_series", &Stats::series},
    {"tacho_storage_jobs", &Stats::jobs},
    {"tacho_storage_series_in_memory", &Stats::series_in_memory},
    {"tacho_storage_jobs_in_memory", &Stats::jobs_in_memory},
    {"tacho_storage_layouts", &Stats::layouts},
    {"tacho_storage_text_bytes", &Stats::text_bytes_in_memory},
    {"tacho_storage_open_rows", &Stats::open_rows},
    {"tacho_storage_open_bytes", &Stats::open_bytes},
    {"tacho_storage_partitions", &Stats::partitions},
    {"tacho_storage_disk_bytes", &Stats::disk_bytes},
    {"tacho_storage_ballast_bytes", &Stats::ballast_bytes},
    {"tacho_storage_read_only", &Stats::read_only},
    {"tacho_storage_over_retention_bytes", &Stats::over_retention_bytes},
    {"tacho_storage_column_cache_bytes", &Stats::column_cache_bytes},
    {"tacho_journal_entries", &Stats::journal_entries},
    {"tacho_journal_bytes", &Stats::journal_bytes},
    {"tacho_rocksdb_memtable_bytes", &Stats::memtable_bytes},
    {"tacho_rocksdb_block_cache_bytes", &Stats::block_cache_bytes},
    {"tacho_rocksdb_pending_compaction_bytes", &Stats::pending_compaction_bytes},
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
  MetricFamily family = metrics::EmptyFamily("tacho_journal_sync_duration_seconds");
  family.metric.push_back(std::move(metric));
  return family;
}

// This many of each job are shown. A rule may give a smaller metric a lower limit, but hardly below
// so many larger ones.
constexpr size_t kLargest = 8;

struct Use {
  double used = 0;
  double limit = 0;
  // Below zero if a limit was lowered below what is in use.
  double Headroom() const { return limit == 0 ? 0 : 1 - used / limit; }
};

template <typename All, typename Used>
Use Nearest(const All& all, Used used, double limit_of_none) {
  Use nearest{0, limit_of_none};
  for (const auto& one : all) {
    const Use use{static_cast<double>(used(one)), static_cast<double>(one.bound)};
    if (use.Headroom() < nearest.Headroom()) nearest = use;
  }
  return nearest;
}

class LimitLines {
 public:
  void Add(storage::Limit limit, const Use& use) {
    Add(limit, use.limit, &limits_);
    Add(limit, use.used, &used_);
    Add(limit, use.Headroom(), &headroom_);
  }
  std::vector<MetricFamily> Take() {
    return {std::move(limits_), std::move(used_), std::move(headroom_)};
  }

 private:
  static void Add(storage::Limit limit, double value, MetricFamily* family) {
    metrics::AddLine({{"limit", std::string(storage::LimitKey(limit))}}, value, family);
  }

  MetricFamily limits_ = metrics::EmptyFamily("tacho_limit");
  MetricFamily used_ = metrics::EmptyFamily("tacho_limit_used");
  MetricFamily headroom_ = metrics::EmptyFamily("tacho_limit_headroom_ratio");
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Seconds since the epoch at which the machine was booted; 0 if unknown.
uint64_t BootTime(const std::string& proc) {
  std::istringstream stat(ReadFile(absl::StrCat(proc, "/stat")));
  for (std::string word; stat >> word;) {
    uint64_t seconds = 0;
    if (word == "btime" && stat >> seconds) return seconds;
  }
  return 0;
}

}  // namespace

std::vector<MetricFamily> StoreFamilies(const Stats& stats) {
  std::vector<MetricFamily> families;
  for (const Figure& figure : kFigures) {
    families.push_back(OneLine(figure.metric, static_cast<double>(stats.*figure.value)));
  }
  families.push_back(SyncLatency(stats));
  return families;
}

std::vector<MetricFamily> LimitFamilies(const storage::Store& store) {
  using storage::Limit;
  const auto limits = store.limits();
  const auto report = store.Cardinality("", kLargest);
  if (limits == nullptr || !report.ok()) return {};
  LimitLines families;
  for (const auto& total : report->totals) {
    families.Add(total.limit, {static_cast<double>(total.used), static_cast<double>(total.bound)});
  }
  const storage::SeriesLimits& outside = limits->OfRule(storage::LimitPolicy::kNoRule);
  const auto series = [](const auto& one) { return one.series; };
  families.Add(Limit::kJobSeries,
               Nearest(report->jobs, series, static_cast<double>(outside.series_per_job)));
  families.Add(Limit::kMetricSeries,
               Nearest(report->metrics, series, static_cast<double>(outside.series_per_metric)));
  families.Add(Limit::kLabelValues, Nearest(
                                        report->labels, [](const auto& one) { return one.values; },
                                        static_cast<double>(outside.values_per_label)));
  return families.Take();
}

std::vector<MetricFamily> HealthFamilies(const Readiness* readiness,
                                         const std::string& storage_path) {
  std::vector<MetricFamily> families;
  if (readiness != nullptr) {
    families.push_back(OneLine("tacho_ready", readiness->WhyNotReady().empty() ? 1 : 0));
    families.push_back(OneLine("tacho_storage_refusing", readiness->IsHeld() ? 1 : 0));
  }
  if (storage_path.empty()) return families;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(storage_path, error);
  if (error) return families;
  families.push_back(
      OneLine("tacho_storage_available_bytes", static_cast<double>(space.available)));
  return families;
}

std::vector<MetricFamily> PageFamilies(const std::string& url) {
  if (url.empty()) return {};
  MetricFamily page = metrics::EmptyFamily("tacho_page_info");
  metrics::AddLine({{"url", url}}, 1, &page);
  return {std::move(page)};
}

ProcessStat ParseProcessStat(absl::string_view stat) {
  // Numbered as in proc(5); the name is field 2, and what follows its last ')' begins at 3.
  constexpr size_t kFirst = 3, kUserTicks = 14, kSystemTicks = 15, kStart = 22, kResident = 24;
  ProcessStat parsed;
  const size_t name_end = stat.rfind(')');
  if (name_end == absl::string_view::npos) return parsed;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(stat.substr(name_end + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (fields.size() <= kResident - kFirst) return parsed;
  uint64_t system_ticks = 0;
  parsed.ok = absl::SimpleAtoi(fields[kUserTicks - kFirst], &parsed.cpu_ticks) &&
              absl::SimpleAtoi(fields[kSystemTicks - kFirst], &system_ticks) &&
              absl::SimpleAtoi(fields[kStart - kFirst], &parsed.start_ticks) &&
              absl::SimpleAtoi(fields[kResident - kFirst], &parsed.resident_pages);
  parsed.cpu_ticks += system_ticks;
  return parsed;
}

std::vector<MetricFamily> ProcessFamilies(const std::string& proc) {
  std::vector<MetricFamily> families;
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const ProcessStat stat = ParseProcessStat(ReadFile(absl::StrCat(proc, "/self/stat")));
  if (stat.ok) {
    families.push_back(OneLine("process_cpu_seconds_total",
                               static_cast<double>(stat.cpu_ticks) / ticks_per_second));
    families.push_back(OneLine(
        "process_resident_memory_bytes",
        static_cast<double>(stat.resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE))));
    if (const uint64_t boot = BootTime(proc); boot > 0) {
      families.push_back(OneLine(
          "process_start_time_seconds",
          static_cast<double>(boot) + static_cast<double>(stat.start_ticks) / ticks_per_second));
    }
  }
  std::error_code error;
  std::filesystem::directory_iterator fds(absl::StrCat(proc, "/self/fd"), error);
  if (!error) {
    families.push_back(
        OneLine("process_open_fds", static_cast<double>(std::distance(begin(fds), end(fds)))));
  }
  return families;
}

}  // namespace tacho::server::http
