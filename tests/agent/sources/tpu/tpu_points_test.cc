#include "agent/sources/tpu/tpu_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "interop/tpu_metric_service.pb.h"
#include "tests/support/libtpu/fake_libtpu.h"

namespace tacho::agent {
namespace {

namespace proto = ::tpu::monitoring::runtime;
using ::tacho::testing::AddWithPairs;
using ::tacho::testing::DeviceGauges;
using ::tacho::testing::SetDistribution;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::SizeIs;

proto::TPUMetric Distribution(const std::vector<int64_t>& counts, double growth = 2) {
  proto::TPUMetric metric;
  SetDistribution(100, growth, counts, 150, 1000, AddWithPairs({}, &metric));
  return metric;
}

TEST(TpuPointsTest, DeviceIdIsTextUnderOneSpelling) {
  const TpuPoints decoded = DecodeTpuMetric(DeviceGauges("m", {{8, 1.5}, {13, 2.5}}));
  ASSERT_THAT(decoded.points, SizeIs(2));
  EXPECT_THAT(decoded.points[1].labels, ElementsAre(Pair("device_id", "13")));
  EXPECT_EQ(decoded.points[1].value, 2.5);
}

TEST(TpuPointsTest, OrdinalAsTextAndAsNumberAreOne) {
  proto::TPUMetric metric;
  AddWithPairs({{"device_ordinal", "3"}}, &metric)->mutable_gauge()->set_as_int(7);
  proto::Metric* const older = AddWithPairs({}, &metric);
  proto::Attribute* const pair =
      older->mutable_attribute()->mutable_value()->mutable_kvlist_attr()->add_attributes();
  pair->set_key("device_ordinal");
  pair->mutable_value()->set_int_attr(3);
  older->mutable_gauge()->set_as_int(8);
  const TpuPoints decoded = DecodeTpuMetric(metric);
  ASSERT_THAT(decoded.points, SizeIs(2));
  EXPECT_EQ(decoded.points[0].labels, decoded.points[1].labels);
}

TEST(TpuPointsTest, DashesAndUnderscoresAreOne) {
  proto::TPUMetric metric;
  AddWithPairs({{"buffer-size", "8MB"}}, &metric)->mutable_counter()->set_as_int(1);
  AddWithPairs({{"buffer_size", "8MB"}}, &metric)->mutable_counter()->set_as_int(2);
  const TpuPoints decoded = DecodeTpuMetric(metric);
  EXPECT_EQ(decoded.points[0].labels, decoded.points[1].labels);
}

TEST(TpuPointsTest, EveryKindOfGauge) {
  proto::TPUMetric metric;
  metric.add_metrics()->mutable_gauge()->set_as_bool(true);
  metric.add_metrics()->mutable_gauge()->set_as_string("2.5");
  metric.add_metrics()->mutable_gauge();
  metric.add_metrics()->mutable_gauge()->set_as_string("many");
  metric.add_metrics();
  const TpuPoints decoded = DecodeTpuMetric(metric);
  ASSERT_THAT(decoded.points, SizeIs(3));
  EXPECT_EQ(decoded.points[0].value, 1);
  EXPECT_EQ(decoded.points[1].value, 2.5);
  EXPECT_EQ(decoded.points[2].value, 0);
  EXPECT_EQ(decoded.left_out, 2) << "no number, and nothing";
}

TEST(TpuPointsTest, ExponentialBuckets) {
  const TpuPoints decoded = DecodeTpuMetric(Distribution({1, 2, 3, 4}));
  ASSERT_THAT(decoded.points, SizeIs(1));
  EXPECT_EQ(decoded.points[0].start_ns, 1'000'000'000'000);
  const TpuDistribution& d = *decoded.points[0].distribution;
  EXPECT_THAT(d.bounds, ElementsAre(100, 200, 400));
  EXPECT_THAT(d.counts, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(d.count, 10);
  EXPECT_EQ(d.sum, 1500);
}

TEST(TpuPointsTest, LinearAndExplicitBuckets) {
  proto::TPUMetric metric = Distribution({1, 2, 3});
  auto* const options = metric.mutable_metrics(0)->mutable_distribution()->mutable_bucket_options();
  auto* const linear = options->mutable_linear_buckets();
  linear->set_num_finite_buckets(1);
  linear->set_width(5);
  linear->set_offset(10);
  EXPECT_THAT(DecodeTpuMetric(metric).points.at(0).distribution->bounds, ElementsAre(10, 15));
  options->mutable_explicit_buckets()->add_bounds(1);
  options->mutable_explicit_buckets()->add_bounds(7);
  EXPECT_THAT(DecodeTpuMetric(metric).points.at(0).distribution->bounds, ElementsAre(1, 7));
}

TEST(TpuPointsTest, BucketsThatDoNotFitAreLeftOutAndCounted) {
  proto::TPUMetric short_by_one = Distribution({1, 2, 3, 4});
  short_by_one.mutable_metrics(0)->mutable_distribution()->mutable_bucket_counts()->RemoveLast();
  proto::TPUMetric negative = Distribution({1, -2, 3});
  proto::TPUMetric not_ascending = Distribution({1, 2, 3}, 1);
  proto::TPUMetric infinite = Distribution({1, 2, 3}, std::numeric_limits<double>::infinity());
  proto::TPUMetric too_many = Distribution(std::vector<int64_t>(kMaxTpuBuckets + 2, 1), 1.01);
  proto::TPUMetric huge = Distribution({1, 2, 3});
  huge.mutable_metrics(0)
      ->mutable_distribution()
      ->mutable_bucket_options()
      ->mutable_exponential_buckets()
      ->set_num_finite_buckets(INT32_MAX);
  for (const auto& metric : {short_by_one, negative, not_ascending, infinite, too_many, huge}) {
    EXPECT_THAT(DecodeTpuMetric(metric).points, IsEmpty());
    EXPECT_EQ(DecodeTpuMetric(metric).left_out, 1);
  }
  EXPECT_THAT(
      DecodeTpuMetric(Distribution(std::vector<int64_t>(kMaxTpuBuckets + 1, 1), 1.01)).points,
      SizeIs(1));
}

TEST(TpuPointsTest, TooManyPointsAreLeftOut) {
  proto::TPUMetric metric;
  for (size_t i = 0; i < kMaxTpuPoints + 2; ++i) metric.add_metrics()->mutable_gauge();
  EXPECT_THAT(DecodeTpuMetric(metric).points, SizeIs(kMaxTpuPoints));
  EXPECT_EQ(DecodeTpuMetric(metric).left_out, 2);
}

TEST(PercentileTest, IsInterpolatedWithinItsBucket) {
  const TpuDistribution d = {
      .count = 8, .sum = 0, .bounds = {100, 200, 400}, .counts = {0, 4, 4, 0}};
  EXPECT_THAT(PercentileOf(d, 0.25), Optional(150));
  EXPECT_THAT(PercentileOf(d, 0.75), Optional(300));
  EXPECT_THAT(PercentileOf(d, 1), Optional(400));
}

TEST(PercentileTest, EndsHaveOneBound) {
  const TpuDistribution d = {.count = 4, .sum = 0, .bounds = {100, 200}, .counts = {2, 0, 2}};
  EXPECT_THAT(PercentileOf(d, 0.25), Optional(100));
  EXPECT_THAT(PercentileOf(d, 0.99), Optional(200));
}

TEST(PercentileTest, NothingCountedIsNoNumber) {
  EXPECT_EQ(PercentileOf({.count = 0, .sum = 0, .bounds = {1, 2}, .counts = {0, 0, 0}}, 0.5),
            std::nullopt);
}

}  // namespace
}  // namespace tacho::agent
