#include "server/limits/job_refusals.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::server::limits {
namespace {

using testing::Contains;
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
  EXPECT_THAT(refusals.Jobs(), SizeIs(JobRefusals::kJobs));
  EXPECT_THAT(refusals.Jobs(), Contains("honest"));
  Add(&refusals, "another", "too_old", 1);
  EXPECT_THAT(refusals.Jobs(), Contains("another"));
}

}  // namespace
}  // namespace tacho::server::limits
