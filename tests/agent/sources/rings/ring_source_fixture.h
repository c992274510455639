// A directory of rings, the source that reads them, and a sink for what it hands on.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "agent/sources/rings/ring_source.h"
#include "client/recorder.h"
#include "tests/agent/recording_sink.h"

namespace tacho::agent::testing {

class RingSourceFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = (std::filesystem::path(::testing::TempDir()) /
             absl::StrCat("rings_", ::testing::UnitTest::GetInstance()->current_test_info()->name(),
                          "_", ::getpid()))
                .string();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    Restart();
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Restart() {
    config::v1::Agent::Rings config;
    config.set_directory(root_);
    config.set_poll_interval(absl::ToInt64Nanoseconds(absl::Milliseconds(200)));
    RingOptions options;
    options.host = "host-a";
    options.log = LogTo(&log_);
    source_ = std::make_unique<RingSource>(config, std::move(options));
  }

  void Cycle() { CycleAfter(absl::Seconds(1)); }
  void CycleAfter(absl::Duration time) {
    now_ += time;
    for (int turn = 0; turn < 10'000; ++turn) {
      if (source_->Poll(now_, &sink_) > now_) return;
    }
    FAIL() << "the source does not come to rest";
  }

  client::Recorder Open() {
    return client::Recorder::Open({.directory = root_, .job = "job", .task = 3, .attempt = 2});
  }

  // Records rows with steps begin … end - 1 and the same values.
  static void Record(client::Recorder* recorder, int begin, int end) {
    const auto loss = recorder->Gauge("loss", "1", "Training loss.");
    for (int step = begin; step < end; ++step) {
      recorder->Set(loss, step);
      recorder->CommitStep(step);
    }
  }

  std::vector<int64_t> Steps() const {
    std::vector<int64_t> steps;
    for (const StoredSample& sample : sink_.samples) steps.push_back(sample.step);
    return steps;
  }

  std::string root_;
  RecordingSink sink_;
  std::vector<std::string> log_;
  std::unique_ptr<RingSource> source_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
};

}  // namespace tacho::agent::testing
