// A source over a directory of its own, with a sink in memory and a clock of the test's.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/sources/tfevents/tfevents_source.h"
#include "tests/agent/recording_sink.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent {

namespace fs = std::filesystem;
using namespace ::tacho::testing;  // NOLINT: the writer's functions are these tests' vocabulary.
using ::tacho::agent::testing::RecordingSink;
using ::tacho::agent::testing::StoredSample;

inline constexpr char kFirstFile[] = "events.out.tfevents.1600000000.host.1.0";
inline constexpr char kSecondFile[] = "events.out.tfevents.1600001000.host.2.0";

class TfeventsSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ =
        fs::path(::testing::TempDir()) /
        absl::StrCat("tfevents_", ::testing::UnitTest::GetInstance()->current_test_info()->name(),
                     "_", ::getpid());
    fs::remove_all(root_);
    fs::create_directories(root_);
    config_.set_poll_interval(absl::ToInt64Nanoseconds(absl::Seconds(2)));
    auto* directory = config_.add_directories();
    directory->set_path(root_.string());
    directory->set_run_pattern("(?P<job>.*)");
    directory->set_job("{job}");
    Restart();
  }
  void TearDown() override { fs::remove_all(root_); }

  // A new source over the same checkpoints, as after a restart of the agent.
  void Restart() {
    TfeventsOptions options;
    options.host = "host-a";
    options.log = testing::LogTo(&log_);
    options.limits = limits_;
    options.turn = turn_;
    options.rest = 0;
    options.max_series = max_series_;
    auto source = TfeventsSource::Create(config_, std::move(options));
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
  }

  // A directory that has not changed for long is looked at after 75 s at most.
  void CycleLater() {
    now_ += absl::Minutes(2);
    Cycle();
  }
  // One cycle: until the source wants to sleep.
  void Cycle() {
    now_ += absl::Seconds(3);
    for (int turn = 0; turn < 100'000; ++turn) {
      if (source_->Poll(now_, &sink_) > now_) return;
    }
    FAIL() << "the source does not come to rest";
  }

  std::string Path(absl::string_view run, absl::string_view file) const {
    return absl::StrCat(root_.string(), "/", run, "/", file);
  }

  // (attempt, step, value) of a tag, in the order of storing.
  std::vector<std::tuple<uint32_t, int64_t, double>> Stored(absl::string_view tag) const {
    std::vector<std::tuple<uint32_t, int64_t, double>> out;
    for (const StoredSample& sample : sink_.samples) {
      if (sample.metric == tag) out.emplace_back(sample.attempt, sample.step, sample.value());
    }
    return out;
  }

  fs::path root_;
  config::v1::Agent::Tfevents config_;
  TfeventsChunkLimits limits_;
  absl::Duration turn_ = absl::Milliseconds(50);
  size_t max_series_ = 100'000;
  RecordingSink sink_;
  std::vector<std::string> log_;
  std::unique_ptr<TfeventsSource> source_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
};

}  // namespace tacho::agent
