#include "storage/columns/merge_candidates.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kTarget = 100;
constexpr FramePosition kAllSealed = UINT64_MAX;
constexpr int64_t kDay = 10;

class MergeCandidatesTest : public testing::Test {
 protected:
  void Add(FramePosition position, uint32_t rows, LayoutId layout = 1) {
    candidates_.Add({kDay, layout, static_cast<int64_t>(1000 - position), position, rows}, kTarget,
                    now_);
  }
  std::vector<FramePosition> Due(FramePosition sealed_up_to = kAllSealed) {
    set_ = candidates_.TakeDue(sealed_up_to, absl::Hours(1), now_);
    std::vector<FramePosition> positions;
    for (const FrameRef& frame : set_) positions.push_back(frame.position);
    return positions;
  }
  // Noon of the day.
  absl::Time now_ = absl::FromUnixNanos(kDay * kDayNs) + absl::Hours(12);
  MergeCandidates candidates_;
  MergeCandidates::Set set_;
};

TEST_F(MergeCandidatesTest, SmallFramesAreDueOnceTheyMakeAWholeOne) {
  for (const FramePosition position : {5, 3, 4}) Add(position, 30);
  EXPECT_THAT(Due(), IsEmpty());
  Add(6, 30);
  EXPECT_THAT(Due(), ElementsAre(3, 4, 5)) << "in the order of positions";
  EXPECT_THAT(Due(6), IsEmpty()) << "the frame that makes it whole may not be the next one";
  Due();
  candidates_.Replace(set_, {kDay, 1, 995, 5, 90});
  now_ += absl::Hours(2);
  EXPECT_THAT(Due(), IsEmpty()) << "a whole frame and a single one";
}

TEST_F(MergeCandidatesTest, WhatIsLeftOverWaitsUntilItIsQuietAndWorthIt) {
  Add(1, 40);
  Add(2, 10);
  now_ += absl::Minutes(59);
  EXPECT_THAT(Due(), IsEmpty());
  now_ += absl::Minutes(1);
  EXPECT_THAT(Due(), IsEmpty()) << "40 rows would be rewritten for the sake of 10";
  Add(3, 30);
  EXPECT_THAT(Due(), IsEmpty()) << "not quiet any more";
  now_ += absl::Hours(1);
  EXPECT_THAT(Due(), ElementsAre(1, 2, 3));
}

TEST_F(MergeCandidatesTest, AClockThatWasSetBackPutsNothingOff) {
  Add(1, 30);
  Add(2, 30);
  EXPECT_THAT(Due(), IsEmpty());
  now_ -= absl::Hours(24 * 100);
  EXPECT_THAT(Due(), ElementsAre(1, 2)) << "as if it had been quiet";
}

TEST_F(MergeCandidatesTest, WhenTheDayIsOverEverythingIsWorthIt) {
  Add(1, 40);
  Add(2, 1);
  now_ += absl::Hours(13);
  EXPECT_THAT(Due(), ElementsAre(1, 2));
  EXPECT_THAT(Due(2), IsEmpty()) << "position 2 may still be sealed behind the frame";
}

TEST_F(MergeCandidatesTest, NothingIsMergedAcrossAWholeFrame) {
  Add(1, 10);
  Add(2, 80);
  Add(3, 10);
  Add(4, 10);
  now_ += absl::Hours(20);
  EXPECT_THAT(Due(), ElementsAre(3, 4));
}

TEST_F(MergeCandidatesTest, WhatIsSeparatedStaysApart) {
  for (const FramePosition position : {2, 4, 6, 8}) Add(position, 10);
  now_ += absl::Hours(20);
  ASSERT_THAT(Due(), ElementsAre(2, 4, 6, 8));
  candidates_.Separate(set_, 5);
  ASSERT_THAT(Due(), ElementsAre(2, 4));
  candidates_.Replace(set_, {kDay, 1, 0, 4, 20});
  EXPECT_THAT(Due(), ElementsAre(6, 8));
}

TEST_F(MergeCandidatesTest, LayoutsDoNotMixAndDoneDaysAreForgotten) {
  Add(1, 10, 1);
  Add(2, 10, 2);
  EXPECT_EQ(candidates_.size(), 2u);
  EXPECT_THAT(candidates_.ForgetDoneDays(absl::Hours(1), now_), IsEmpty());
  now_ += absl::Hours(20);
  EXPECT_THAT(Due(), IsEmpty());
  EXPECT_THAT(candidates_.ForgetDoneDays(absl::Hours(1), now_), ElementsAre(kDay));
  EXPECT_EQ(candidates_.size(), 0u);
}

TEST_F(MergeCandidatesTest, WholeFramesTakeNoMemory) {
  Add(1, 50);
  EXPECT_EQ(candidates_.size(), 0u);
}

}  // namespace
}  // namespace tacho::storage
