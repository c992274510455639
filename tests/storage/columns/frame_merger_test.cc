// Merging through the store: whatever is merged, readers see the same samples.
#include "storage/columns/frame_merger.h"

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "proto/base/stale_marker.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kStart = 1'700'000'000'000'000'000;
const double kStale = StaleMarker();

class FrameMergerTest : public StoreFixture {
 protected:
  FrameMergerTest() {
    options_.seal_rows = 32;
    Reopen();
  }

  // One row, sealed at once: a frame of its own.
  void Frame(const LayoutPtr& layout, int64_t offset, std::vector<double> values,
             int64_t step = 0) {
    ASSERT_TRUE(Append(layout, {kStart + offset}, {step}, std::move(values)).ok());
    ASSERT_TRUE(store_->Seal().ok());
  }

  // Merges what is due when nothing has come for a day.
  void MergeAll() {
    now_ += absl::Hours(48);
    const absl::Status status = store_->MergeFrames();
    ASSERT_TRUE(status.ok()) << status;
  }

  // Every series of the job, as text, to the bit.
  std::string Everything() {
    std::string out;
    const auto series = store_->FindSeries({.job = "job"}, 100);
    EXPECT_TRUE(series.ok());
    for (const SeriesPtr& one : *series) {
      const SampleBlock all = ReadAll(one);
      for (size_t i = 0; i < all.size(); ++i) {
        absl::StrAppend(&out, one->id, " ", all.times[i], " ", all.attempts[i], " ", all.steps[i],
                        " ", std::bit_cast<uint64_t>(all.values[i]), "\n");
      }
    }
    return out;
  }
};

TEST_F(FrameMergerTest, SmallFramesBecomeOne) {
  const LayoutPtr layout = Register(Definition("job", {"loss", "lr"}));
  for (int i = 0; i < 10; ++i) Frame(layout, i, {i / 10.0, i == 3 ? 7 : kStale}, i);
  const std::string before = Everything();
  MergeAll();
  EXPECT_EQ(store_->Stats().merges, 1u);
  EXPECT_EQ(store_->Stats().frames_merged, 10u);
  EXPECT_EQ(Everything(), before);
  MergeAll();
  EXPECT_EQ(store_->Stats().merges, 1u) << "once";
  Reopen();
  EXPECT_EQ(Everything(), before);
}

TEST_F(FrameMergerTest, AReaderKeepsItsViewAcrossAMerge) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  for (int i = 0; i < 10; ++i) Frame(layout, i, {i * 1.0}, i);
  const auto reader = store_->Read(Find("job", "loss"), {});
  SampleBlock block;
  ASSERT_TRUE(*NextBlock(reader, &block));
  std::vector<double> seen = block.values;
  MergeAll();
  ASSERT_EQ(store_->Stats().merges, 1u);
  while (*NextBlock(reader, &block))
    seen.insert(seen.end(), block.values.begin(), block.values.end());
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

// The merged frame would have the position of the last input, and so win over what was written
// after the first.
TEST_F(FrameMergerTest, FramesAreNotMergedAcrossAnotherLayoutsWriteOfTheirSeries) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  const LayoutPtr wider = Register(Definition("job", {"loss", "lr"}));
  Frame(layout, 0, {1});
  Frame(wider, 0, {2, 9});
  Frame(layout, 5, {3});
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, ElementsAre(2, 3));
  MergeAll();
  EXPECT_EQ(store_->Stats().merges, 0u);
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, ElementsAre(2, 3));
  // What lies on either side may be.
  Frame(layout, 6, {4});
  MergeAll();
  MergeAll();  // The day was forgotten: what is found in it again counts as new.
  EXPECT_EQ(store_->Stats().merges, 1u);
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, ElementsAre(2, 3, 4));
}

TEST_F(FrameMergerTest, AnotherLayoutsWriteAtOtherTimesDoesNotHinder) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  const LayoutPtr wider = Register(Definition("job", {"loss", "lr"}));
  Frame(layout, 0, {1});
  Frame(wider, 100, {2, 9});
  Frame(layout, 5, {3});
  MergeAll();
  EXPECT_EQ(store_->Stats().merges, 1u);
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, ElementsAre(1, 3, 2));
}

TEST_F(FrameMergerTest, WhatWasSealedBeforeAStartIsFoundAgain) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  for (int i = 0; i < 5; ++i) Frame(layout, i, {i * 1.0}, i);
  Reopen();
  // A frame of another day, so that the journal's positions are known to be past the frames.
  Frame(Register(Definition("job", {"loss"})), kDayNs, {5}, 5);
  MergeAll();
  MergeAll();  // Frames that are found count as new.
  EXPECT_EQ(store_->Stats().frames_merged, 5u);
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(FrameMergerTest, ADroppedDayIsNoTrouble) {
  options_.retention = absl::Hours(24 * 30);
  Reopen();
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  for (int i = 0; i < 5; ++i) Frame(layout, i, {i * 1.0}, i);
  now_ += absl::Hours(24 * 40);
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_TRUE(store_->MergeFrames().ok());
  EXPECT_EQ(store_->Stats().merges, 0u);
}

// Against nothing but itself: every merge must leave every sample of every series as it was.
TEST_F(FrameMergerTest, NoMergeChangesWhatIsRead) {
  uint64_t merges = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    store_.reset();
    env_.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
    options_.env = env_.get();
    Reopen();
    std::mt19937_64 random(seed);
    const auto layouts = [&] {
      return std::vector<LayoutPtr>{
          Register(Definition("job", {"loss", "lr", "eval"})),
          Register(Definition("job", {"loss", "eval"})),
          Register(Definition("job", {"lr", "loss"}, 0, 1)),
          Register(Definition("job", {"loss", "lr"}, 1)),
      };
    };
    std::vector<LayoutPtr> all = layouts();
    for (int round = 0; round < 60; ++round) {
      const LayoutPtr& layout = all[random() % all.size()];
      std::vector<int64_t> times;
      std::vector<int64_t> steps;
      std::vector<double> values;
      for (size_t rows = 1 + random() % 6; rows > 0; --rows) {
        // Few times, so that many rows meet; sometimes of the next day.
        times.push_back(kStart + static_cast<int64_t>(random() % 40) * 1'000'000 +
                        (random() % 8 == 0 ? kDayNs : 0));
        steps.push_back(static_cast<int64_t>(random() % 2));
        for (size_t i = 0; i < layout->series.size(); ++i) {
          values.push_back(random() % 4 == 0   ? kStale
                           : random() % 8 == 0 ? std::bit_cast<double>(random())
                                               : static_cast<double>(random() % 1000) / 10);
        }
      }
      ASSERT_TRUE(Append(layout, times, steps, values).ok());
      if (random() % 2 == 0) {
        ASSERT_TRUE(store_->Seal().ok());
      }
      if (random() % 20 == 0) {
        Reopen();
        all = layouts();
      }
      if (random() % 6 == 0) {
        const std::string before = Everything();
        const uint64_t merges_before = store_->Stats().merges;
        MergeAll();
        MergeAll();
        merges += store_->Stats().merges - merges_before;
        ASSERT_EQ(Everything(), before);
      }
    }
  }
  EXPECT_GT(merges, 30u) << "else this has tested nothing";
}

}  // namespace
}  // namespace tacho::storage
