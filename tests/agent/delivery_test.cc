// A spool and a stream for each shard, to scripted collectors on loopback.
#include "agent/delivery.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/job_shard.h"
#include "tests/agent/stream/fake_collector.h"

namespace tacho::agent {
namespace {

constexpr char kHome[] = "hosts";
constexpr uint32_t kShards = 3;

class DeliveryTest : public ::testing::Test {
 protected:
  DeliveryTest()
      : path_(absl::StrCat(::testing::TempDir(), "/delivery_test_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(path_);
    for (int i = 0; jobs_.size() < kShards; ++i) {
      const std::string job = absl::StrCat("job-", i);
      if (ShardOfJob(job, kShards) == jobs_.size()) jobs_.push_back(job);
    }
  }
  ~DeliveryTest() override {
    delivery_.reset();
    std::filesystem::remove_all(path_);
  }

  void Open() {
    log::LogOptions log;
    log.write = [this](log::Level, absl::string_view line) {
      absl::MutexLock lock(&log_mutex_);
      log_.emplace_back(line);
    };
    StreamOptions stream;
    stream.agent_id = "agent-7";
    stream.backoff_min = absl::Milliseconds(5);
    stream.backoff_max = absl::Milliseconds(20);
    stream.sync_interval = absl::Milliseconds(1);
    stream.log = log::Log(std::move(log));
    std::vector<std::string> addresses;
    for (const FakeCollector& member : members_) addresses.push_back(member.address());
    auto delivery = Delivery::Open({.spool = {.path = path_},
                                    .addresses = addresses,
                                    .cluster = true,
                                    .spares = spares_,
                                    .home_job = kHome,
                                    .stream = [stream] { return stream; }});
    ASSERT_TRUE(delivery.ok()) << delivery.status();
    delivery_ = *std::move(delivery);
    delivery_->Start();
  }

  void Append(const std::string& job, double value) {
    v1::Layout layout;
    layout.mutable_source()->set_job(job);
    layout.add_series()->mutable_metric()->set_name("m");
    const auto id = delivery_->sink()->DefineLayout(layout);
    ASSERT_TRUE(id.ok()) << id.status();
    const int64_t time = 7;
    ASSERT_TRUE(delivery_->sink()->AppendRows(*id, {&time, 1}, {}, {&value, 1}, {}).ok());
  }

  size_t LogLines(const std::string& text) {
    absl::MutexLock lock(&log_mutex_);
    return static_cast<size_t>(
        std::count_if(log_.begin(), log_.end(),
                      [&](const std::string& line) { return absl::StrContains(line, text); }));
  }

  const std::string path_;
  std::vector<std::string> jobs_;  // By shard.
  std::array<FakeCollector, kShards> members_;
  std::vector<std::string> spares_;
  absl::Mutex log_mutex_;
  std::vector<std::string> log_ ABSL_GUARDED_BY(log_mutex_);
  std::unique_ptr<Delivery> delivery_;
};

TEST_F(DeliveryTest, EachMemberGetsItsJobsUnderOneAgent) {
  Open();
  for (uint32_t shard = 0; shard < kShards; ++shard) Append(jobs_[shard], 100 + shard);
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    FakeCollector& member = members_[shard];
    ASSERT_TRUE(member.WaitForDurable(1));
    EXPECT_EQ(member.values(), (std::map<uint64_t, double>{{1, 100 + shard}}));
    const v1::Hello hello = member.hellos().at(0);
    EXPECT_EQ(hello.agent_id(), "agent-7");
    EXPECT_EQ(hello.shards(), kShards);
    EXPECT_EQ(hello.shard(), shard);
    EXPECT_FALSE(hello.several_collectors());
  }
}

TEST_F(DeliveryTest, AMemberWithoutJobsHereIsLeftAlone) {
  Open();
  Append(jobs_[0], 1);
  ASSERT_TRUE(members_[0].WaitForDurable(1));
  EXPECT_TRUE(members_[1].hellos().empty());
}

TEST_F(DeliveryTest, AMemberThatIsAwayHoldsUpNoOther) {
  members_[1].Stop();
  Open();
  for (int i = 0; i < 50; ++i) {
    for (const std::string& job : jobs_) Append(job, i);
  }
  EXPECT_TRUE(members_[0].WaitForDurable(50));
  EXPECT_TRUE(members_[2].WaitForDurable(50));
  while (delivery_->Stats().entries > 50) absl::SleepFor(absl::Milliseconds(2));
  EXPECT_EQ(delivery_->Stats().entries, 50u);
  members_[1].Start();
  EXPECT_TRUE(members_[1].WaitForDurable(50));
  EXPECT_EQ(members_[1].values().size(), 50u);
}

// The new owner has what the old one has acknowledged, and nothing is counted as lost.
TEST_F(DeliveryTest, TheOwnerOfAShardIsFoundAtASpare) {
  FakeCollector spare;
  spare.greet = [](const v1::Hello& hello) {
    if (hello.shard() == 1) return grpc::Status::OK;
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "this is shard 1 of 3");
  };
  for (uint32_t shard : {0, 2}) {
    members_[shard].greet = [shard](const v1::Hello& hello) {
      if (hello.shard() == shard) return grpc::Status::OK;
      return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "this is another shard");
    };
  }
  spares_ = {spare.address()};
  Open();
  for (const std::string& job : jobs_) Append(job, 1);
  for (FakeCollector& member : members_) ASSERT_TRUE(member.WaitForDurable(1));
  while (delivery_->Stats().entries > 0) absl::SleepFor(absl::Milliseconds(2));
  members_[1].Stop();
  for (const std::string& job : jobs_) Append(job, 2);
  ASSERT_TRUE(spare.WaitForDurable(2));
  EXPECT_EQ(spare.values(), (std::map<uint64_t, double>{{2, 2}}));
  const v1::Hello hello = spare.hellos().at(0);
  EXPECT_EQ(hello.first_sequence(), 2u);
  EXPECT_EQ(hello.acknowledged_sequence(), 1u);
  EXPECT_EQ(hello.shards(), kShards);
  EXPECT_FALSE(hello.several_collectors());
  EXPECT_TRUE(members_[0].WaitForDurable(2));
  EXPECT_EQ(members_[0].values().size(), 2u);
}

