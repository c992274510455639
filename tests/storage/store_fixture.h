// A store on an in-memory file system, driven without threads of its own but the committer.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rocksdb/env.h"
#include "storage/store.h"
#include "tests/support/next_block.h"

namespace tacho::storage {

class StoreFixture : public testing::Test {
 protected:
  StoreFixture() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    options_.path = "/store";
    options_.env = env_.get();
    options_.retention = absl::ZeroDuration();
    options_.background = false;
    options_.commit_spacing = absl::ZeroDuration();
    options_.now = [this] { return now_; };
    Reopen();
  }

  // Closes the store, which seals it, and opens it again.
  void Reopen() {
    if (store_ != nullptr) {
      EXPECT_TRUE(store_->Close().ok());
    }
    store_.reset();
    auto store = Store::Open(options_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    EXPECT_EQ(store_->Stats().missing_commits, 0u);
  }

  static LayoutDefinition Definition(std::string job, std::vector<std::string> metrics,
                                     uint32_t task = 0, uint32_t attempt = 0) {
    LayoutDefinition definition;
    definition.source = {std::move(job), task, attempt, "host-" + std::to_string(task)};
    definition.has_steps = true;
    for (std::string& metric : metrics) {
      definition.series.push_back({{std::move(metric), MetricType::kGauge, "1", "help"}, {}});
    }
    return definition;
  }

  LayoutPtr Register(const LayoutDefinition& definition) {
    auto registration = store_->RegisterLayout(definition);
    EXPECT_TRUE(registration.ok()) << registration.status();
    return registration.ok() ? registration->layout : nullptr;
  }

  // Calls one of the store's Append functions and waits until it is done.
  static absl::Status Wait(const std::function<void(AppendDone)>& append) {
    std::promise<absl::Status> result;
    append([&](const absl::Status& status) { result.set_value(status); });
    return result.get_future().get();
  }

  absl::Status Append(const LayoutPtr& layout, std::vector<int64_t> times,
                      std::vector<int64_t> steps, std::vector<double> values,
                      const Origin& origin = {}) {
    return Wait([&](AppendDone done) {
      store_->AppendRows(origin, layout, {times, steps, values}, std::move(done));
    });
  }

  SeriesPtr Find(const std::string& job, const std::string& metric) {
    const auto series = store_->FindSeries({.job = job, .metrics = {metric}}, 10);
    EXPECT_TRUE(series.ok()) << series.status();
    return series.ok() && !series->empty() ? series->front() : nullptr;
  }

  SampleBlock ReadAll(const SeriesPtr& series, const ReadOptions& options = {}) {
    SampleBlock all;
    if (series == nullptr) return all;
    const auto reader = store_->Read(series, options);
    SampleBlock block;
    for (;;) {
      const auto more = NextBlock(reader, &block);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) return all;
      all.times.insert(all.times.end(), block.times.begin(), block.times.end());
      all.steps.insert(all.steps.end(), block.steps.begin(), block.steps.end());
      all.attempts.insert(all.attempts.end(), block.attempts.begin(), block.attempts.end());
      all.values.insert(all.values.end(), block.values.begin(), block.values.end());
    }
  }

  // Everything a reader may see of the metrics "loss" and "rate" of "job", bit for bit.
  std::string Everything() {
    std::string all;
    for (const char* metric : {"loss", "rate"}) {
      const auto series = store_->FindSeries({.job = "job", .metrics = {metric}}, 100);
      EXPECT_TRUE(series.ok());
      for (const SeriesPtr& one : *series) {
        const SampleBlock block = ReadAll(one);
        const auto append = [&](const auto& column) {
          all.append(reinterpret_cast<const char*>(column.data()),
                     column.size() * sizeof(column[0]));
        };
        append(block.times);
        append(block.steps);
        append(block.attempts);
        append(block.values);
      }
    }
    return all;
  }

  std::unique_ptr<rocksdb::Env> env_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  StoreOptions options_;
  std::unique_ptr<Store> store_;
};

}  // namespace tacho::storage
