// What the aggregates of a scrape of /metrics cost, and what those who append notice of it: a store
// with many jobs whose rows keep coming, and a page that is asked for again and again.
//
// Prints the time and the CPU of a scrape, by step, and how long appends took to become durable in
// a quarter of the time without scrapes, and in the rest with one after the other.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "proto/base/quantile.h"
#include "server/aggregate/aggregator.h"
#include "server/http/content.h"
#include "storage/store.h"
#include "tests/bench/bench_flags.h"

namespace tacho::bench {
namespace {

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Plan {
  std::string path;
  int64_t jobs = 0, tasks = 0, metrics = 0, chips = 0, max_series = 0;
  absl::Duration period, duration;
};

std::vector<storage::LayoutPtr> Register(const Plan& plan, storage::Store* store) {
  std::vector<storage::LayoutPtr> layouts;
  const auto add = [&](storage::LayoutDefinition definition) {
    auto registered = store->RegisterLayout(definition);
    if (!registered.ok()) {
      std::fprintf(stderr, "%s\n", registered.status().ToString().c_str());
      std::exit(1);
    }
    layouts.push_back(registered->layout);
  };
  for (int64_t job = 0; job < plan.jobs; ++job) {
    for (int64_t task = 0; task < plan.tasks; ++task) {
      storage::LayoutDefinition own;
      own.source = {absl::StrCat("training-job-", job), static_cast<uint32_t>(task), 0,
                    absl::StrCat("host-", job * plan.tasks + task)};
      own.has_steps = true;
      for (int64_t metric = 0; metric < plan.metrics; ++metric) {
        const auto type =
            metric % 10 == 9 ? storage::MetricType::kCounter : storage::MetricType::kGauge;
        const char* const end = metric % 10 == 9 ? "_total" : "";
        own.series.push_back({{absl::StrCat("metric_", metric, end), type, "s", "A metric."}, {}});
      }
      add(std::move(own));
    }
  }
  for (int64_t host = 0; plan.chips > 0 && host < plan.jobs * plan.tasks; ++host) {
    storage::LayoutDefinition chips;
    chips.source = {"hosts", std::nullopt, 0, absl::StrCat("host-", host)};
    for (int64_t chip = 0; chip < plan.chips; ++chip) {
      for (int64_t metric = 0; metric < 16; ++metric) {
        const auto type = metric > 10 ? storage::MetricType::kCounter : storage::MetricType::kGauge;
        const char* const end = metric > 10 ? "_total" : "";
        chips.series.push_back({{absl::StrCat("chip_metric_", metric, end), type, "1", "A chip's."},
                                {{"chip", absl::StrCat(chip)}}});
      }
    }
    add(std::move(chips));
  }
  return layouts;
}

// Appends a row of every layout, one period long, over and over.
class Writer {
 public:
  Writer(storage::Store* store, std::vector<storage::LayoutPtr> layouts, absl::Duration period)
      : store_(store), layouts_(std::move(layouts)), period_(period) {}

  void AppendAll() {
    for (const auto& layout : layouts_) Append(layout);
    while (open_ > 0) absl::SleepFor(absl::Milliseconds(1));
    absl::MutexLock lock(&mutex_);
    latencies_.clear();
  }
  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  void Stop() {
    stop_ = true;
    thread_.join();
    while (open_ > 0) absl::SleepFor(absl::Milliseconds(1));
  }
  std::vector<double> TakeLatencies() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(latencies_, {});
  }

 private:
  void Run() {
    const absl::Duration gap = period_ / static_cast<int64_t>(layouts_.size());
    absl::Time next = absl::Now();
    for (size_t i = 0; !stop_; ++i) {
      Append(layouts_[i % layouts_.size()]);
      next += gap;
      if (next > absl::Now()) absl::SleepFor(next - absl::Now());
    }
  }
  void Append(const storage::LayoutPtr& layout) {
    const int64_t time_ns = absl::ToUnixNanos(absl::Now());
    const int64_t step = ++step_;
    values_.resize(layout->series.size());
    for (double& value : values_)
      value = static_cast<double>((state_ = state_ * 6364136223846793005 + 1) >> 40);
    ++open_;
    const std::span<const int64_t> steps(&step, layout->has_steps ? 1 : 0);
    store_->AppendRows(
        {}, layout, {{&time_ns, 1}, steps, values_}, [this, time_ns](const absl::Status& status) {
          const double ms = static_cast<double>(absl::ToUnixNanos(absl::Now()) - time_ns) * 1e-6;
          if (!status.ok()) ++refused_;
          absl::MutexLock lock(&mutex_);
          latencies_.push_back(ms);
          --open_;
        });
    if (open_ > 2000) absl::SleepFor(absl::Milliseconds(5));
  }

