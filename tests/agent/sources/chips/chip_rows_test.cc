#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "agent/sources/chips/chip_events.h"
#include "agent/sources/rows/series_rows.h"
#include "client/ring/ring_format.h"
#include "proto/base/stale_marker.h"
#include "tests/agent/recording_sink.h"

namespace tacho::agent {
namespace {

using ::tacho::agent::testing::RecordingSink;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Metric kPower = {"chip_power_watts", v1::METRIC_TYPE_GAUGE, "W", "Power."};
constexpr Metric kHeat = {"chip_heat", v1::METRIC_TYPE_GAUGE, "Cel", "Heat."};

Sample Powers(std::initializer_list<const char*> chips) {
  Sample sample;
  for (const char* chip : chips) sample.Add(kPower, {{"chip", chip}}, 5);
  return sample;
}

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

TEST(ChipRowsTest, SeriesWithoutAValueIsStaleAndNeverZero) {
  RecordingSink sink;
  SeriesRows rows("hosts", "host-a", SeriesRows::Leaves::kLate);
  ASSERT_TRUE(rows.Write(At(10), Powers({"0", "1"}), &sink).ok());
  ASSERT_TRUE(rows.Write(At(20), Powers({"1"}), &sink).ok());
  ASSERT_THAT(sink.layouts, SizeIs(1));
  ASSERT_THAT(sink.samples, SizeIs(4));
  EXPECT_EQ(sink.samples[2].label, "chip=0");
  EXPECT_EQ(sink.samples[2].bits, kStaleMarkerBits);
  EXPECT_EQ(sink.samples[3].value(), 5);
}

TEST(ChipRowsTest, EmptySampleIsWrittenOnce) {
  RecordingSink sink;
  SeriesRows rows("hosts", "host-a", SeriesRows::Leaves::kLate);
  ASSERT_TRUE(rows.Write(At(10), {}, &sink).ok());
  EXPECT_THAT(sink.samples, IsEmpty());
  ASSERT_TRUE(rows.Write(At(20), Powers({"0"}), &sink).ok());
  ASSERT_TRUE(rows.Write(At(30), {}, &sink).ok());
  ASSERT_TRUE(rows.Write(At(40), {}, &sink).ok());
  EXPECT_THAT(sink.samples, SizeIs(2)) << "a value and the end of it";
}

TEST(ChipRowsTest, SeriesThatIsGoneLeavesWhenTheLayoutChanges) {
  RecordingSink sink;
  SeriesRows rows("hosts", "host-a", SeriesRows::Leaves::kLate);
  ASSERT_TRUE(rows.Write(At(0), Powers({"0", "1"}), &sink).ok());
  const int64_t forgotten = absl::ToInt64Seconds(SeriesRows::kForget) + 1;
  ASSERT_TRUE(rows.Write(At(1), Powers({"1"}), &sink).ok());
  ASSERT_TRUE(rows.Write(At(forgotten), Powers({"1", "2"}), &sink).ok());
  ASSERT_THAT(sink.layouts, SizeIs(2));
  EXPECT_EQ(sink.layouts[1].series_size(), 2);
}

TEST(ChipRowsTest, RefusedLayoutIsTriedAgain) {
  RecordingSink sink;
  SeriesRows rows("hosts", "host-a", SeriesRows::Leaves::kLate);
  sink.RefuseAfter(0);
  EXPECT_FALSE(rows.Write(At(10), Powers({"0"}), &sink).ok());
  sink.RefuseNothing();
  EXPECT_TRUE(rows.Write(At(20), Powers({"0"}), &sink).ok());
  EXPECT_THAT(sink.samples, SizeIs(1));
}

TEST(SampleTest, FirstValueOfASeriesStaysAndEmptyLabelsGo) {
  Sample sample;
  sample.Add(kPower, {{"chip", "0"}, {"serial", ""}}, 1);
  sample.Add(kPower, {{"chip", "0"}}, 2);
  sample.Add(kHeat, {{"chip", "0"}}, 3);
  ASSERT_THAT(sample.entries(), SizeIs(2));
  EXPECT_EQ(sample.entries()[0].metric, &kPower);
  EXPECT_EQ(sample.entries()[0].labels, (Labels{{"chip", "0"}}));
  EXPECT_EQ(sample.entries()[0].value, 1);
}

TEST(SampleTest, TooManySeriesAreLeftOutAndCounted) {
  Sample sample;
  for (size_t i = 0; i < Sample::kMaxSeries + 3; ++i) {
    sample.Add(kPower, {{"chip", absl::StrCat(i)}}, 1);
  }
  EXPECT_THAT(sample.entries(), SizeIs(Sample::kMaxSeries));
  EXPECT_EQ(sample.left_out(), 3);
}

TEST(ChipEventsTest, WaitForASinkThatRefusesAndAreBounded) {
  RecordingSink sink;
  ChipEvents events("hosts", "host-a");
  sink.RefuseAfter(1);
  for (size_t i = 0; i < ChipEvents::kMaxWaiting + 2; ++i) {
    events.Add(At(static_cast<int64_t>(i)), "chip_lost", "text", {{"chip", "0"}, {"none", ""}});
  }
  EXPECT_EQ(events.dropped(), 2);
  events.Flush(&sink);
  EXPECT_THAT(sink.events, SizeIs(1));
  EXPECT_EQ(events.waiting(), ChipEvents::kMaxWaiting - 1);
  sink.RefuseNothing();
  events.Flush(&sink);
  ASSERT_THAT(sink.events, SizeIs(ChipEvents::kMaxWaiting));
  EXPECT_EQ(sink.events[0].time_unix_ns(), 2'000'000'000) << "the oldest were dropped";
  EXPECT_EQ(sink.events[0].source().job(), "hosts");
  EXPECT_EQ(sink.events[0].source().host(), "host-a");
  EXPECT_EQ(sink.events[0].fields().size(), 1);
}

TEST(ChipEventsTest, LongTextIsCutBetweenCharacters) {
  RecordingSink sink;
  ChipEvents events("hosts", "host-a");
  events.Add(At(1), "kind", std::string(1023, 'x') + "ä", {});
  events.Flush(&sink);
  EXPECT_EQ(sink.events[0].message(), std::string(1023, 'x'));
}

}  // namespace
}  // namespace tacho::agent
