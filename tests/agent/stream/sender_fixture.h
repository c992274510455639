// A sender, its spool in a directory of its own, and a scripted collector on loopback.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "agent/stream/sender.h"
#include "gtest/gtest.h"
#include "tests/agent/stream/fake_collector.h"

namespace tacho::agent {

class SenderTest : public ::testing::Test {
 protected:
  SenderTest()
      : path_(absl::StrCat(::testing::TempDir(), "/sender_test_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(path_);
    OpenSpool();
  }
  ~SenderTest() override {
    sender_.reset();
    spool_.reset();
    std::filesystem::remove_all(path_);
  }

  void OpenSpool() {
    spool_.reset();
    auto spool = Spool::Open({.path = path_});
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
  }

  void StartSender(const std::string& address) { StartSender(std::vector{address}); }

  void StartSender(const std::vector<std::string>& addresses) {
    StreamOptions options;
    options.addresses = addresses;
    options.security = security_;
    options.return_after = return_after_;
    options.lanes.short_backlog = short_backlog_;
    options.agent_id = "agent-7";
    options.labels = [] {
      return std::vector<std::pair<std::string, std::string>>{{"zone", "z1"}};
    };
    options.version = "test";
    options.backoff_min = backoff_min_;
    options.backoff_max = backoff_max_;
    options.sync_interval = sync_interval_;
    log::LogOptions log;
    log.write = [this](log::Level, absl::string_view line) {
      absl::MutexLock lock(&log_mutex_);
      absl::StrAppend(&log_, line);
    };
    options.log = log::Log(std::move(log));
    options.missing = missing_;
    sender_ = std::make_unique<Sender>(options, spool_.get());
    sender_->Start();
  }

  bool WaitForLog(const std::string& text) {
    const auto said = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(log_mutex_) {
      return absl::StrContains(log_, text);
    };
    absl::MutexLock lock(&log_mutex_);
    return log_mutex_.AwaitWithTimeout(absl::Condition(&said), absl::Seconds(20));
  }
  void ClearLog() {
    absl::MutexLock lock(&log_mutex_);
    log_.clear();
  }
  std::string log() {
    absl::MutexLock lock(&log_mutex_);
    return log_;
  }

  // Spools rows with the values first..last.
  void Append(int first, int last, const std::string& job = "job") {
    v1::Layout layout;
    layout.mutable_source()->set_job(job);
    layout.add_series()->mutable_metric()->set_name("m");
    const auto id = spool_->DefineLayout(layout);
    ASSERT_TRUE(id.ok());
    for (int i = first; i <= last; ++i) {
      const int64_t time = i;
      const double value = i;
      ASSERT_TRUE(spool_->AppendRows(*id, {&time, 1}, {}, {&value, 1}, {}).ok());
    }
  }

  bool WaitForEmptySpool() {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (spool_->begin() != spool_->end() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(2));
    }
    return spool_->begin() == spool_->end();
  }

  const std::string path_;
  absl::Duration backoff_min_ = absl::Milliseconds(5);
  absl::Duration backoff_max_ = absl::Milliseconds(20);
  absl::Duration return_after_ = absl::Hours(1);
  absl::Duration sync_interval_ = absl::Milliseconds(1);
  client::ChannelSecurity security_;
  uint64_t short_backlog_ = 1'000'000;  // One lane.
  absl::Mutex log_mutex_;
  std::string log_ ABSL_GUARDED_BY(log_mutex_);
  FakeCollector collector_;
  const std::shared_ptr<MissingTotals> missing_ = std::make_shared<MissingTotals>();
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<Sender> sender_;
};

}  // namespace tacho::agent
