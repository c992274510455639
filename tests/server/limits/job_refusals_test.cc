#include "server/limits/job_refusals.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::server::limits {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

void Add(JobRefusals* refusals, const std::string& job, const std::string& reason, uint64_t samples,
         int64_t second = 0) {
  refusals->Add(job, reason, samples, absl::FromUnixSeconds(second), [&](JobRefusal* refusal) {
    refusal->example = absl::StrCat("series ", second);
    refusal->detail = "what to do";
  });
}

TEST(JobRefusalsTest, AddsUpByReasonTheMostFirst) {
  JobRefusals refusals;
  Add(&refusals, "a", "future", 2, 1);
  Add(&refusals, "a", "too_old", 3, 2);
  Add(&refusals, "a", "future", 5, 3);
  Add(&refusals, "b", "future", 100, 4);
  const auto found = refusals.Of("a");
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].reason, "future");
  EXPECT_EQ(found[0].samples, 7u);
  EXPECT_EQ(found[0].example, "series 1");
  EXPECT_EQ(found[0].detail, "what to do");
  EXPECT_EQ(found[0].last, absl::FromUnixSeconds(3));
  EXPECT_EQ(found[1].samples, 3u);
  EXPECT_EQ(refusals.SamplesOf("a"), 10u);
  EXPECT_EQ(refusals.SamplesOf("c"), 0u);
  EXPECT_THAT(refusals.Of("c"), IsEmpty());
}

TEST(JobRefusalsTest, InventedNamesMakeRoomForEachOther) {
  JobRefusals refusals;
  Add(&refusals, "honest", "too_old", 2);
  for (size_t i = 0; i < 3 * JobRefusals::kJobs; ++i) {
    Add(&refusals, absl::StrCat("invented-", i), "too_old", 1);
  }
  EXPECT_THAT(refusals.RecentJobs(absl::UnixEpoch()), SizeIs(JobRefusals::kJobs));
  EXPECT_TRUE(refusals.IsRecent("honest", absl::UnixEpoch()));
  Add(&refusals, "another", "too_old", 1);
  EXPECT_TRUE(refusals.IsRecent("another", absl::UnixEpoch()));
}

TEST(JobRefusalsTest, AJobIsRecentForADayAfterItsNewestRefusal) {
  JobRefusals refusals;
  Add(&refusals, "a", "too_old", 1, 100);
  Add(&refusals, "a", "future", 1, 150);
  Add(&refusals, "a", "too_old", 1, 200);
  const absl::Time last = absl::FromUnixSeconds(200);
  const auto recent = refusals.RecentJobs(last + JobRefusals::kRecent);
  ASSERT_THAT(recent, SizeIs(1));
  EXPECT_EQ(recent[0].name, "a");
  EXPECT_EQ(recent[0].last, last);
  EXPECT_TRUE(refusals.IsRecent("a", last + JobRefusals::kRecent));
  EXPECT_FALSE(refusals.IsRecent("a", last + JobRefusals::kRecent + absl::Nanoseconds(1)));
  EXPECT_THAT(refusals.RecentJobs(last + JobRefusals::kRecent + absl::Nanoseconds(1)), IsEmpty());
  EXPECT_FALSE(refusals.IsRecent("b", last));
  EXPECT_EQ(refusals.SamplesOf("a"), 3u) << "what a stored job shows is not forgotten";
}

}  // namespace
}  // namespace tacho::server::limits
