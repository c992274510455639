// Jobs of random data in the real store, and the same data as plain lists for naive references.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "proto/base/stale_marker.h"
#include "server/query/read/sample.h"
#include "storage/store.h"
#include "tests/server/durable_append.h"

namespace tacho::server::query {

inline constexpr int64_t kTestSecond = 1'000'000'000;
inline constexpr int64_t kTestBase = 1'700'000'000 * kTestSecond;

// (metric, task), in the order of the store; each task has one host.
using TestSeries = std::pair<std::string, uint32_t>;
// By (time, attempt, step), which is the order of reading; the newest write counts.
using TestSamples = std::map<std::tuple<int64_t, uint32_t, int64_t>, double>;
using TestJob = std::map<TestSeries, TestSamples>;

class QueryStoreFixture : public testing::Test {
 protected:
  explicit QueryStoreFixture(uint32_t seed = 1)
      : random_(seed), env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    storage::StoreOptions options;
    options.path = "/store";
    options.env = env_.get();
    options.background = false;
    options.seal_rows = 64;
    options.commit_spacing = absl::ZeroDuration();
    options.retention = absl::ZeroDuration();
    auto store = storage::Store::Open(options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  ~QueryStoreFixture() override { EXPECT_TRUE(store_->Close().ok()); }

  int Below(int end) { return static_cast<int>(random_() % static_cast<uint32_t>(end)); }

  storage::LayoutPtr Register(const std::string& job, uint32_t task, uint32_t attempt,
                              const std::vector<std::string>& metrics) {
    storage::LayoutDefinition definition;
    definition.source = {job, task, attempt, "host-" + std::to_string(task)};
    definition.has_steps = true;
    for (const std::string& metric : metrics) {
      definition.series.push_back({{metric, storage::MetricType::kGauge, "1", "Help."}, {}});
    }
    auto registered = store_->RegisterLayout(definition);
    EXPECT_TRUE(registered.ok()) << registered.status();
    return registered->layout;
  }

  // Row by row; a stale marker is no value. Waits until they are durable.
  void Append(const storage::LayoutPtr& layout, const std::vector<int64_t>& times,
              const std::vector<int64_t>& steps, const std::vector<double>& values) {
    AppendDurably([&](storage::AppendDone done) {
      store_->AppendRows({}, layout, {times, steps, values}, std::move(done));
    });
    const storage::SeriesSource& source = *layout->series.front()->source;
    for (size_t row = 0; row < times.size(); ++row) {
      bool any = false;
      for (size_t column = 0; column < layout->series.size(); ++column) {
        const double value = values[row * layout->series.size() + column];
        if (IsStaleMarker(value)) continue;
        any = true;
        jobs_[source.job][{layout->series[column]->metric->name, *source.task}]
             [{times[row], layout->attempt, steps[row]}] = value;
      }
      if (any && steps[row] != storage::kNoStep) {
        auto& [first, last] =
            steps_[source.job].try_emplace(layout->attempt, steps[row], steps[row]).first->second;
        first = std::min(first, steps[row]);
        last = std::max(last, steps[row]);
      }
    }
  }

  double RandomValue(int non_finite_one_in) {
    if (non_finite_one_in > 0 && Below(non_finite_one_in) == 0) {
      const double odd[] = {std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity()};
      return odd[Below(3)];
    }
    return std::ldexp(static_cast<double>(Below(1 << 20)) - (1 << 19), Below(20) - 20);
  }

  struct Shape {
    uint32_t tasks = 3;
    uint32_t attempts = 3;
    int rows = 200;  // For each task and attempt.
    int64_t step_stride = 1;
    int64_t begin_ns = kTestBase;
    int non_finite_one_in = 30;  // 0: none.
    std::vector<std::string> metrics = {"loss", "lr"};
  };
  // Each attempt begins somewhere in the steps of the one before; rows are left out and values are
  // missing; some rows have no step; some are sealed.
  void MakeJob(const std::string& job, const Shape& shape) {
    int64_t time = shape.begin_ns;
    int64_t first_step = 0;
    for (uint32_t attempt = 0; attempt < shape.attempts; ++attempt) {
      for (uint32_t task = 0; task < shape.tasks; ++task) {
        const auto layout = Register(job, task, attempt, shape.metrics);
        std::vector<int64_t> times, steps;
        std::vector<double> values;
        for (int row = 0; row < shape.rows; ++row) {
          if (Below(10) == 0) continue;
          times.push_back(time + row * kTestSecond + Below(1000));
          steps.push_back(Below(50) == 0 ? storage::kNoStep : first_step + row * shape.step_stride);
          for (size_t i = 0; i < shape.metrics.size(); ++i) {
            values.push_back(Below(20) == 0 ? StaleMarker() : RandomValue(shape.non_finite_one_in));
          }
        }
        Append(layout, times, steps, values);
      }
      time += (shape.rows + 50) * kTestSecond;
      first_step += (shape.rows / 2 + Below(shape.rows)) * shape.step_stride;
      if (Below(2) == 0) {
        EXPECT_TRUE(store_->Seal().ok());
      }
    }
  }

  // As query.proto defines ATTEMPTS_EFFECTIVE.
  bool IsSuperseded(const std::string& job, uint32_t attempt, int64_t step) const {
    if (step == storage::kNoStep) return false;
    for (const auto& [later, range] : steps_.at(job)) {
      if (later > attempt && range.first <= step && step <= range.second) return true;
    }
    return false;
  }

  std::mt19937 random_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<storage::Store> store_;
  std::map<std::string, TestJob> jobs_;  // What was appended.
  // The lowest and the highest step of each job and attempt.
  std::map<std::string, std::map<uint32_t, std::pair<int64_t, int64_t>>> steps_;
};

}  // namespace tacho::server::query
