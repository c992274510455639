#include "agent/spool/spool_ages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kMaxAge = absl::Minutes(64);  // A mark a minute.

class SpoolAgesTest : public ::testing::Test {
 protected:
  // One entry a second, with sequences from 1; what is kept of it.
  void Spool(int entries) {
    for (int i = 0; i < entries; ++i, ++sequence_, now_ += absl::Seconds(1)) {
      const auto mark = ages_.Due(sequence_, now_);
      if (mark) kept_.push_back(*mark);
      ages_.Spooled(mark, sequence_ + 1, now_);
    }
  }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  const absl::Time start_ = now_;
  uint64_t sequence_ = 1;
  SpoolAges ages_{kMaxAge};
  std::vector<SpoolAges::Mark> kept_;
};

TEST_F(SpoolAgesTest, NothingIsTooOldTooEarlyNorMuchTooLate) {
  Spool(3 * 3600);
  for (int second = 0; second < 4 * 3600; second += 7) {
    const absl::Time at = start_ + absl::Seconds(second);
    SpoolAges ages = ages_;
    if (at < now_) continue;
    const uint64_t before = ages.TooOldBefore(at);
    // The entry `before` was spooled at start + before - 1 s.
    const absl::Duration youngest = at - (start_ + absl::Seconds(before - 2));
    if (before > 1) {
      EXPECT_GE(youngest, kMaxAge) << second;
    }
    if (before < sequence_) {
      EXPECT_LE(at - (start_ + absl::Seconds(before - 1)), kMaxAge + absl::Seconds(61)) << second;
    }
  }
}

TEST_F(SpoolAgesTest, MarksAreFewHoweverManyTheEntriesAre) {
  Spool(24 * 3600);
  const uint64_t before = ages_.TooOldBefore(now_);
  EXPECT_GT(before, 80'000u);
  const auto forgotten = ages_.Trim(before);
  EXPECT_LE(kept_.size() - forgotten.size(), SpoolAges::kMarks + 1);
  EXPECT_GE(kept_.size() - forgotten.size(), SpoolAges::kMarks - 1);
}

TEST_F(SpoolAgesTest, LastEntriesOfALongSilenceAgeToo) {
  Spool(10);
  EXPECT_EQ(ages_.TooOldBefore(now_ + absl::Minutes(63)), 0u);
  EXPECT_EQ(ages_.TooOldBefore(now_ + absl::Minutes(64)), 11u);
}

TEST_F(SpoolAgesTest, AgesGoOnOverRestarts) {
  Spool(1800);
  SpoolAges restarted(kMaxAge);
  for (const SpoolAges::Mark& mark : kept_) restarted.Restore(mark);
  restarted.Opened(sequence_, now_ + absl::Hours(1));
  EXPECT_NEAR(static_cast<double>(restarted.TooOldBefore(now_ + absl::Hours(1))), 1800 - 4 * 60,
              61);
}

// Else a program that crashes every minute would keep what it has for ever.
TEST_F(SpoolAgesTest, FrequentRestartsNeitherMakeYoungNorMakeAMarkEach) {
  Spool(10);
  std::vector<SpoolAges::Mark> kept = kept_;
  int restarts = 0;
  for (; restarts < 1000; ++restarts, now_ += absl::Seconds(10)) {
    SpoolAges ages(kMaxAge);
    for (const SpoolAges::Mark& mark : kept) ages.Restore(mark);
    if (const auto mark = ages.Opened(11, now_)) kept.push_back(*mark);
    if (ages.TooOldBefore(now_) == 11) break;
  }
  EXPECT_NEAR(restarts, 64 * 6, 7);
  EXPECT_THAT(kept, SizeIs(1));
}

TEST_F(SpoolAgesTest, ClockThatIsSetBackMakesEverythingYoung) {
  now_ += absl::Hours(1000);  // It was wrong until then.
  Spool(600);
  now_ = start_;
  EXPECT_EQ(ages_.TooOldBefore(now_ + absl::Minutes(63)), 0u);
  EXPECT_EQ(ages_.TooOldBefore(now_ + absl::Hours(3)), 601u);
}

TEST_F(SpoolAgesTest, WithoutABoundThereAreNoMarksAndNothingIsTooOld) {
  ages_ = SpoolAges(absl::ZeroDuration());
  ages_.Opened(5, now_);
  Spool(4000);
  EXPECT_THAT(kept_, IsEmpty());
  EXPECT_EQ(ages_.TooOldBefore(now_ + absl::Hours(10'000)), 0u);
}

}  // namespace
}  // namespace tacho::agent
