#include "server/interop/formats/native_histogram.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/prometheus_remote.pb.h"
#include "proto/base/stale_marker.h"

namespace tacho::server::interop {
namespace {

using ::prometheus_remote::Histogram;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

void AddSpan(google::protobuf::RepeatedPtrField<::prometheus_remote::BucketSpan>* spans, int offset,
             uint32_t length) {
  auto* const span = spans->Add();
  span->set_offset(offset);
  span->set_length(length);
}

TEST(NativeHistogramTest, NegativeZeroAndPositiveBucketsAddUp) {
  Histogram histogram;
  histogram.set_count_float(10);
  histogram.set_sum(-3);
  histogram.set_schema(0);
  histogram.set_zero_threshold(0.001);
  histogram.set_zero_count_float(4);
  AddSpan(histogram.mutable_negative_spans(), 1, 2);  // (-2, -1] and (-4, -2], mirrored.
  histogram.add_negative_counts(1);
  histogram.add_negative_counts(2);
  AddSpan(histogram.mutable_positive_spans(), 0, 1);  // (0.5, 1]
  AddSpan(histogram.mutable_positive_spans(), 2, 1);  // Two are left out: (4, 8].
  histogram.add_positive_counts(1);
  histogram.add_positive_counts(2);
  const auto classic = ReadNativeHistogram(histogram.SerializeAsString());
  ASSERT_TRUE(classic.ok()) << classic.status();
  EXPECT_THAT(classic->buckets, ElementsAre(Pair("-2", 2), Pair("-1", 3), Pair("0.001", 7),
                                            Pair("1", 8), Pair("8", 10), Pair("+Inf", 10)));
}

TEST(NativeHistogramTest, ASchemaIsTheNumberOfBucketsAPowerOfTwoHas) {
  Histogram histogram;
  histogram.set_count_int(1);
  histogram.set_schema(3);
  AddSpan(histogram.mutable_positive_spans(), 8, 1);  // The eighth bound of schema 3 is 2.
  histogram.add_positive_deltas(1);
  EXPECT_EQ(ReadNativeHistogram(histogram.SerializeAsString())->buckets[0].first, "2");
  histogram.set_schema(-1);
  EXPECT_EQ(ReadNativeHistogram(histogram.SerializeAsString())->buckets[0].first, "65536");
}

TEST(NativeHistogramTest, CustomBoundsAreTakenAsTheyAre) {
  Histogram histogram;
  histogram.set_count_int(6);
  histogram.set_schema(-53);
  histogram.add_custom_values(0.1);
  histogram.add_custom_values(2.5);
  AddSpan(histogram.mutable_positive_spans(), 0, 3);
  for (const int delta : {1, 1, 1}) histogram.add_positive_deltas(delta);
  EXPECT_THAT(ReadNativeHistogram(histogram.SerializeAsString())->buckets,
              ElementsAre(Pair("0.1", 1), Pair("2.5", 3), Pair("+Inf", 6)));
}

TEST(NativeHistogramTest, TheEndOfASeriesIsSeenByItsSum) {
  Histogram histogram;
  histogram.set_sum(StaleMarker());
  EXPECT_TRUE(ReadNativeHistogram(histogram.SerializeAsString())->stale);
}

TEST(NativeHistogramTest, WhatDoesNotFitIsRefused) {
  const auto problem = [](const Histogram& histogram) {
    return std::string(ReadNativeHistogram(histogram.SerializeAsString()).status().message());
  };
  Histogram schema;
  schema.set_schema(9);
  EXPECT_THAT(problem(schema), HasSubstr("schema 9"));
  Histogram more;
  AddSpan(more.mutable_positive_spans(), 0, 1'000'000'000);
  EXPECT_THAT(problem(more), HasSubstr("more buckets than it has"));
  Histogram less;
  less.add_positive_deltas(1);
  EXPECT_THAT(problem(less), HasSubstr("1 buckets"));
  Histogram far;
  for (int i = 0; i < 2; ++i) AddSpan(far.mutable_positive_spans(), INT32_MAX, 1);
  far.add_positive_deltas(1);
  far.add_positive_deltas(1);
  EXPECT_EQ(problem(far), "") << "a bound of +Inf, but no overflow";
  Histogram bounds;
  bounds.set_schema(-53);
  bounds.add_custom_values(1);
  bounds.add_custom_values(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(problem(bounds), HasSubstr("do not ascend"));
}

}  // namespace
}  // namespace tacho::server::interop
