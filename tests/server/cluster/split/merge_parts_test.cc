// The integration test has the rest: whole answers, equal to those of one collector.
#include "server/cluster/split/merge_parts.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::server::cluster {
namespace {

v1::Job JobWith(uint64_t series, v1::JobState state) {
  v1::Job job;
  job.set_name("hosts");
  job.set_series(series);
  job.set_state(state);
  return job;
}

TEST(MergePartsTest, AMemberThatHasCopiesAloneSaysNothingOfTheState) {
  const v1::Job copies = JobWith(0, v1::JOB_STATE_SILENT);
  std::vector<int> order = {0, 1, 2};
  do {
    const v1::Job parts[] = {copies, JobWith(3, v1::JOB_STATE_ENDED), copies};
    v1::Job merged;
    for (const int i : order) AddJob(parts[i], &merged);
    EXPECT_EQ(merged.state(), v1::JOB_STATE_ENDED);
    EXPECT_EQ(merged.series(), 3);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(MergePartsTest, OfStatesTheLiveliestCounts) {
  v1::Job merged;
  AddJob(JobWith(1, v1::JOB_STATE_SILENT), &merged);
  AddJob(JobWith(2, v1::JOB_STATE_RUNNING), &merged);
  AddJob(JobWith(4, v1::JOB_STATE_ENDED), &merged);
  EXPECT_EQ(merged.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(merged.series(), 7);
}

TEST(MergePartsTest, TimesAndStepsAreTheOutermost) {
  v1::Job early = JobWith(1, v1::JOB_STATE_SILENT);
  early.set_first_seen_unix_ns(-5);  // Before 1970 is a time, too.
  early.set_last_seen_unix_ns(10);
  early.set_last_step(-3);
  v1::Job late = JobWith(1, v1::JOB_STATE_SILENT);
  late.set_first_seen_unix_ns(7);
  late.set_last_seen_unix_ns(20);
  const v1::Job without_rows = JobWith(1, v1::JOB_STATE_SILENT);
  for (const auto& parts :
       {std::vector{early, late, without_rows}, std::vector{without_rows, late, early}}) {
    v1::Job merged;
    for (const v1::Job& part : parts) AddJob(part, &merged);
    EXPECT_EQ(merged.first_seen_unix_ns(), -5);
    EXPECT_EQ(merged.last_seen_unix_ns(), 20);
    EXPECT_EQ(merged.last_step(), -3);
  }
}

}  // namespace
}  // namespace tacho::server::cluster
