#include "agent/requests/answer_desk.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"

namespace tacho::agent {
namespace {

size_t ThreadsOfThisProcess() {
  size_t threads = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    threads += entry.exists() ? 1 : 0;
  }
  return threads;
}

v1::AgentRequest StacksRequest(uint64_t id, uint32_t max_bytes = 1 << 20) {
  v1::AgentRequest request;
  request.set_id(id);
  request.set_deadline_ms(10'000);
  request.set_max_report_bytes(max_bytes);
  request.set_job("job");
  request.mutable_stacks();
  return request;
}

class AnswerDeskTest : public testing::Test {
 protected:
  std::unique_ptr<AnswerDesk> Desk(AnswerDesk::Answer answer) {
    auto desk = std::make_unique<AnswerDesk>(
        std::map<std::string, AnswerDesk::Answer>{{"stacks", std::move(answer)}}, log::Log());
    desk->SetListener([this] {
      absl::MutexLock lock(&mutex_);
      ++rung_;
    });
    return desk;
  }
  void AwaitRings(int rings) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&] { return rung_ >= rings; };
    ASSERT_TRUE(AwaitUntil(&mutex_, absl::Condition(&enough), MonotonicNow() + absl::Seconds(20)));
  }
  // All parts of one report, put together.
  static v1::AgentFindings TakeReport(AnswerDesk& desk, uint64_t id, size_t* bytes = nullptr) {
    std::string data;
    for (uint32_t part = 0;; ++part) {
      const auto report = desk.NextReport();
      if (!report.has_value()) {
        ADD_FAILURE() << "no part " << part;
        break;
      }
      EXPECT_EQ(report->id(), id);
      EXPECT_EQ(report->part(), part);
      EXPECT_LE(report->data().size(), kMaxReportPart);
      data += report->data();
      if (report->last()) break;
    }
    v1::AgentFindings findings;
    EXPECT_TRUE(findings.ParseFromString(data));
    if (bytes != nullptr) *bytes = data.size();
    return findings;
  }

  absl::Mutex mutex_;
  int rung_ = 0;
};

v1::AgentFindings ManyStacks(int tasks) {
  v1::AgentFindings findings;
  for (int task = 0; task < tasks; ++task) {
    v1::TaskStacks* const stacks = findings.add_stacks();
    stacks->set_task(static_cast<uint32_t>(task));
    for (int i = 0; i < 100; ++i) {
      stacks->add_main()->set_function(std::string(100, 'm'));
      stacks->add_threads()->add_frames()->set_function(std::string(100, 't'));
    }
  }
  return findings;
}

TEST_F(AnswerDeskTest, AnswersInPartsOfBoundedSize) {
  const auto desk = Desk([](const v1::AgentRequest&, absl::Time) { return ManyStacks(20); });
  EXPECT_EQ(desk->Kinds(), std::vector<std::string>{"stacks"});
  desk->Take(StacksRequest(7));
  AwaitRings(1);
  EXPECT_EQ(TakeReport(*desk, 7).SerializeAsString(), ManyStacks(20).SerializeAsString());
  EXPECT_FALSE(desk->NextReport().has_value());
}

TEST_F(AnswerDeskTest, HasNoThreadUntilItIsAsked) {
  const size_t before = ThreadsOfThisProcess();
  absl::Notification go;
  const auto desk = Desk([&go](const v1::AgentRequest&, absl::Time) {
    go.WaitForNotification();
    return v1::AgentFindings();
  });
  EXPECT_EQ(ThreadsOfThisProcess(), before);
  desk->Take(StacksRequest(1));
  EXPECT_EQ(ThreadsOfThisProcess(), before + 1);
  go.Notify();
}

TEST_F(AnswerDeskTest, RefusesASecondRequestMeanwhileAndAKindItDoesNotKnow) {
  absl::Notification go;
  const auto desk = Desk([&go](const v1::AgentRequest&, absl::Time) {
    go.WaitForNotification();
    return ManyStacks(1);
  });
  desk->Take(StacksRequest(1));
  desk->Take(StacksRequest(2));
  EXPECT_NE(TakeReport(*desk, 2).refusal().find("another request"), std::string::npos);
  v1::AgentRequest profile = StacksRequest(3);
  profile.mutable_profile();
  desk->Take(profile);
  EXPECT_NE(TakeReport(*desk, 3).refusal().find("does not answer"), std::string::npos);
  go.Notify();
  AwaitRings(3);
  EXPECT_EQ(TakeReport(*desk, 1).stacks_size(), 1);
}

TEST_F(AnswerDeskTest, AnswersOneRequestAfterTheOther) {
  const auto desk = Desk([](const v1::AgentRequest&, absl::Time) { return ManyStacks(1); });
  int answered = 0;
  for (uint64_t id = 1; id <= 20; ++id) {
    desk->Take(StacksRequest(id));
    AwaitRings(static_cast<int>(id));
    answered += TakeReport(*desk, id).refusal().empty() ? 1 : 0;
  }
  EXPECT_EQ(answered, 20);
}

TEST_F(AnswerDeskTest, WhatWasAskedOnAnEarlierStreamIsNotAnswered) {
  absl::Notification go;
  const auto desk = Desk([&go](const v1::AgentRequest&, absl::Time) {
    go.WaitForNotification();
    return ManyStacks(1);
  });
  desk->Take(StacksRequest(1));
  desk->StreamEnded();
  go.Notify();
  AwaitRings(1);
  EXPECT_FALSE(desk->NextReport().has_value());
}

TEST_F(AnswerDeskTest, KeepsToTheBytesThatTheCollectorAllows) {
  for (const uint32_t most : {400'000u, 20'000u, 3'000u, 60u}) {
    rung_ = 0;
    const auto desk = Desk([](const v1::AgentRequest&, absl::Time) { return ManyStacks(20); });
    desk->Take(StacksRequest(1, most));
    AwaitRings(1);
    size_t bytes = 0;
    const v1::AgentFindings findings = TakeReport(*desk, 1, &bytes);
    EXPECT_LE(bytes, most);
    if (most < 3'000u) continue;
    ASSERT_EQ(findings.stacks_size(), 20) << most;
    EXPECT_GE(findings.stacks(19).main_size(), 1) << most;
  }
}

}  // namespace
}  // namespace tacho::agent
