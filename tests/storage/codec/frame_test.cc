#include "storage/codec/frame.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"
#include "storage/codec/bytes.h"
#include "storage/codec/column_codec.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }
const double kStale = StaleMarker();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Decoded from what was encoded; the size in front of the values.
struct Read {
  ColumnStats stats;
  size_t size = 0;
};
Read RoundTrip(const std::vector<double>& values) {
  std::string bytes;
  EncodeStats(ColumnStats::Of(values), static_cast<uint32_t>(values.size()), &bytes);
  Read read;
  read.size = bytes.size();
  ByteReader in(bytes);
  EXPECT_EQ(DecodeStats(static_cast<uint32_t>(values.size()), &in, &read.stats),
            DecodedStats::kWritten);
  EXPECT_TRUE(in.AtEnd());
  return read;
}

void ExpectSame(const ColumnStats& a, const ColumnStats& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.non_finite, b.non_finite);
  EXPECT_EQ(Bits(a.min), Bits(b.min));
  EXPECT_EQ(Bits(a.max), Bits(b.max));
  EXPECT_EQ(Bits(a.sum), Bits(b.sum)) << a.sum << " " << b.sum;
  EXPECT_EQ(Bits(a.first), Bits(b.first));
  EXPECT_EQ(Bits(a.last), Bits(b.last));
}

TEST(ColumnStatsTest, EveryKindOfColumnComesBackToTheBitAndSmall) {
  const size_t rows = 100;
  const auto make = [&](const auto& value) {
    std::vector<double> values;
    for (size_t i = 0; i < rows; ++i) values.push_back(value(static_cast<double>(i)));
    return values;
  };
  const struct {
    const char* name;
    std::vector<double> values;
    size_t most;  // Bytes.
  } kinds[] = {
      {"constant", make([](double) { return 1980.0; }), 6},
      {"percent", make([](double i) { return std::round(9200 + 80 * std::sin(i)) / 100; }), 13},
      {"counter", make([](double i) { return 9e14 + 7e9 * i; }), 20},
      {"floats", make([](double i) { return static_cast<float>(1 / (i + 3)); }), 17},
      {"doubles", make([](double i) { return 1 / (i + 3) + std::sin(i); }), 41},
      {"with gaps", make([](double i) { return std::fmod(i, 3) == 0 ? kStale : i; }), 12},
      {"not finite", make([](double i) { return i < 50 ? kInfinity : -kInfinity; }), 40},
      {"negative zero", make([](double i) { return i == 7 ? -0.0 : 0.0; }), 24},
      {"huge", make([](double i) { return 1e308 * (i - 50) / 50; }), 43},
      {"denormal", make([](double i) { return 5e-324 * i; }), 41},
      {"nan first", make([](double i) { return i == 0 ? std::nan("7") : i; }), 43},
  };
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind.name);
    const Read read = RoundTrip(kind.values);
    ExpectSame(read.stats, ColumnStats::Of(kind.values));
    EXPECT_LE(read.size, kind.most);
  }
}

TEST(ColumnStatsTest, AnyBitsComeBack) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<double> values(kRowsWithoutStats + 1 + random() % 20);
    const unsigned kind = random() % 4;
    const double scale = std::pow(10, random() % 17);
    for (double& value : values) {
      value = std::bit_cast<double>(random());
      if (kind == 1)
        value = static_cast<double>(static_cast<int64_t>(random() % 100'000) - 7) / scale;
      if (kind == 2)
        value = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(random())));
      if (kind == 3) value = static_cast<double>(random() >> (random() % 64));
      if (random() % 16 == 0) value = kStale;
    }
    values[random() % values.size()] = 1;
    ExpectSame(RoundTrip(values).stats, ColumnStats::Of(values));
  }
}

class FrameTest : public testing::Test {
 protected:
  FrameTest() {
    layout_.id = 5;
    layout_.attempt = 3;
    layout_.has_steps = true;
    series_[0] = {.id = 7, .job_id = 1, .metric_id = 7};
    series_[1] = {.id = 8, .job_id = 1, .metric_id = 8};
    layout_.series = {&series_[0], &series_[1]};
  }

  std::vector<FrameRef> Encode(const FrameRows& rows) {
    return EncodeFrames(layout_, rows, 9, [&](int64_t, absl::string_view key, absl::string_view v) {
      columns_[std::string(key)] = std::string(v);
    });
  }
  TimeColumn Times(const FrameRef& frame) {
    auto column = DecodeTimeColumn(
        columns_.at(TimeColumnKey(1, frame.layout, frame.first_time_ns, frame.position)));
    EXPECT_TRUE(column.ok()) << column.status();
    return *std::move(column);
  }
  std::string& Column(const FrameRef& frame, SeriesId id) {
    return columns_[ValueColumnKey{1, static_cast<MetricId>(id), id, frame.first_time_ns,
                                   frame.position}
                        .Encode()];
  }
  std::vector<double> Values(const FrameRef& frame, SeriesId id) {
    const auto header = DecodeValueColumnHeader(frame.first_time_ns, Column(frame, id));
    EXPECT_TRUE(header.ok()) << header.status();
    std::vector<double> values;
    EXPECT_TRUE(ColumnCodec::DecodeValues(header->encoded, header->rows, &values).ok());
    ExpectSame(header->stats, ColumnStats::Of(values));
    EXPECT_EQ(header->last_time_ns, Times(frame).times.back());
    EXPECT_EQ(header->layout, 5u);
    return values;
  }

