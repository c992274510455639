// What becomes of values between two flushes, and where the bounds are.
#include "server/interop/statsd_sums.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"

namespace tacho::server::interop {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class StatsdSumsTest : public testing::Test {
 protected:
  StatsdSums::Added Add(const std::string& text) {
    return sums_->Add(ReadStatsdLines(text).points, now_);
  }
  // By name, with the values of other labels behind it; ends are "ends".
  std::map<std::string, std::string> Flush() {
    std::map<std::string, std::string> found;
    const ForeignWrite write = sums_->Flush(now_, 5);
    for (const ForeignSeries& series : write.series) {
      std::string name;
      const storage::Labels labels = *LabelsOfKey(series.key);
      for (const auto& [label, value] : labels) {
        absl::StrAppend(&name, name.empty() ? "" : " ", value);
      }
      const double value = write.samples[series.first].value;
      found[name] = IsStaleMarker(value) ? "ends" : absl::StrCat(value);
    }
    return found;
  }
  void Restart(StatsdSumsOptions options) { sums_ = std::make_unique<StatsdSums>(options); }

  absl::Time now_ = absl::UnixEpoch();
  std::unique_ptr<StatsdSums> sums_ = std::make_unique<StatsdSums>(StatsdSumsOptions());
};

TEST_F(StatsdSumsTest, CountersAddUpAcrossFlushes) {
  EXPECT_EQ(Add("a:1|c\na:2:3|c|@0.5\n").values, 3u);
  EXPECT_THAT(Flush(), ElementsAre(Pair("a", "11")));
  EXPECT_THAT(Flush(), ElementsAre(Pair("a", "11")));
  Add("a:1|c");
  EXPECT_THAT(Flush(), ElementsAre(Pair("a", "12")));
}

TEST_F(StatsdSumsTest, GaugesKeepTheirValue) {
  Add("a:5|g\na:+2|g\na:-3|g\n");
  EXPECT_THAT(Flush(), ElementsAre(Pair("a", "4")));
  EXPECT_THAT(Flush(), ElementsAre(Pair("a", "4")));
}

TEST_F(StatsdSumsTest, SignsAreValuesOfDogStatsD) {
  Restart({.signed_gauges = false});
  Add("a:5|g\na:-3|g\n");
  EXPECT_THAT(Flush(), ElementsAre(Pair("a", "-3")));
}

TEST_F(StatsdSumsTest, TimersHaveTotalsAndTheQuantilesOfAnInterval) {
  Add("a:1:2:3:4:5|ms\na:6|ms|@0.5\n");
  EXPECT_THAT(Flush(), ElementsAre(Pair("a 0.5", "3.5"), Pair("a 0.9", "5.5"),
                                   Pair("a 0.99", "5.95"), Pair("a_count", "7"), Pair("a_max", "6"),
                                   Pair("a_min", "1"), Pair("a_sum", "27")));
  EXPECT_THAT(Flush(), ElementsAre(Pair("a_count", "7"), Pair("a_sum", "27")));
  Add("a:-1|ms");
  EXPECT_EQ(Flush().at("a_max"), "-1");
}

TEST_F(StatsdSumsTest, ManyValuesAreStoodForByAFew) {
  for (int i = 0; i < 50'000; ++i) Add(absl::StrCat("a:", i, "|h"));
  EXPECT_LT(sums_->bytes(), 2 * StatsdSums::kKeptValues * sizeof(double));
  const auto found = Flush();
  EXPECT_NEAR(std::stod(found.at("a 0.5")), 25'000, 5'000);
  EXPECT_EQ(found.at("a_max"), "49999");
  EXPECT_EQ(found.at("a_count"), "50000");
}

TEST_F(StatsdSumsTest, SetsCountWhatDiffers) {
  Add("a:x|s\na:y|s\na:x|s\n");
  EXPECT_THAT(Flush(), ElementsAre(Pair("a", "2")));
  EXPECT_THAT(Flush(), ElementsAre(Pair("a", "0")));
}

TEST_F(StatsdSumsTest, TagsMakeSeries) {
  Add("a:1|c|#x:1\na:2|c|#x:2\na:4|c\n");
  EXPECT_THAT(Flush(), ElementsAre(Pair("a", "4"), Pair("a 1", "1"), Pair("a 2", "2")));
}

TEST_F(StatsdSumsTest, AGaugeWithATimeIsASampleOfThatTime) {
  Add("a:1|g|T7\na:2|g|T8\n");
  const ForeignWrite write = sums_->Flush(now_, 5);
  ASSERT_EQ(write.samples.size(), 2u);
  EXPECT_EQ(write.samples[0].time_ns, 7'000'000'000);
  EXPECT_EQ(write.samples[1].value, 2);
  EXPECT_THAT(Flush(), IsEmpty());
}

TEST_F(StatsdSumsTest, WhatNobodySendsEndsAndBeginsAgainAtZero) {
  Add("a:1|c\nb:1|ms\n");
  Flush();
  now_ += absl::Minutes(4);
  Add("c:1|c");
  Flush();
  now_ += absl::Minutes(1);
  const auto found = Flush();
  EXPECT_EQ(found.at("a"), "ends");
  EXPECT_EQ(found.at("b 0.99"), "ends");
  EXPECT_EQ(found.at("c"), "1");
  EXPECT_EQ(sums_->size(), 1u);
  Add("a:1|c");
  EXPECT_EQ(Flush().at("a"), "1");
}

TEST_F(StatsdSumsTest, AnotherTypeIsLeftOut) {
  Add("a:1|c");
  EXPECT_EQ(Add("a:1:2|g").other_type, 2u);
  EXPECT_THAT(Flush(), ElementsAre(Pair("a", "1")));
}

TEST_F(StatsdSumsTest, SeriesHaveABound) {
  Restart({.max_series = 2});
  const auto added = Add("a:1|c\nb:1|c\nc:1:2|c\na:1|c\n");
  EXPECT_EQ(added.values, 3u);
  EXPECT_EQ(added.no_room, 2u);
  EXPECT_THAT(Flush(), ElementsAre(Pair("a", "2"), Pair("b", "1")));
}

TEST_F(StatsdSumsTest, MemoryHasABoundAndComesBack) {
  Restart({.max_bytes = 100'000});
  uint64_t no_room = 0;
  for (int i = 0; i < 10'000; ++i) {
    no_room += Add(absl::StrCat("a:", i, "|s\nb:1|g|T", i, "\n")).no_room;
    no_room += Add(absl::StrCat("c", i, ":1|h\n")).no_room;
    ASSERT_LE(sums_->bytes(), 100'000u);
  }
  EXPECT_GT(no_room, 20'000u);
  Flush();
  now_ += absl::Minutes(5);
  Flush();
  EXPECT_EQ(sums_->bytes(), 0u);
  EXPECT_EQ(sums_->size(), 0u);
}

}  // namespace
}  // namespace tacho::server::interop