  storage::Store* const store_;
  const std::vector<storage::LayoutPtr> layouts_;
  const absl::Duration period_;
  std::vector<double> values_;
  uint64_t state_ = 1;
  int64_t step_ = 0;
  std::atomic<int64_t> open_ = 0, refused_ = 0;
  std::atomic<bool> stop_ = false;
  absl::Mutex mutex_;
  std::vector<double> latencies_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

void Print(const char* what, const std::vector<double>& ms) {
  std::printf("%-34s n %6zu  p50 %8.2f  p90 %8.2f  p99 %8.2f  max %8.2f ms\n", what, ms.size(),
              Quantile(ms, 0.5), Quantile(ms, 0.9), Quantile(ms, 0.99), Quantile(ms, 1));
}

void Run(const Plan& plan) {
  storage::StoreOptions options;
  options.path = plan.path;
  options.retention = absl::ZeroDuration();
  auto store = storage::Store::Open(options);
  if (!store.ok()) {
    std::fprintf(stderr, "%s\n", store.status().ToString().c_str());
    std::exit(1);
  }
  Writer writer(store->get(), Register(plan, store->get()), plan.period);
  config::v1::Collector::Metrics config;
  config.set_built_in_rules(true);
  server::aggregate::Aggregator aggregator(store->get(),
                                           *server::aggregate::MakeAggregateRules(config));
  const auto scrape = [&] {
    std::string page;
    aggregator.Scrape(
        {absl::Now(), absl::Minutes(5), static_cast<size_t>(plan.max_series)},
        [](absl::string_view) { return true; }, &page);
    return page;
  };
  writer.AppendAll();
  std::printf("series %llu\n", static_cast<unsigned long long>((*store)->Stats().series));
  absl::Time began = absl::Now();
  size_t bytes = scrape().size();
  std::printf("first scrape %.0f ms, %zu bytes\n", absl::ToDoubleMilliseconds(absl::Now() - began),
              bytes);
  writer.Start();
  absl::SleepFor(plan.duration / 4);
  const std::vector<double> quiet = writer.TakeLatencies();
  std::vector<double> wall, cpu, gzip;
  const absl::Time end = absl::Now() + plan.duration * 3 / 4;
  while (absl::Now() < end) {
    began = absl::Now();
    const double cpu_began = CpuSeconds();
    const std::string text = scrape();
    wall.push_back(absl::ToDoubleMilliseconds(absl::Now() - began));
    cpu.push_back((CpuSeconds() - cpu_began) * 1e3);
    const double gzip_began = CpuSeconds();
    bytes = server::http::Gzip(text).value_or("").size();
    gzip.push_back((CpuSeconds() - gzip_began) * 1e3);
  }
  const std::vector<double> scraped = writer.TakeLatencies();
  writer.Stop();
  Print("scrape, time", wall);
  Print("scrape, CPU of the first thread", cpu);
  Print("gzip, CPU of the first thread", gzip);
  std::printf("packed page %zu bytes\n", bytes);
  Print("append to durable, no scrapes", quiet);
  Print("append to durable, scrapes", scraped);
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // As the collector does.
  std::map<std::string, std::string> flags = {{"path", "/tmp/tacho_scrape_bench"},
                                              {"jobs", "500"},
                                              {"tasks", "20"},
                                              {"metrics", "100"},
                                              {"chips", "0"},
                                              {"max_series", "100000"},
                                              {"period_s", "10"},
                                              {"seconds", "40"}};
  tacho::bench::ParseFlags(argc, argv, &flags);
  tacho::bench::Plan plan;
  plan.path = flags["path"];
  plan.jobs = tacho::bench::NumberFlag(flags, "jobs");
  plan.tasks = tacho::bench::NumberFlag(flags, "tasks");
  plan.metrics = tacho::bench::NumberFlag(flags, "metrics");
  plan.chips = tacho::bench::NumberFlag(flags, "chips");
  plan.max_series = tacho::bench::NumberFlag(flags, "max_series");
  plan.period = absl::Seconds(tacho::bench::NumberFlag(flags, "period_s"));
  plan.duration = absl::Seconds(tacho::bench::NumberFlag(flags, "seconds"));
  tacho::bench::Run(plan);
}
