#include "server/interop/passing/passed_series.h"

#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"

namespace tacho::server::interop {
namespace {

using testing::HasSubstr;

std::string KeyOf(int number) {
  std::string key;
  AppendLabel("__name__", "loss", &key);
  AppendLabel("series", absl::StrCat(number), &key);
  return key;
}

// By key: (time, bits), in order.
std::map<std::string, std::vector<std::pair<int64_t, uint64_t>>> SamplesOf(
    const ForeignWrite& write) {
  std::map<std::string, std::vector<std::pair<int64_t, uint64_t>>> samples;
  for (const ForeignSeries& series : write.series) {
    for (uint32_t i = 0; i < series.count; ++i) {
      const ForeignSample& sample = write.samples[series.first + i];
      samples[std::string(series.key)].emplace_back(sample.time_ns,
                                                    std::bit_cast<uint64_t>(sample.value));
    }
  }
  return samples;
}

TEST(PassedSeriesTest, ComesBackAsItWas) {
  ForeignWrite write;
  write.ends_at_once = true;
  ForeignMetric& own = write.metrics.emplace_back();
  own.typed = true;
  own.type = storage::MetricType::kCounter;
  own.unit = "s";
  own.help = "\xff is not UTF-8";
  ForeignMetric& told = write.metrics.emplace_back();
  told.name = "told_apart";
  write.AddSeriesWithText(KeyOf(1), &own, ForeignSeries::Part::kHistogram);
  write.AddSample(1, 0.1);
  write.AddSample(INT64_MIN, -0.0);
  write.AddSeriesWithText(KeyOf(2), nullptr, ForeignSeries::Part::kOfHistogram);
  for (const double value : {StaleMarker(), std::nan("7"), HUGE_VAL}) write.AddSample(2, value);
  write.AddSeriesWithText(KeyOf(3), nullptr, ForeignSeries::Part::kSample);
  write.AddSample(INT64_MAX, 3);

  const std::vector<uint32_t> some = {0, 1};
  const auto messages = PassedSeries(write, some);
  ASSERT_EQ(messages.size(), 1u);
  v1::StoreSeriesRequest received;
  ASSERT_TRUE(received.ParseFromString(messages[0].SerializeAsString()));
  const auto read = ReadPassedSeries(received);
  ASSERT_TRUE(read.ok()) << read.status();
  auto expected = SamplesOf(write);
  expected.erase(KeyOf(3));
  EXPECT_EQ(SamplesOf(*read), expected);
  EXPECT_TRUE(read->ends_at_once);
  ASSERT_EQ(read->series.size(), 2u);
  EXPECT_EQ(read->series[0].part, ForeignSeries::Part::kHistogram);
  EXPECT_EQ(read->series[1].part, ForeignSeries::Part::kOfHistogram);
  ASSERT_NE(read->series[0].metric, nullptr);
  EXPECT_TRUE(read->series[0].metric->typed);
  EXPECT_EQ(read->series[0].metric->type, storage::MetricType::kCounter);
  EXPECT_EQ(read->series[0].metric->unit, "s");
  EXPECT_THAT(read->series[0].metric->help, HasSubstr("is not UTF-8"));
  EXPECT_EQ(read->series[1].metric, nullptr);
  EXPECT_TRUE(TellsMetrics(*read));
}

TEST(PassedSeriesTest, ALargeRequestIsSeveralMessages) {
  ForeignWrite write;
  std::vector<uint32_t> all(3'000);
  std::iota(all.begin(), all.end(), 0);
  for (size_t i = 0; i < all.size(); ++i) {
    ForeignMetric& metric = write.metrics.emplace_back();
    metric.help = std::string(i % 7 * 100, 'h');
    write.AddSeriesWithText(KeyOf(static_cast<int>(i)), &metric, ForeignSeries::Part::kSample);
    const int samples = i == 1'500 ? 200'000 : 1 + static_cast<int>(i % 30);
    for (int s = 0; s < samples; ++s) write.AddSample(s, static_cast<double>(i) + s);
  }
  size_t messages = 0;
  std::map<std::string, std::vector<std::pair<int64_t, uint64_t>>> found;
  for (const auto& message : PassedSeries(write, all)) {
    ++messages;
    EXPECT_LE(message.ByteSizeLong(), kPassedBytes + (64 << 10));
    const auto read = ReadPassedSeries(message);
    ASSERT_TRUE(read.ok()) << read.status();
    for (const ForeignSeries& series : read->series) {
      ASSERT_NE(series.metric, nullptr);
      for (uint32_t i = 0; i < series.count; ++i) {
        const ForeignSample& sample = read->samples[series.first + i];
        found[std::string(series.key)].emplace_back(sample.time_ns,
                                                    std::bit_cast<uint64_t>(sample.value));
      }
    }
  }
  EXPECT_GT(messages, 5u);
  EXPECT_EQ(found, SamplesOf(write));
}

TEST(PassedSeriesTest, WhatContradictsItselfIsRefused) {
  v1::StoreSeriesRequest request;
  request.add_series()->add_values(1);
  EXPECT_THAT(std::string(ReadPassedSeries(request).status().message()),
              HasSubstr("series.values: each value needs one time"));
  request.mutable_series(0)->add_times_unix_ns(1);
  EXPECT_TRUE(ReadPassedSeries(request).ok());
  request.mutable_series(0)->set_metric(0);
  EXPECT_THAT(std::string(ReadPassedSeries(request).status().message()),
              HasSubstr("series.metric: 0 is no index"));
}

}  // namespace
}  // namespace tacho::server::interop
