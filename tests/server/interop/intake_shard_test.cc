// What other tools write to the wrong member of a cluster.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/error_table.h"
#include "tests/server/interop/intake_fixture.h"

namespace tacho::server::interop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class IntakeShardTest : public IntakeTest {
 protected:
  IntakeShardTest() { JoinCluster(); }

  double Misdirected() {
    for (const auto& family : registry_.Collect()) {
      if (family.name != "tacho_ingest_samples_rejected_total") continue;
      for (const auto& metric : family.metric) {
        if (metric.label[0].value == "shard") return metric.counter.value;
      }
    }
    return -1;
  }
  WriteOutcome WriteEvents(const std::vector<std::string>& jobs) {
    ForeignEvents write;
    for (const std::string& job : jobs) {
      ForeignEvent event{.source = write.sources.size(), .name = "text"};
      event.event.set_kind("text");
      event.event.set_time_unix_ns(ingest::kNowNs);
      write.sources.push_back({{"job", job}, {"host", "h1"}});
      write.events.push_back(std::move(event));
    }
    WriteOutcome result;
    absl::Notification done;
    intake_->WriteEvents(write, {"otlp", {.peer = "test"}, security::Rights::Everything()},
                         [&](WriteOutcome outcome) {
                           result = std::move(outcome);
                           done.Notify();
                         });
    done.WaitForNotification();
    return result;
  }
};

void ExpectMisdirected(const WriteOutcome& outcome) {
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_EQ(errors::RowOf(outcome.status).failure, errors::Failure::kMisdirected);
  EXPECT_EQ(errors::RowOf(outcome.status).http_status, 421);
  EXPECT_EQ(outcome.status.message(),
            "job vision belongs to c-1:7411 (shard 1 of 3): send it there");
}

TEST_F(IntakeShardTest, ARequestWithOnlyForeignJobsIsMisdirected) {
  ForeignWrite write;
  Add(&write, "a", 1);
  Add(&write, "b", 2);
  for (int i = 1; i <= 2; ++i) {  // The second time, places are remembered.
    ExpectMisdirected(Write(write));
    EXPECT_EQ(Misdirected(), 2 * i);
  }
  EXPECT_THAT(store_.stored(), IsEmpty());
}

TEST_F(IntakeShardTest, OfAMixedRequestOnlyTheForeignJobsAreRefused) {
  ForeignWrite write;
  Add(&write, "a", 1);
  Add(&write, "a", 2, 0, "llm");
  Add(&write, "a", 3, 0, "speech");
  for (int i = 1; i <= 2; ++i) {
    const auto outcome = Write(write);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.stored, 1u);
    EXPECT_EQ(outcome.refused, 2u);
    EXPECT_EQ(outcome.refusal, "job vision belongs to c-1:7411 (shard 1 of 3): send it there");
    EXPECT_EQ(Misdirected(), 2 * i);
  }
  EXPECT_THAT(Stored("a", "llm"), ElementsAre(Pair(0, 2)));
  EXPECT_THAT(Stored("a"), IsEmpty());
}

TEST_F(IntakeShardTest, SoItIsWithEvents) {
  ExpectMisdirected(WriteEvents({"vision", "speech"}));
  EXPECT_THAT(store_.stored(), IsEmpty());
  const auto mixed = WriteEvents({"llm", "vision"});
  EXPECT_TRUE(mixed.status.ok()) << mixed.status;
  EXPECT_EQ(mixed.stored, 1u);
  EXPECT_EQ(mixed.refused, 1u);
  EXPECT_THAT(mixed.refusal, HasSubstr("belongs to c-1:7411"));
  EXPECT_EQ(Misdirected(), 3);
}

// Says what it was asked, and answers as it is told.
class RecordedElsewhere final : public Elsewhere {
 public:
  bool CanPass(const Sender& sender) const override { return !sender.passed_on; }
  void StoreSeries(uint32_t shard, const Sender& sender, v1::StoreSeriesRequest request,
                   Done done) override {
    EXPECT_EQ(sender.Name(), "remote_write:test");
    series[shard].MergeFrom(request);
    done(answers.contains(shard)
             ? answers[shard]
             : WriteOutcome{.stored = static_cast<uint64_t>(request.series_size())});
  }
  void StoreEvents(uint32_t shard, const Sender&, v1::StoreEventsRequest request,
                   Done done) override {
    events[shard].MergeFrom(request);
    done({.stored = static_cast<uint64_t>(request.events_size())});
  }
  void Push(uint32_t, const Sender&, v1::PushRequest, PushDone) override { ADD_FAILURE(); }

