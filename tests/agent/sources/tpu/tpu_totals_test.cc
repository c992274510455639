#include "agent/sources/tpu/tpu_totals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr int64_t kBorn = 1000'000'000'000;
const TpuTotals::Key kKey = {"latency", {{"buffer_size", "8MB"}}};

TpuDistribution Of(std::vector<double> counts, double mean = 10) {
  TpuDistribution d;
  for (const double count : counts) d.count += count;
  d.sum = d.count * mean;
  for (size_t i = 0; i + 1 < counts.size(); ++i) d.bounds.push_back(static_cast<double>(i + 1));
  d.counts = std::move(counts);
  return d;
}

class TpuTotalsTest : public ::testing::Test {
 protected:
  void Add(const char* port, int64_t start, const TpuDistribution& d) {
    totals_.BeginRound();
    totals_.AddDistribution(port, kKey, start, d);
  }
  const TpuTotals::Total& Total() const { return totals_.totals().at(kKey); }

  TpuTotals totals_{absl::FromUnixNanos(kBorn)};
};

TEST_F(TpuTotalsTest, WhatWasCountedBeforeAnybodyLookedIsPast) {
  Add("a", kBorn - 1, Of({5, 5, 5}));
  EXPECT_EQ(Total().count, 0);
  Add("a", kBorn - 1, Of({5, 7, 6}));
  EXPECT_EQ(Total().count, 3);
  EXPECT_EQ(Total().sum, 30);
  EXPECT_THAT(Total().below, ElementsAre(Pair(1, 0), Pair(2, 2)));
}

TEST_F(TpuTotalsTest, ProcessThatBeganLaterCountsWhole) {
  Add("a", kBorn, Of({5, 5, 5}));
  EXPECT_EQ(Total().count, 15);
}

TEST_F(TpuTotalsTest, ChangedStartIsARestartThoughTheCountIsHigher) {
  Add("a", kBorn - 1, Of({5, 5, 5}));
  Add("a", kBorn + 1, Of({6, 6, 6}));
  EXPECT_EQ(Total().count, 18);
}

TEST_F(TpuTotalsTest, CountThatFellIsARestart) {
  Add("a", 0, Of({5, 5, 5}));
  Add("a", 0, Of({6, 5, 5}));
  EXPECT_EQ(Total().count, 1);
  Add("a", 0, Of({1, 1, 0}));
  EXPECT_EQ(Total().count, 3);
  Add("a", 0, Of({0, 9, 0}));
  EXPECT_EQ(Total().count, 12) << "one bucket fell, though the sum rose";
}

TEST_F(TpuTotalsTest, OtherBucketsAreARestart) {
  Add("a", kBorn, Of({1, 1}));
  Add("a", kBorn, Of({1, 1, 1, 1}));
  EXPECT_EQ(Total().count, 6);
}

TEST_F(TpuTotalsTest, ProcessesAreAddedUpByBucket) {
  totals_.BeginRound();
  totals_.AddDistribution("a", kKey, kBorn + 1, Of({1, 2, 3}));
  totals_.AddDistribution("b", kKey, kBorn + 2, Of({10, 20, 30}));
  EXPECT_THAT(Total().below, ElementsAre(Pair(1, 11), Pair(2, 22)));
  EXPECT_EQ(Total().count, 66);
}

TEST_F(TpuTotalsTest, OneWorkersFigureOnSeveralPortsCountsOnce) {
  for (const double count : {1.0, 2.0}) {
    totals_.BeginRound();
    totals_.AddDistribution("a", kKey, kBorn + 1, Of({count, count}));
    totals_.AddDistribution("b", kKey, kBorn + 1, Of({count, count}));
  }
  EXPECT_EQ(Total().count, 4);
}

TEST_F(TpuTotalsTest, CountersAreFollowedTheSameWay) {
  for (const double value : {100.0, 130.0, 20.0}) {
    totals_.BeginRound();
    totals_.AddCounter("a", kKey, 0, value);
  }
  EXPECT_EQ(Total().count, 50);
}

TEST_F(TpuTotalsTest, FineBucketsAreJoinedExactly) {
  const size_t many = TpuTotals::kMaxBounds * 4;
  Add("a", kBorn, Of(std::vector<double>(many + 1, 1)));
  EXPECT_THAT(Total().below, SizeIs(TpuTotals::kMaxBounds));
  double below = 0;
  for (const auto& [bound, count] : Total().below) {
    below += count;
    EXPECT_EQ(below, bound) << "one observation below each bound";
  }
  EXPECT_EQ(Total().count, static_cast<double>(many + 1));
}

TEST_F(TpuTotalsTest, TooManySeriesAreLeftOutAndCounted) {
  totals_.BeginRound();
  for (size_t i = 0; i < TpuTotals::kMaxTracked + 2; ++i) {
    totals_.AddCounter("a", {absl::StrCat(i), {}}, 0, 1);
  }
  EXPECT_THAT(totals_.totals(), SizeIs(TpuTotals::kMaxTracked));
  EXPECT_EQ(totals_.left_out(), 2);
}

}  // namespace
}  // namespace tacho::agent
