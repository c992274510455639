#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/interop/intake_fixture.h"

namespace tacho::server::interop {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class IntakeEventsTest : public IntakeTest {
 protected:
  static void AddEvent(ForeignEvents* write, const std::string& job, const std::string& message,
                       int64_t time_ns = ingest::kNowNs) {
    ForeignEvent event{.source = write->sources.size(), .name = "text"};
    event.event.set_kind("text");
    event.event.set_message(message);
    event.event.set_time_unix_ns(time_ns);
    write->sources.push_back({{"job", job}, {"host", "h1"}});
    write->events.push_back(std::move(event));
  }
  WriteOutcome WriteEvents(const ForeignEvents& write,
                           security::RightsPtr rights = security::Rights::Everything()) {
    WriteOutcome result;
    absl::Notification done;
    intake_->WriteEvents(write, {"otlp", {.peer = "test"}, rights}, [&](WriteOutcome outcome) {
      result = std::move(outcome);
      done.Notify();
    });
    done.WaitForNotification();
    return result;
  }
  size_t Count(const std::string& job) {
    auto events = store_->Events(job, INT64_MIN, INT64_MAX);
    EXPECT_TRUE(events.ok()) << events.status();
    return events->size();
  }
};

TEST_F(IntakeEventsTest, AJobThatIsNotTheCallersRefusesAll) {
  const auto rights = std::make_shared<const security::Rights>(security::Rights::Options{
      .name = "t", .write = true, .jobs = std::make_shared<const RE2>("vision.*")});
  ForeignEvents write;
  AddEvent(&write, "vision-1", "ours");
  AddEvent(&write, "speech", "theirs");
  EXPECT_TRUE(absl::IsPermissionDenied(WriteEvents(write, rights).status));
  EXPECT_THAT(store_.stored(), IsEmpty());
  write.events.pop_back();
  EXPECT_TRUE(WriteEvents(write, rights).status.ok());
  EXPECT_EQ(Count("vision-1"), 1u);
}

TEST_F(IntakeEventsTest, AJobForWhichThereIsNoRoomIsRefusedAlone) {
  store_.Limit([](storage::LimitPolicy::Options* limits) { limits->totals.jobs = 1; });
  ForeignEvents write;
  AddEvent(&write, "vision", "first");
  EXPECT_EQ(WriteEvents(write).stored, 1u);
  AddEvent(&write, "speech", "second");
  const auto outcome = WriteEvents(write);
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.refused, 1u);
  EXPECT_THAT(outcome.refusal, HasSubstr("limits.jobs"));
  EXPECT_EQ(Count("speech"), 0u);
}

// Each would be made before the limit on jobs could count it.
TEST_F(IntakeEventsTest, ARequestOfVeryManyJobsIsRefused) {
  ForeignEvents write;
  for (int i = 0; i < 1000; ++i) AddEvent(&write, absl::StrCat("job-", i), "x");
  EXPECT_EQ(WriteEvents(write).stored, 1000u);
  AddEvent(&write, "one-more", "x");
  EXPECT_TRUE(absl::IsResourceExhausted(WriteEvents(write).status));
  EXPECT_EQ(Count("one-more"), 0u);
}

// They are compared with each new one of that time.
TEST_F(IntakeEventsTest, VeryManyEventsOfOneNanosecondAreRefused) {
  for (int part = 0; part < 10; ++part) {
    ForeignEvents write;
    for (int i = 0; i < 1000; ++i) AddEvent(&write, "vision", absl::StrCat(part * 1000 + i));
    ASSERT_TRUE(WriteEvents(write).status.ok());
  }
  ForeignEvents repeat;
  AddEvent(&repeat, "vision", "0");
  EXPECT_TRUE(WriteEvents(repeat).status.ok()) << "it is found";
  ForeignEvents one_more;
  AddEvent(&one_more, "vision", "new");
  const auto outcome = WriteEvents(one_more);
  EXPECT_TRUE(absl::IsInvalidArgument(outcome.status)) << outcome.status;
  EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("nanosecond"));
  EXPECT_EQ(Count("vision"), 10'000u);
  AddEvent(&repeat, "vision", "later", ingest::kNowNs + 1);
  EXPECT_TRUE(WriteEvents(repeat).status.ok());
}

}  // namespace
}  // namespace tacho::server::interop
