// Records of the index: they come back as they were, and nothing else is taken for one.
#include "storage/index/index_records.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/codec/bytes.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

SeriesRecord MakeSeriesRecord() {
  SeriesRecord record;
  record.series_before = 300;
  record.task = UINT32_MAX;
  record.host = "host-1";
  record.label_sets = {{}, {{"chip", "0"}, {"zone", "a"}}};
  record.series = {{7, 1}, {8, 1}, {UINT32_MAX, 0}, {1, 0}};
  return record;
}

TEST(IndexRecordsTest, SeriesComeBackAsTheyWere) {
  const SeriesRecord record = MakeSeriesRecord();
  const std::string bytes = EncodeSeriesRecord(record);
  EXPECT_EQ(DecodeSeriesRecord(bytes), record);
  SeriesRecord no_task = record;
  no_task.task = std::nullopt;
  const std::string other = EncodeSeriesRecord(no_task);
  EXPECT_EQ(DecodeSeriesRecord(other), no_task);
}

TEST(IndexRecordsTest, NeighbouringSeriesTakeTwoBytesEach) {
  SeriesRecord record{.host = "h", .label_sets = {{}}};
  for (MetricId metric = 1; metric <= 88; ++metric) record.series.push_back({metric, 0});
  EXPECT_LE(EncodeSeriesRecord(record).size(), 88 * 2 + 8);
}

TEST(IndexRecordsTest, EveryTruncationOfARecordIsRefused) {
  const std::string series = EncodeSeriesRecord(MakeSeriesRecord());
  for (size_t size = 0; size < series.size(); ++size) {
    EXPECT_FALSE(DecodeSeriesRecord(absl::string_view(series).substr(0, size))) << size;
  }
  EXPECT_FALSE(DecodeSeriesRecord(series + '\0'));
  const std::string layout = EncodeLayoutRecord({.attempt = 300, .ranges = {{500, 3}, {1, 1}}});
  for (size_t size = 0; size < layout.size(); ++size) {
    EXPECT_FALSE(DecodeLayoutRecord(absl::string_view(layout).substr(0, size))) << size;
  }
  const std::string next = EncodeNextIds({300, 300, 300});
  for (size_t size = 0; size < next.size(); ++size) {
    EXPECT_FALSE(DecodeNextIds(absl::string_view(next).substr(0, size))) << size;
  }
}

TEST(IndexRecordsTest, ReferencesToWhatCannotBeAreRefused) {
  SeriesRecord record = MakeSeriesRecord();
  record.series[0].labels = 2;
  EXPECT_FALSE(DecodeSeriesRecord(EncodeSeriesRecord(record))) << "there are two label sets";
  record = MakeSeriesRecord();
  record.series[2].metric = 0;
  EXPECT_FALSE(DecodeSeriesRecord(EncodeSeriesRecord(record))) << "metrics count from 1";
  record.series.clear();
  EXPECT_FALSE(DecodeSeriesRecord(EncodeSeriesRecord(record))) << "no series";
  EXPECT_FALSE(DecodeLayoutRecord(EncodeLayoutRecord({.ranges = {{0, 1}}})));
  EXPECT_FALSE(DecodeLayoutRecord(EncodeLayoutRecord({.ranges = {{1, 0}}})));
  EXPECT_FALSE(DecodeLayoutRecord(EncodeLayoutRecord({.ranges = {}})));
  EXPECT_FALSE(DecodeLayoutRecord(EncodeLayoutRecord({.ranges = {{UINT64_MAX, 2}}})));
  EXPECT_TRUE(DecodeLayoutRecord(EncodeLayoutRecord({.ranges = {{1, kMaxLayoutColumns}}})));
  EXPECT_FALSE(DecodeLayoutRecord(EncodeLayoutRecord({.ranges = {{1, kMaxLayoutColumns + 1}}})));
  EXPECT_FALSE(DecodeNextIds(EncodeNextIds({0, 1, 1})));
}

TEST(IndexRecordsTest, ALayoutIsRangesOfSeriesInItsOrder) {
  LayoutRecord record{.attempt = 2, .has_steps = true};
  for (const SeriesId id : {5, 6, 7, 3, 4, 9}) record.Add(id);
  EXPECT_THAT(record.ranges, ElementsAre(Pair(5, 3), Pair(3, 2), Pair(9, 1)));
  EXPECT_EQ(record.columns(), 6u);
  EXPECT_EQ(DecodeLayoutRecord(EncodeLayoutRecord(record)), record);
}

}  // namespace
}  // namespace tacho::storage