TEST_F(DeliveryTest, TheOwnerOfAShardIsFoundAtAnotherMember) {
  members_[0].Stop();
  for (uint32_t shard : {1, 2}) {
    members_[shard].greet = [shard](const v1::Hello& hello) {
      // Member 2 has taken shard 0 over; nobody owns shard 2.
      if (hello.shard() == (shard == 2 ? 0u : 1u)) return grpc::Status::OK;
      return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "this is another shard");
    };
  }
  FakeCollector spare;
  spare.Stop();
  spares_ = {spare.address()};
  Open();
  Append(jobs_[0], 7);
  ASSERT_TRUE(members_[2].WaitForDurable(1));
  EXPECT_EQ(members_[2].values(), (std::map<uint64_t, double>{{1, 7}}));
}

TEST_F(DeliveryTest, StoppingWaitsForAllMembersAtOnce) {
  for (FakeCollector& member : members_) member.ack_every = 1'000'000;  // None says a word.
  Open();
  for (const std::string& job : jobs_) Append(job, 1);
  for (FakeCollector& member : members_) {
    while (member.streams().empty()) absl::SleepFor(absl::Milliseconds(2));
  }
  const absl::Time began = absl::Now();
  delivery_->Stop(absl::Seconds(2));
  EXPECT_LT(absl::Now() - began, absl::Seconds(5));
}

TEST_F(DeliveryTest, AnotherListOfMembersIsLoggedOnceAndCostsNothing) {
  std::atomic<bool> agrees = false;
  members_[0].greet = [&agrees](const v1::Hello&) {
    if (agrees) return grpc::Status::OK;
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "this is shard 0 of 4");
  };
  Open();
  Append(jobs_[0], 1);
  Append(jobs_[1], 2);
  while (members_[0].hellos().size() < 5) absl::SleepFor(absl::Milliseconds(2));
  EXPECT_TRUE(members_[1].WaitForDurable(1));
  EXPECT_EQ(LogLines("this is shard 0 of 4"), 1u);
  agrees = true;
  EXPECT_TRUE(members_[0].WaitForDurable(1));
  EXPECT_EQ(members_[0].values(), (std::map<uint64_t, double>{{1, 1}}));
}

TEST_F(DeliveryTest, WhatWaitsIsDeliveredAfterARestart) {
  for (FakeCollector& member : members_) member.Stop();
  Open();
  for (const std::string& job : jobs_) Append(job, 5);
  delivery_->Stop(absl::ZeroDuration());
  delivery_.reset();
  for (FakeCollector& member : members_) member.Start();
  Open();
  for (FakeCollector& member : members_) {
    EXPECT_TRUE(member.WaitForDurable(1));
    EXPECT_EQ(member.values().size(), 1u);
  }
}

}  // namespace
}  // namespace tacho::agent
