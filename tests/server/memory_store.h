// A store on a file system in memory, for tests of what is built on storage::Store: series, samples
// and events are written in one call each, and are durable when it returns.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/store.h"
#include "tests/server/durable_append.h"
#include "tests/support/faulty_env.h"

namespace tacho::server {

struct TestSample {
  int64_t time_ns = 0;
  int64_t step = storage::kNoStep;
  uint32_t attempt = 0;
  double value = 0;
};

inline storage::Metric MetricNamed(std::string name,
                                   storage::MetricType type = storage::MetricType::kGauge,
                                   std::string unit = "") {
  return {std::move(name), type, std::move(unit), ""};
}

// Has no threads but the committer's. One thread may write.
class MemoryStore {
 public:
  // Frames have `frame_rows` samples each; that is what is read at once.
  explicit MemoryStore(uint32_t frame_rows = 3) {
    options_.path = "/store";
    options_.env = &env;
    options_.retention = absl::ZeroDuration();
    options_.background = false;
    options_.commit_spacing = absl::ZeroDuration();
    options_.seal_rows = frame_rows;
    options_.column_cache_bytes = 0;
    options_.now = [this] {
      absl::MutexLock lock(&mutex_);
      return now_;
    };
    Reopen();
  }
  ~MemoryStore() {
    const bool damaged = env.DamageReads(false);
    env.OnRead(nullptr);
    // RocksDB may have read the damage as well, and then refuses to write any more.
    const absl::Status closed = store_->Close();
    EXPECT_TRUE(closed.ok() || damaged) << closed;
  }

  storage::FaultyEnv env;  // Damages and delays reads after Reopen().

  storage::Store* get() const { return store_.get(); }
  storage::Store* operator->() const { return get(); }
  operator storage::Store&() const { return *get(); }  // NOLINT(google-explicit-constructor)

  // Closes the store and opens it again: everything is in tables then, and nothing in a cache.
  void Reopen() {
    if (store_ != nullptr) {
      EXPECT_TRUE(store_->Close().ok());
    }
    store_.reset();
    auto store = storage::Store::Open(options_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  // Adds a series, or finds it.
  storage::SeriesPtr AddSeries(std::string job, storage::Metric metric,
                               std::optional<uint32_t> task, std::string host,
                               storage::Labels labels = {}) {
    storage::LayoutDefinition definition;
    definition.source = {std::move(job), task, 0, std::move(host)};
    definition.has_steps = true;
    definition.series.push_back({std::move(metric), std::move(labels)});
    const storage::LayoutPtr layout = Register(definition);
    return {layout, layout->series.front()};
  }
  // In any order, which is kept within each attempt.
  void AddSamples(const storage::SeriesPtr& series, const std::vector<TestSample>& samples) {
    struct Rows {
      std::vector<int64_t> times, steps;
      std::vector<double> values;
    };
    std::map<uint32_t, Rows> attempts;
    for (const TestSample& sample : samples) {
      Rows& rows = attempts[sample.attempt];
      rows.times.push_back(sample.time_ns);
      rows.steps.push_back(sample.step);
      rows.values.push_back(sample.value);
    }
    // Many samples become larger frames: each is a write of its own.
    const size_t most = std::max<size_t>(options_.seal_rows, samples.size() / 100);
    for (const auto& [attempt, rows] : attempts) {
      const storage::LayoutPtr layout = Register(DefinitionOf({series}, attempt, true));
      for (size_t begin = 0; begin < rows.times.size(); begin += most) {
        const auto part = [&](const auto& all) {
          const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
          const size_t count = std::min(most, all.size() - begin);
          return std::decay_t<decltype(all)>(first, first + static_cast<std::ptrdiff_t>(count));
        };
        Append(layout, part(rows.times), part(rows.steps), part(rows.values));
        EXPECT_TRUE(store_->Seal().ok());
      }
    }
  }
  void AddEvent(const storage::Event& event) {
    AppendDurably(
        [&](storage::AppendDone done) { store_->AppendEvent({}, event, std::move(done)); });
  }
  // A row that VisitLatestRows() shows.
  void AddLatestRow(const std::vector<storage::SeriesPtr>& series, uint32_t attempt,
                    int64_t time_ns, int64_t step, absl::Time received,
                    const std::vector<double>& values) {
    SetNow(received);
    const bool has_steps = step != storage::kNoStep;
    std::vector<int64_t> steps(has_steps ? 1 : 0, step);
    Append(Register(DefinitionOf(series, attempt, has_steps)), {time_ns}, steps, values);
  }
  // The job leaves memory, and its latest rows with it.
  void RemoveLatestRows(const std::string& job) {
    EXPECT_TRUE(store_->Seal().ok());
    const absl::Time now = options_.now();
    SetNow(now + 2 * options_.job_idle);
    for (const storage::JobSummary& other : store_->Jobs()) {
      if (other.name == job) continue;
      EXPECT_TRUE(store_->FindSeries({.job = other.name}, 100'000).ok());
    }
    EXPECT_TRUE(store_->UnloadIdleJobs().ok());
    SetNow(now);
  }

 private:
  void SetNow(absl::Time now) {
    absl::MutexLock lock(&mutex_);
    now_ = now;
  }
  static storage::LayoutDefinition DefinitionOf(const std::vector<storage::SeriesPtr>& series,
                                                uint32_t attempt, bool has_steps) {
    storage::LayoutDefinition definition;
    const storage::SeriesSource& source = *series.front()->source;
    definition.source = {source.job, source.task, attempt, source.host};
    definition.has_steps = has_steps;
    for (const storage::SeriesPtr& one : series) {
      const auto& labels = one->labels->labels;
      definition.series.push_back({*one->metric, storage::Labels(labels.begin(), labels.end())});
    }
    return definition;
  }
  storage::LayoutPtr Register(const storage::LayoutDefinition& definition) {
    auto registered = store_->RegisterLayout(definition);
    EXPECT_TRUE(registered.ok()) << registered.status();
    return registered->layout;
  }
  void Append(const storage::LayoutPtr& layout, const std::vector<int64_t>& times,
              const std::vector<int64_t>& steps, const std::vector<double>& values) {
    AppendDurably([&](storage::AppendDone done) {
      store_->AppendRows({}, layout, {times, steps, values}, std::move(done));
    });
  }

  storage::StoreOptions options_;
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1'000'000);
  std::unique_ptr<storage::Store> store_;
};

}  // namespace tacho::server