  std::map<uint32_t, WriteOutcome> answers;
  std::map<uint32_t, v1::StoreSeriesRequest> series;
  std::map<uint32_t, v1::StoreEventsRequest> events;
};

class PassedOnTest : public IntakeShardTest {
 protected:
  PassedOnTest() {
    elsewhere_ = &recorded_;
    Restart();
  }

  RecordedElsewhere recorded_;
};

TEST_F(PassedOnTest, EachSeriesGoesToItsOwner) {
  ForeignWrite write;
  Add(&write, "a", 1);
  Add(&write, "a", 2, 0, "llm");
  Add(&write, "a", 3, 0, "speech");
  Add(&write, "b", 4);
  for (int i = 1; i <= 2; ++i) {  // The second time, places are remembered.
    recorded_.series.clear();
    const auto outcome = Write(write);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.stored, 4u);
    EXPECT_EQ(outcome.refused, 0u);
    ASSERT_EQ(recorded_.series.size(), 2u);
    ASSERT_EQ(recorded_.series[1].series_size(), 2);
    EXPECT_EQ(recorded_.series[1].series(0).labels(), write.series[0].key);
    EXPECT_EQ(recorded_.series[1].series(1).values(0), 4);
    ASSERT_EQ(recorded_.series[2].series_size(), 1);
    EXPECT_EQ(recorded_.series[2].series(0).values(0), 3);
  }
  EXPECT_THAT(Stored("a", "llm"), ElementsAre(Pair(0, 2)));
  EXPECT_EQ(Misdirected(), 0);
}

TEST_F(PassedOnTest, WhatTheOwnerSaysIsTheAnswer) {
  ForeignWrite write;
  Add(&write, "a", 1);
  Add(&write, "a", 2, 0, "llm");
  recorded_.answers[1] = {.stored = 0, .refused = 1, .refusal = "too_old"};
  auto outcome = Write(write);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.stored, 1u);
  EXPECT_EQ(outcome.refused, 1u);
  EXPECT_EQ(outcome.refusal, "too_old");
  recorded_.answers[1] = {.status = absl::UnavailableError("it is away")};
  outcome = Write(write);
  EXPECT_EQ(outcome.status, absl::UnavailableError("it is away"));
}

TEST_F(PassedOnTest, EveryMemberLearnsOfMetricsThatAreToldApart) {
  ForeignWrite write;
  ForeignMetric& metric = write.metrics.emplace_back();
  metric.name = "a";
  metric.help = "What it is.";
  Add(&write, "a", 1);
  recorded_.answers[2] = {.status = absl::UnavailableError("it is away, and need not know")};
  const auto outcome = Write(write);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  for (const uint32_t shard : {1u, 2u}) {
    ASSERT_EQ(recorded_.series[shard].metrics_size(), 1);
    EXPECT_EQ(recorded_.series[shard].metrics(0).help(), "What it is.");
  }
  EXPECT_EQ(recorded_.series[2].series_size(), 0);
}

TEST_F(PassedOnTest, SoItIsWithEvents) {
  const auto outcome = WriteEvents({"llm", "vision", "speech"});
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.stored, 3u);
  ASSERT_EQ(recorded_.events.size(), 2u);
  EXPECT_EQ(recorded_.events[1].sources(0).labels(0).value(), "vision");
  EXPECT_EQ(recorded_.events[2].events(0).event().kind(), "text");
}

TEST_F(PassedOnTest, WhatWasPassedOnGoesNoFurther) {
  ForeignWrite write;
  Add(&write, "a", 1);
  absl::Notification done;
  intake_->Write(write, {"remote_write", {.peer = "test"}, security::Rights::Everything(), true},
                 [&](const WriteOutcome& outcome) {
                   ExpectMisdirected(outcome);
                   done.Notify();
                 });
  done.WaitForNotification();
  EXPECT_THAT(recorded_.series, IsEmpty());
}

}  // namespace
}  // namespace tacho::server::interop
