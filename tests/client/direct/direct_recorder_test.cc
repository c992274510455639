// The recorder without an agent, with a collector that does what a test says.
#include "client/direct/direct_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "tests/agent/stream/fake_collector.h"

namespace tacho::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class DirectRecorderTest : public ::testing::Test {
 protected:
  DirectRecorderTest() {
    collector_.judge = [this](const v1::ClientMessage& message) {
      absl::MutexLock lock(&mutex_);
      const grpc::Status verdict = verdict_ ? verdict_(message) : grpc::Status::OK;
      if (verdict.ok()) taken_[agent::SequenceOf(message)] = message;
      return verdict;
    };
  }

  DirectOptions Options() {
    DirectOptions options;
    options.recorder.job = "job";
    options.recorder.task = 3;
    options.recorder.attempt = 2;
    options.recorder.environment = [](const char*) -> const char* { return nullptr; };
    options.collector = collector_.address();
    options.host = "host-a";
    options.flush_timeout = absl::Seconds(20);
    return options;
  }

  static void Record(Recorder* recorder, int64_t begin, int64_t end) {
    const Metric loss = recorder->Gauge("loss", "1", "Training loss.");
    for (int64_t step = begin; step < end; ++step) {
      recorder->Set(loss, static_cast<double>(step));
      recorder->CommitStep(step);
    }
  }

  // By sequence, each message once: as a collector stores them.
  std::vector<int64_t> Steps() {
    absl::MutexLock lock(&mutex_);
    std::vector<int64_t> steps;
    for (const auto& [sequence, message] : taken_) {
      steps.insert(steps.end(), message.batch().steps().begin(), message.batch().steps().end());
    }
    return steps;
  }
  std::vector<v1::Event> Events() {
    absl::MutexLock lock(&mutex_);
    std::vector<v1::Event> events;
    for (const auto& [sequence, message] : taken_) {
      if (message.has_event()) events.push_back(message.event());
    }
    return events;
  }

  absl::Mutex mutex_;
  std::function<grpc::Status(const v1::ClientMessage&)> verdict_;
  std::map<uint64_t, v1::ClientMessage> taken_;
  agent::FakeCollector collector_;
};

std::vector<int64_t> UpTo(int64_t end) {
  std::vector<int64_t> numbers(static_cast<size_t>(end));
  for (int64_t i = 0; i < end; ++i) numbers[static_cast<size_t>(i)] = i;
  return numbers;
}

TEST_F(DirectRecorderTest, WhatIsRecordedIsThereWhenTheRecorderIsGone) {
  {
    Recorder recorder = OpenDirect(Options());
    ASSERT_TRUE(recorder.recording()) << recorder.error();
    recorder.SetAttribute("model", "mlp");
    recorder.Observe(recorder.Histogram("norms", "", "", {.count = 2}), 1);
    Record(&recorder, 0, 1000);
    recorder.Event("ended", "Done.");
    EXPECT_EQ(recorder.path(), "");
  }
  EXPECT_EQ(Steps().size(), 1001u) << "rows, and the histogram";
  EXPECT_THAT(Events(), SizeIs(1));
  EXPECT_EQ(Events().at(0).source().host(), "host-a");
  EXPECT_EQ(Events().at(0).source().task(), 3u);
  EXPECT_EQ(Events().at(0).source().attempt(), 2u);
  EXPECT_EQ(Events().at(0).step(), 999);
  EXPECT_THAT(collector_.attributes(), ElementsAre(Pair("model", "mlp")));
  EXPECT_EQ(collector_.undefined_layouts(), 0);
}

TEST_F(DirectRecorderTest, TheEndOfARecorderIsTheEndOfItsTask) {
  {
    Recorder recorder = OpenDirect(Options());
    Record(&recorder, 0, 10);
  }
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(Events()[0].kind(), "ended");
  EXPECT_EQ(Events()[0].source().task(), 3u);
  EXPECT_EQ(Events()[0].source().attempt(), 2u);
}

TEST_F(DirectRecorderTest, AnEndThatTheTrainerRecordedIsNotRepeated) {
  {
    Recorder recorder = OpenDirect(Options());
    Record(&recorder, 0, 10);
    recorder.Event("exited", "It failed.");
  }
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(Events()[0].kind(), "exited");
}