  Series series_[2];
  Layout layout_;
  std::map<std::string, std::string> columns_;
};

TEST_F(FrameTest, RowsAreSortedByTimeAndStepAndCutByDay) {
  const auto frames = Encode({.times = {kDayNs + 5, 20, 10, 10, kDayNs - 1},
                              .steps = {1, 2, 9, 8, 3},
                              .values = {1, 2, 3, 4, 5, 10, 20, 30, 40, 50}});
  ASSERT_THAT(frames, SizeIs(2));
  EXPECT_EQ(frames[0].day, 0);
  EXPECT_EQ(frames[0].rows, 4u);
  EXPECT_EQ(frames[0].first_time_ns, 10);
  EXPECT_THAT(Times(frames[0]).times, ElementsAre(10, 10, 20, kDayNs - 1));
  EXPECT_THAT(Times(frames[0]).steps, ElementsAre(8, 9, 2, 3));
  EXPECT_EQ(Times(frames[0]).attempt, 3u);
  EXPECT_THAT(Values(frames[0], 7), ElementsAre(4, 3, 2, 5));
  EXPECT_THAT(Values(frames[0], 8), ElementsAre(40, 30, 20, 50));
  EXPECT_EQ(frames[1].day, 1);
  EXPECT_THAT(Values(frames[1], 8), ElementsAre(10));
}

TEST_F(FrameTest, RowsOfOneTimeAndStepBecomeOneAndNoValueIsNoWrite) {
  const auto frames = Encode({.times = {10, 20, 10, 10},
                              .steps = {1, 1, 1, 2},
                              .values = {1, 2, 3, 4, 10, 20, kStale, 40}});
  ASSERT_THAT(frames, SizeIs(1));
  EXPECT_THAT(Times(frames[0]).times, ElementsAre(10, 10, 20));
  EXPECT_THAT(Times(frames[0]).steps, ElementsAre(1, 2, 1));
  EXPECT_THAT(Values(frames[0], 7), ElementsAre(3, 4, 2));
  EXPECT_THAT(Values(frames[0], 8), ElementsAre(10, 40, 20));
}

TEST_F(FrameTest, ASeriesWithoutValuesHasNoColumn) {
  const auto frames =
      Encode({.times = {10, 20}, .steps = {1, 2}, .values = {1, 2, kStale, kStale}});
  EXPECT_THAT(columns_, SizeIs(2));
  EXPECT_THAT(Values(frames[0], 7), ElementsAre(1, 2));
}

TEST_F(FrameTest, AnySpanOfTimeIsKept) {
  const std::vector<std::pair<int64_t, int64_t>> spans = {
      {0, 0}, {0, 1}, {-999, -7}, {5, 1'000'005}, {1'000, kDayNs - 1'000}, {-kDayNs, -1}};
  for (const auto& [first, last] : spans) {
    const auto frames = Encode({.times = {first, last}, .steps = {1, 2}, .values = {1, 3, 2, 4}});
    ASSERT_THAT(frames, SizeIs(1));
    EXPECT_THAT(Values(frames[0], 7), ElementsAre(1, 3)) << first << " to " << last;
  }
}

// Statistics are believed where they can be: what no encoder writes is damage, not a figure.
TEST_F(FrameTest, ADamagedHeaderIsDataLoss) {
  FrameRows rows;
  for (int i = 0; i < 20; ++i) {
    rows.times.push_back(i * 1000);
    rows.steps.push_back(i);
    rows.values.push_back(i % 5 == 0 ? kStale : i / 10.0);
  }
  for (int i = 0; i < 20; ++i) rows.values.push_back(std::sin(i));
  const auto frames = Encode(rows);
  const auto decode = [&](const std::string& bytes) {
    return DecodeValueColumnHeader(0, bytes).status().code();
  };
  for (const SeriesId id : {7, 8}) {
    const std::string whole = Column(frames[0], id);
    const size_t header = whole.size() - DecodeValueColumnHeader(0, whole)->encoded.size();
    for (size_t size = 0; size < header; ++size) {
      EXPECT_EQ(decode(whole.substr(0, size)), absl::StatusCode::kDataLoss) << size;
    }
  }
  constexpr size_t kForm = 3;  // Behind layout, rows and span.
  std::string bytes = Column(frames[0], 7);
  for (const int form : {0x03, 0x18, 0x60, 0x83}) {
    bytes[kForm] = static_cast<char>(form);
    EXPECT_EQ(decode(bytes), absl::StatusCode::kDataLoss) << form;
  }
  bytes = Column(frames[0], 7);
  ASSERT_EQ(bytes[kForm + 1], 4) << "rows without a value";
  bytes[kForm + 1] = 20;
  EXPECT_EQ(decode(bytes), absl::StatusCode::kDataLoss) << "no value";
  bytes[kForm + 1] = 4;
  bytes[kForm + 2] = 17;
  EXPECT_EQ(decode(bytes), absl::StatusCode::kDataLoss)
      << "more that are not finite than there are";
}

}  // namespace
}  // namespace tacho::storage
