#include "server/interop/otlp_metrics.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/otlp_metrics_service.pb.h"
#include "proto/base/stale_marker.h"

namespace tacho::server::interop {
namespace {

namespace otlp = opentelemetry::proto::metrics::v1;
using Request = opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr uint64_t kTime = 1'700'000'000'000'000'000;

class OtlpMetricsTest : public testing::Test {
 protected:
  OtlpMetricsTest() {
    auto* const resource = request_.add_resource_metrics();
    auto* const attribute = resource->mutable_resource()->add_attributes();
    attribute->set_key("service.name");
    attribute->mutable_value()->set_string_value("vision");
    auto* const other = resource->mutable_resource()->add_attributes();
    other->set_key("telemetry.sdk.name");
    other->mutable_value()->set_string_value("x");
    metrics_ = resource->add_scope_metrics();
  }
  otlp::Metric* Metric(const char* name) {
    auto* const metric = metrics_->add_metrics();
    metric->set_name(name);
    return metric;
  }
  template <typename Points>
  static auto* Point(Points* points, uint64_t time = kTime) {
    auto* const point = points->Add();
    point->set_time_unix_nano(time);
    return point;
  }
  OtlpMetrics Read() {
    auto read = ReadOtlpMetrics(request_.SerializeAsString(), {"service.name"}, &memory_);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? *std::move(read) : OtlpMetrics();
  }
  // (labels as text, value) of all samples.
  static std::vector<std::pair<std::string, double>> Samples(const OtlpMetrics& read) {
    std::vector<std::pair<std::string, double>> samples;
    for (const auto& series : read.write.series) {
      std::string text;
      const auto labels = LabelsOfKey(series.key);
      for (const auto& [name, value] : *labels) {
        if (name != "service_name") absl::StrAppend(&text, text.empty() ? "" : ",", value);
      }
      samples.emplace_back(text, read.write.samples[series.first].value);
    }
    return samples;
  }

