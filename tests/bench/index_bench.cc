// What the series index costs, apart from everything else: a fleet's series registered, held, found
// and read again.
//
//   index_bench DIRECTORY [hosts] [hosts a job]
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/db/database.h"
#include "storage/index/series_index.h"

namespace tacho::bench {
namespace {

using storage::Matcher;
using storage::SeriesIndex;

constexpr uint32_t kMetrics = 40;  // The host's; each of its eight chips has six: 88 in all.
constexpr uint32_t kChips = 8;
constexpr uint32_t kChipMetrics = 6;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double ResidentBytes() {
  malloc_trim(0);
  std::ifstream status("/proc/self/statm");
  double pages = 0;
  status >> pages >> pages;
  return pages * 4096;
}

storage::LayoutDefinition DefinitionOf(uint32_t host, uint32_t hosts_a_job) {
  storage::LayoutDefinition definition;
  definition.source = {.job = absl::StrCat("training-run-", host / hosts_a_job),
                       .task = host % hosts_a_job,
                       .host = absl::StrCat("tpu-host-", host, ".cluster.example")};
  definition.has_steps = true;
  for (uint32_t metric = 0; metric < kMetrics; ++metric) {
    definition.series.push_back({{absl::StrCat("host.metric_", metric), {}, "1", "A metric."}, {}});
  }
  for (uint32_t metric = 0; metric < kChipMetrics; ++metric) {
    for (uint32_t chip = 0; chip < kChips; ++chip) {
      definition.series.push_back({{absl::StrCat("chip.metric_", metric), {}, "1", "A metric."},
                                   {{"chip", absl::StrCat(chip)}}});
    }
  }
  for (auto& series : definition.series) series.metric.type = storage::MetricType::kGauge;
  return definition;
}

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

// Median of five.
double Milliseconds(const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const double begin = CpuSeconds();
    work();
    seconds.push_back(CpuSeconds() - begin);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[2] * 1e3;
}

void FindAll(SeriesIndex* index, const std::string& job) {
  struct Query {
    const char* name;
    std::vector<std::string> metrics;
    std::vector<Matcher> matchers;
  };
  const auto matcher = [](const char* label, Matcher::Op op, const char* value) {
    return *Matcher::Create(label, op, value);
  };
  using Op = Matcher::Op;
  const Query queries[] = {
      {"one metric", {"host.metric_7"}, {}},
      {"task =", {}, {matcher("task", Op::kEqual, "17")}},
      {"metric, task =", {"host.metric_7"}, {matcher("task", Op::kEqual, "17")}},
      {"metric, chip !=", {"chip.metric_3"}, {matcher("chip", Op::kNotEqual, "3")}},
      {"host =~", {}, {matcher("host", Op::kMatches, "tpu-host-1.7[.].*")}},
      {"chip =~ (none)", {}, {matcher("chip", Op::kMatches, "x.*")}},
      {"chip =", {}, {matcher("chip", Op::kEqual, "3")}},
  };
  for (const Query& query : queries) {
    size_t found = 0;
    const double ms = Milliseconds([&] {
      auto series = index->Find({job, query.metrics, query.matchers}, SIZE_MAX);
      Check(series.status());
      found = series->size();
    });
    std::printf("find %-16s %8.2f ms CPU  %zu series\n", query.name, ms, found);
  }
}

int Run(const std::string& path, uint32_t hosts, uint32_t hosts_a_job) {
  storage::DatabaseOptions options;
  options.path = path;
  storage::LimitPolicy::Options unlimited;
  unlimited.totals.series = UINT64_MAX;
  unlimited.series.series_per_job = UINT64_MAX;
  unlimited.series.series_per_metric = UINT64_MAX;
  const SeriesIndex::Options limits = {.limits = *storage::LimitPolicy::Create(unlimited),
                                       .now = absl::Now};
  const double series = static_cast<double>(hosts) * (kMetrics + kChips * kChipMetrics);
  {
    auto database = storage::Database::Open(options);
    Check(database.status());
    SeriesIndex index((*database)->db.get(), (*database)->index, limits);
    Check(index.Load());
    const double resident = ResidentBytes();
    double begin = CpuSeconds();
    for (uint32_t host = 0; host < hosts; ++host) {
      Check(index.Register(DefinitionOf(host, hosts_a_job)).status());
    }
    const double cpu = CpuSeconds() - begin;
    std::printf("register        %8.2f s CPU  %.0f series, %.0f a job\n", cpu, series,
                static_cast<double>(hosts_a_job) * 88);
    std::printf("resident        %8.1f B a series, RocksDB's memtable included\n",
                (ResidentBytes() - resident) / series);
    begin = CpuSeconds();
    for (uint32_t host = 0; host < hosts; ++host) {
      Check(index.Register(DefinitionOf(host, hosts_a_job)).status());
    }
    std::printf("register again  %8.2f s CPU\n", CpuSeconds() - begin);
    FindAll(&index, "training-run-0");
    Check((*database)->Settle());
    storage::StoreStats stats;
    (*database)->FillStats(&stats);
    std::printf("disk            %8.1f B a series\n",
                static_cast<double>(stats.disk_bytes) / series);
  }
  auto database = storage::Database::Open(options);
  Check(database.status());
  const double resident = ResidentBytes();
  const double begin = CpuSeconds();
  SeriesIndex index((*database)->db.get(), (*database)->index, limits);
  Check(index.Load());
  std::printf("load jobs       %8.3f s CPU\n", CpuSeconds() - begin);
  for (const auto& job : index.Jobs()) Check(index.Use(job.id));
  std::printf("load all        %8.3f s CPU\n", CpuSeconds() - begin);
  std::printf("resident        %8.1f B a series, after loading\n",
              (ResidentBytes() - resident) / series);
  const auto unused = index.UnusedSince(absl::InfiniteFuture());
  index.Unload(unused, absl::InfiniteFuture());
  std::printf("resident        %8.1f B a series, all jobs unloaded\n",
              (ResidentBytes() - resident) / series);
  return 0;
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: index_bench DIRECTORY [hosts] [hosts a job]\n");
    return 2;
  }
  const uint32_t hosts = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 11'364;
  const uint32_t hosts_a_job = argc > 3 ? static_cast<uint32_t>(std::atoi(argv[3])) : hosts;
  return tacho::bench::Run(argv[1], hosts, hosts_a_job);
}