TEST_F(DirectRecorderTest, ACollectorThatComesLaterGetsWhatWaited) {
  collector_.Stop();
  Recorder recorder = OpenDirect(Options());
  Record(&recorder, 0, 100);
  absl::SleepFor(absl::Milliseconds(100));
  collector_.Start();
  recorder = Recorder();
  EXPECT_EQ(Steps(), UpTo(100));
}

TEST_F(DirectRecorderTest, ABrokenConnectionNeitherLosesNorRepeats) {
  int refusals = 3;
  {
    absl::MutexLock lock(&mutex_);
    verdict_ = [&refusals](const v1::ClientMessage& message) {
      if (agent::SequenceOf(message) < 3 || refusals-- <= 0) return grpc::Status::OK;
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "overloaded");
    };
  }
  {
    Recorder recorder = OpenDirect(Options());
    Record(&recorder, 0, 2000);
  }
  EXPECT_EQ(Steps(), UpTo(2000));
  EXPECT_GE(collector_.streams().size(), 4u);
  for (const v1::Hello& hello : collector_.hellos()) {
    EXPECT_EQ(hello.agent_id(), collector_.hellos()[0].agent_id());
    EXPECT_EQ(hello.spool_generation(), collector_.hellos()[0].spool_generation());
  }
}

// The token does not exist yet: the collector refuses permanently, and the recorder tries again.
TEST_F(DirectRecorderTest, ARefusalIsSaidOnceAndTriedAgain) {
  int refusals = 2;
  {
    absl::MutexLock lock(&mutex_);
    verdict_ = [&refusals](const v1::ClientMessage&) {
      if (refusals-- <= 0) return grpc::Status::OK;
      return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "no token");
    };
  }
  testing::internal::CaptureStderr();
  {
    Recorder recorder = OpenDirect(Options());
    Record(&recorder, 0, 10);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(Steps(), UpTo(10));
  EXPECT_THAT(said, HasSubstr("no token"));
  EXPECT_EQ(said.find("no token"), said.rfind("no token")) << said;
  EXPECT_THAT(said, HasSubstr("takes the record again"));
}

TEST_F(DirectRecorderTest, AFullQueueDropsTheOldestAndTellsHowMany) {
  constexpr int64_t kRows = 20'000;
  collector_.Stop();
  DirectOptions options = Options();
  options.queue_bytes = 1;  // As small as it may be.
  Recorder recorder = OpenDirect(options);
  Record(&recorder, 0, kRows);
  collector_.Start();
  recorder = Recorder();
  const std::vector<int64_t> steps = Steps();
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps.back(), kRows - 1);
  uint64_t lost = 0;
  for (const v1::Event& event : Events()) {
    if (event.kind() == "ended") continue;
    EXPECT_EQ(event.kind(), "rows_lost");
    lost += std::stoull(event.fields().at("rows"));
  }
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(lost + steps.size(), static_cast<uint64_t>(kRows));
}

TEST_F(DirectRecorderTest, TheEndDoesNotWaitForEverForACollectorThatIsNotThere) {
  collector_.Stop();
  DirectOptions options = Options();
  options.flush_timeout = absl::Milliseconds(50);
  testing::internal::CaptureStderr();
  const absl::Time begin = absl::Now();
  {
    Recorder recorder = OpenDirect(options);
    Record(&recorder, 0, 10);
  }
  EXPECT_LT(absl::Now() - begin, absl::Seconds(15));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("did not reach the collector"));
  collector_.Start();
  EXPECT_THAT(Steps(), IsEmpty());
}

// A data loader has the recorder too, but none of its threads.
TEST_F(DirectRecorderTest, AForkedChildSendsNothingAndEnds) {
  Recorder recorder = OpenDirect(Options());
  Record(&recorder, 0, 10);
  const pid_t child = fork();
  if (child == 0) {
    Record(&recorder, 10, 20);
    recorder = Recorder();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  recorder = Recorder();
  EXPECT_EQ(Steps(), UpTo(10));
}

TEST_F(DirectRecorderTest, WithoutACollectorOrANameNothingIsRecorded) {
  DirectOptions no_collector = Options();
  no_collector.collector = "";
  DirectOptions no_job = Options();
  no_job.recorder.job = "";
  for (const DirectOptions& options : {no_collector, no_job}) {
    testing::internal::CaptureStderr();
    Recorder recorder = OpenDirect(options);
    EXPECT_FALSE(recorder.recording());
    Record(&recorder, 0, 1);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(recorder.error()));
  }
}

}  // namespace
}  // namespace tacho::client