  Request request_;
  otlp::ScopeMetrics* metrics_;
  OtlpMemory memory_{100};
};

TEST_F(OtlpMetricsTest, AGaugeKeepsItsNameAndTheAttributesThatAreWanted) {
  auto* const metric = Metric("train.loss");
  metric->set_unit("1");
  metric->set_description("Loss.");
  auto* const point = Point(metric->mutable_gauge()->mutable_data_points());
  point->set_as_double(0.25);
  auto* const attribute = point->add_attributes();
  attribute->set_key("gpu.index");
  attribute->mutable_value()->set_int_value(3);
  const auto read = Read();
  ASSERT_EQ(read.write.series.size(), 1u);
  EXPECT_THAT(*LabelsOfKey(read.write.series[0].key),
              ElementsAre(Pair("__name__", "train.loss"), Pair("gpu_index", "3"),
                          Pair("service_name", "vision")));
  EXPECT_EQ(read.write.samples[0].time_ns, static_cast<int64_t>(kTime));
  EXPECT_EQ(read.write.metrics[0].unit, "1");
  EXPECT_EQ(read.write.metrics[0].help, "Loss.");
  EXPECT_EQ(read.write.metrics[0].type, storage::MetricType::kGauge);
}

TEST_F(OtlpMetricsTest, AMonotonicSumIsACounterAndWholeNumbersAreTaken) {
  auto* const sum = Metric("requests")->mutable_sum();
  sum->set_is_monotonic(true);
  sum->set_aggregation_temporality(otlp::AGGREGATION_TEMPORALITY_CUMULATIVE);
  Point(sum->mutable_data_points())->set_as_int(-7);
  const auto read = Read();
  EXPECT_THAT(Samples(read), ElementsAre(Pair("requests", -7)));
  EXPECT_EQ(read.write.metrics[0].type, storage::MetricType::kCounter);
}

TEST_F(OtlpMetricsTest, DeltasAreAddedUpAndARepeatedRequestAddsNothing) {
  auto* const sum = Metric("requests")->mutable_sum();
  sum->set_aggregation_temporality(otlp::AGGREGATION_TEMPORALITY_DELTA);
  auto* const point = Point(sum->mutable_data_points());
  point->set_as_int(5);
  EXPECT_THAT(Samples(Read()), ElementsAre(Pair("requests", 5)));
  EXPECT_THAT(Samples(Read()), IsEmpty()) << "the same request again";
  point->set_time_unix_nano(kTime + 1);
  EXPECT_THAT(Samples(Read()), ElementsAre(Pair("requests", 10)));
}

// The value does not fall, so only the start time tells.
TEST_F(OtlpMetricsTest, ACounterThatBeginsAgainWasZeroThen) {
  auto* const sum = Metric("requests")->mutable_sum();
  sum->set_is_monotonic(true);
  sum->set_aggregation_temporality(otlp::AGGREGATION_TEMPORALITY_CUMULATIVE);
  auto* const point = Point(sum->mutable_data_points());
  point->set_as_int(5);
  point->set_start_time_unix_nano(kTime - 1000);
  for (int i = 0; i < 4; ++i) EXPECT_THAT(Samples(Read()), ElementsAre(Pair("requests", 5)));
  point->set_time_unix_nano(kTime + 5'000'000);
  point->set_start_time_unix_nano(kTime);  // The last value before is of the same time.
  point->set_as_int(7);
  for (int i = 0; i < 3; ++i) {
    const auto read = Read();
    ASSERT_EQ(read.write.series.size(), 1u);
    ASSERT_EQ(read.write.series[0].count, 2u) << "not stored, so it comes again";
    EXPECT_EQ(read.write.samples[0].time_ns, static_cast<int64_t>(kTime + 1'000'000));
    EXPECT_EQ(read.write.samples[0].value, 0);
    EXPECT_EQ(read.write.samples[1].value, 7);
    if (i < 2) read.noted.TakeBack(&memory_);
  }
  point->set_time_unix_nano(kTime + 6'000'000);
  EXPECT_EQ(Read().write.samples.size(), 1u);
  point->set_start_time_unix_nano(kTime - 1000);
  EXPECT_EQ(Read().write.samples.size(), 1u) << "it comes late";
  point->set_start_time_unix_nano(0);
  EXPECT_EQ(Read().write.samples.size(), 1u) << "it does not say";
}

// So does the SDK for JavaScript where an observed counter falls: its first value after the reset
// would be counted twice if a zero came behind it.
TEST_F(OtlpMetricsTest, AStartAtTheTimeOfItsFirstValueHasNoZero) {
  auto* const sum = Metric("joules")->mutable_sum();
  sum->set_is_monotonic(true);
  sum->set_aggregation_temporality(otlp::AGGREGATION_TEMPORALITY_CUMULATIVE);
  auto* const point = Point(sum->mutable_data_points());
  constexpr uint64_t kSecond = 1'000'000'000;
  for (const auto& [time, start] : {std::pair(0u, 0u), std::pair(1u, 0u), std::pair(2u, 2u),
                                    std::pair(3u, 2u), std::pair(4u, 2u)}) {
    point->set_time_unix_nano(kTime + time * kSecond);
    point->set_start_time_unix_nano(kTime + start * kSecond);
    point->set_as_int(1);
    EXPECT_EQ(Read().write.samples.size(), 1u) << time;
  }
}

// A process that has run for long is known all the same, as after a restart of the collector.
TEST_F(OtlpMetricsTest, AStartOfLongAgoIsKnownAndIsNotStored) {
  constexpr uint64_t kHour = 3'600'000'000'000;
  auto* const histogram = Metric("latency")->mutable_histogram();
  histogram->set_aggregation_temporality(otlp::AGGREGATION_TEMPORALITY_CUMULATIVE);
  auto* const point = Point(histogram->mutable_data_points());
  point->set_count(5);
  const auto samples_with_start = [&](uint64_t start) {
    point->set_start_time_unix_nano(start);
    return Read().write.samples.size();
  };
  EXPECT_EQ(samples_with_start(kTime - 5 * kHour), 2u) << "NAME_count, and the bucket of +Inf";
  EXPECT_EQ(samples_with_start(kTime - 2 * kHour), 2u) << "too old to be stored";
  EXPECT_EQ(samples_with_start(kTime - kHour + 1), 4u);
  EXPECT_EQ(samples_with_start(kTime - 5 * kHour), 2u) << "it comes late";
}

TEST_F(OtlpMetricsTest, WhatDoesNotCountHasNoZeroAtItsStart) {
  auto* const point = Point(Metric("depth")->mutable_sum()->mutable_data_points());
  auto* const gauge = Point(Metric("heat")->mutable_gauge()->mutable_data_points());
  for (int i = 1; i < 5; ++i) {
    point->set_start_time_unix_nano(kTime - 10 + static_cast<uint64_t>(i));
    point->set_as_int(i);
    gauge->set_start_time_unix_nano(kTime - 10 + static_cast<uint64_t>(i));
    gauge->set_as_int(i);
    EXPECT_EQ(Read().write.samples.size(), 2u);
  }
}

TEST_F(OtlpMetricsTest, DeltasOfARequestThatIsNotStoredAreTakenBack) {
  auto* const sum = Metric("requests")->mutable_sum();
  sum->set_aggregation_temporality(otlp::AGGREGATION_TEMPORALITY_DELTA);
  Point(sum->mutable_data_points())->set_as_int(5);
  Point(sum->mutable_data_points(), kTime + 1)->set_as_int(2);
  Read().noted.TakeBack(&memory_);
  EXPECT_THAT(Samples(Read()), ElementsAre(Pair("requests", 5), Pair("requests", 7)));
}

TEST_F(OtlpMetricsTest, AHistogramHasCumulativeBucketsAndItsEnds) {
  auto* const histogram = Metric("latency")->mutable_histogram();
  auto* const point = Point(histogram->mutable_data_points());
  point->set_count(6);
  point->set_sum(9.5);
  point->set_min(0.5);
  point->set_max(4);
  for (const uint64_t count : {1, 2, 3}) point->add_bucket_counts(count);
  for (const double bound : {1.0, 2.5}) point->add_explicit_bounds(bound);
  EXPECT_THAT(
      Samples(Read()),
      ElementsAre(Pair("latency_count", 6), Pair("latency_sum", 9.5), Pair("latency_min", 0.5),
                  Pair("latency_max", 4), Pair("latency_bucket,1", 1),
                  Pair("latency_bucket,2.5", 3), Pair("latency_bucket,+Inf", 6)));
}

TEST_F(OtlpMetricsTest, AnExponentialHistogramHasTheBoundsOfItsScale) {
  auto* const histogram = Metric("latency")->mutable_exponential_histogram();
  auto* const point = Point(histogram->mutable_data_points());
  point->set_count(6);
  point->set_scale(0);
  point->set_zero_count(1);
  point->mutable_positive()->set_offset(1);  // (2, 4], (4, 8]
  for (const uint64_t count : {2, 2}) point->mutable_positive()->add_bucket_counts(count);
  point->mutable_negative()->set_offset(0);  // [-2, -1)
  point->mutable_negative()->add_bucket_counts(1);
  EXPECT_THAT(Samples(Read()),
              ElementsAre(Pair("latency_count", 6), Pair("latency_bucket,-1", 1),
                          Pair("latency_bucket,0", 2), Pair("latency_bucket,4", 4),
                          Pair("latency_bucket,8", 6), Pair("latency_bucket,+Inf", 6)));
}

TEST_F(OtlpMetricsTest, ASummaryHasItsQuantiles) {
  auto* const point = Point(Metric("rpc")->mutable_summary()->mutable_data_points());
  point->set_count(2);
  point->set_sum(3);
  auto* const at = point->add_quantile_values();
  at->set_quantile(0.99);
  at->set_value(2);
  EXPECT_THAT(Samples(Read()),
              ElementsAre(Pair("rpc_count", 2), Pair("rpc_sum", 3), Pair("rpc,0.99", 2)));
}

TEST_F(OtlpMetricsTest, NoRecordedValueEndsTheSeries) {
  auto* const point = Point(Metric("m")->mutable_gauge()->mutable_data_points());
  point->set_flags(1);
  const auto read = Read();
  EXPECT_TRUE(IsStaleMarker(read.write.samples.at(0).value));
  EXPECT_EQ(read.rejected, 0u);
}

TEST_F(OtlpMetricsTest, WhatCannotBeReadIsRejectedAloneAndInWords) {
  Point(Metric("without_time")->mutable_gauge()->mutable_data_points(), 0)->set_as_int(1);
  Point(Metric("")->mutable_gauge()->mutable_data_points())->set_as_int(1);
  Point(Metric("no_value")->mutable_gauge()->mutable_data_points());
  auto* const bounds = Point(Metric("bounds")->mutable_histogram()->mutable_data_points());
  bounds->add_bucket_counts(1);
  bounds->add_explicit_bounds(1);
  auto* const deltas = Metric("deltas")->mutable_exponential_histogram();
  deltas->set_aggregation_temporality(otlp::AGGREGATION_TEMPORALITY_DELTA);
  Point(deltas->mutable_data_points());
  Point(Metric("scale")->mutable_exponential_histogram()->mutable_data_points())->set_scale(99);
  Point(Metric("good")->mutable_gauge()->mutable_data_points())->set_as_int(1);
  const auto read = Read();
  EXPECT_EQ(read.rejected, 6u);
  EXPECT_THAT(read.problem, HasSubstr("without_time has no time"));
  EXPECT_THAT(Samples(read), ElementsAre(Pair("good", 1)));
}

TEST_F(OtlpMetricsTest, NamesThatBecomeOneAreJoinedAndAPointsOwnAttributeComesFirst) {
  auto* const point = Point(Metric("m")->mutable_gauge()->mutable_data_points());
  point->set_as_int(1);
  for (const auto& [key, value] : {std::pair("a.b", "1"), {"a_b", "2"}, {"service.name", "own"}}) {
    auto* const attribute = point->add_attributes();
    attribute->set_key(key);
    attribute->mutable_value()->set_string_value(value);
  }
  const auto read = Read();
  EXPECT_THAT(*LabelsOfKey(read.write.series.at(0).key),
              ElementsAre(Pair("__name__", "m"), Pair("a_b", "1;2"), Pair("service_name", "own")));
}

// The labels of a resource are those of each of its points.
TEST_F(OtlpMetricsTest, AFewBytesDoNotBecomeManyGigabytes) {
  auto* const name =
      request_.mutable_resource_metrics(0)->mutable_resource()->mutable_attributes(0);
  name->mutable_value()->set_string_value(std::string(1 << 20, 'x'));
  auto* const sum = Metric("m")->mutable_sum();
  sum->set_aggregation_temporality(otlp::AGGREGATION_TEMPORALITY_DELTA);
  for (int i = 0; i < 1000; ++i) Point(sum->mutable_data_points(), kTime + i)->set_as_int(1);
  const auto read = ReadOtlpMetrics(request_.SerializeAsString(), {"service.name"}, &memory_);
  EXPECT_TRUE(absl::IsResourceExhausted(read.status())) << read.status();
  EXPECT_THAT(read.status().message(), HasSubstr("send fewer samples"));
}

TEST_F(OtlpMetricsTest, DeltasWithoutRoomAreRejectedUntilOthersHaveBeenSilent) {
  auto* const sum = Metric("requests")->mutable_sum();
  sum->set_aggregation_temporality(otlp::AGGREGATION_TEMPORALITY_DELTA);
  for (int i = 0; i < 101; ++i) {
    auto* const point = Point(sum->mutable_data_points());
    point->set_as_int(1);
    auto* const attribute = point->add_attributes();
    attribute->set_key("i");
    attribute->mutable_value()->set_int_value(i);
  }
  auto read = Read();
  EXPECT_EQ(read.write.samples.size(), 100u);
  EXPECT_EQ(read.rejected, 1u);
  EXPECT_THAT(read.problem, HasSubstr("no room"));
  // The first hundred fall silent; one of them is heard two hours later.
  sum->mutable_data_points(0)->set_time_unix_nano(kTime + uint64_t{7200} * 1'000'000'000);
  sum->mutable_data_points(100)->set_time_unix_nano(kTime + uint64_t{7200} * 1'000'000'000);
  read = Read();
  EXPECT_EQ(read.write.samples.size(), 2u);
  EXPECT_EQ(read.rejected, 0u);
}

TEST_F(OtlpMetricsTest, ValuesOfAllKindsBecomeTexts) {
  auto* const point = Point(Metric("m")->mutable_gauge()->mutable_data_points());
  point->set_as_int(1);
  auto* const list = point->add_attributes();
  list->set_key("a");
  list->mutable_value()->mutable_array_value()->add_values()->set_bool_value(true);
  list->mutable_value()->mutable_array_value()->add_values()->set_double_value(0.5);
  // Nested without end.
  auto* const deep = point->add_attributes();
  deep->set_key("b");
  auto* value = deep->mutable_value();
  for (int i = 0; i < 40; ++i) value = value->mutable_array_value()->add_values();
  EXPECT_THAT(Samples(Read())[0].first, HasSubstr("m,[true,0.5],[[[[[[[[…]]]]]]]]"));
}

}  // namespace
}  // namespace tacho::server::interop
