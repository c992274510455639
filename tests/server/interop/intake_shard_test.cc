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
    intake_->WriteEvents(write, "otlp:test", security::Rights::Everything(),
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

}  // namespace
}  // namespace tacho::server::interop
