#include "server/interop/formats/otlp_shapes.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/otlp_metrics_service.pb.h"
#include "server/interop/otlp_metrics.h"

namespace tacho::server::interop {
namespace {

namespace otlp = opentelemetry::proto::metrics::v1;
using Request = opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest;
using ::testing::ElementsAre;

constexpr uint64_t kTime = 1'700'000'000'000'000'000;

class OtlpShapesTest : public ::testing::Test {
 protected:
  // A request with one resource.
  static Request Of(const std::string& resource) {
    Request request;
    auto* const attribute = request.add_resource_metrics()->mutable_resource()->add_attributes();
    attribute->set_key("service.name");
    attribute->mutable_value()->set_string_value(resource);
    request.mutable_resource_metrics(0)->add_scope_metrics();
    return request;
  }
  static otlp::Metric* AddGauge(const std::string& name, double value, Request* request) {
    otlp::Metric* const metric =
        request->mutable_resource_metrics(0)->mutable_scope_metrics(0)->add_metrics();
    metric->set_name(name);
    auto* const point = metric->mutable_gauge()->add_data_points();
    point->set_time_unix_nano(kTime);
    point->set_as_double(value);
    return metric;
  }
  static std::string ResourceOf(const Request& request) {
    return request.resource_metrics(0).resource().SerializeAsString();
  }

  OtlpMetrics Read(const Request& request) {
    auto read = ReadOtlpMetrics(request.SerializeAsString(), {"service.name"}, &memory_);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? *std::move(read) : OtlpMetrics();
  }
  // Series whose labels were made of the request.
  static size_t Parsed(const OtlpMetrics& read) { return read.write.texts.size(); }
  static std::vector<double> Values(const OtlpMetrics& read) {
    std::vector<double> values;
    for (const ForeignSample& sample : read.write.samples) values.push_back(sample.value);
    return values;
  }

  OtlpMemory memory_{2000};
};

TEST_F(OtlpShapesTest, TheThirdExportIsRecognised) {
  Request request = Of("vision");
  AddGauge("loss", 1, &request)->set_description("Of the batch.");
  AddGauge("rate", 2, &request);
  EXPECT_EQ(Parsed(Read(request)), 2u) << "a resource that comes once is not learnt";
  EXPECT_EQ(Parsed(Read(request)), 2u);
  for (auto& metric :
       *request.mutable_resource_metrics(0)->mutable_scope_metrics(0)->mutable_metrics()) {
    auto* const point = metric.mutable_gauge()->mutable_data_points(0);
    point->set_time_unix_nano(kTime + 5);
    point->set_as_double(point->as_double() + 10);
  }
  const OtlpMetrics read = Read(request);
  EXPECT_EQ(Parsed(read), 0u);
  EXPECT_THAT(Values(read), ElementsAre(11, 12));
  EXPECT_EQ(read.write.samples[0].time_ns, static_cast<int64_t>(kTime + 5));
  ASSERT_NE(read.write.series[0].metric, nullptr);
  EXPECT_EQ(read.write.series[0].metric->help, "Of the batch.");
}

TEST_F(OtlpShapesTest, OneMetricMoreOrLessLeavesTheOthersKnown) {
  Request request = Of("vision");
  for (int i = 0; i < 5; ++i) AddGauge(absl::StrCat("m", i), i, &request);
  Read(request);
  Read(request);
  auto* const metrics =
      request.mutable_resource_metrics(0)->mutable_scope_metrics(0)->mutable_metrics();
  metrics->erase(metrics->begin() + 1);
  AddGauge("new", 9, &request);
  metrics->SwapElements(0, 2);
  const OtlpMetrics read = Read(request);
  EXPECT_EQ(Parsed(read), 1u);
  EXPECT_THAT(Values(read), ElementsAre(3, 2, 0, 4, 9));
}

TEST_F(OtlpShapesTest, AnotherLabelIsAnotherSeries) {
  Request request = Of("vision");
  auto* const attribute =
      AddGauge("loss", 1, &request)->mutable_gauge()->mutable_data_points(0)->add_attributes();
  attribute->set_key("gpu");
  attribute->mutable_value()->set_string_value("0");
  for (int i = 0; i < 3; ++i) Read(request);
  attribute->mutable_value()->set_string_value("1");
  const OtlpMetrics read = Read(request);
  EXPECT_EQ(Parsed(read), 1u);
  EXPECT_THAT(*LabelsOfKey(read.write.series[0].key),
              ::testing::Contains(::testing::Pair("gpu", "1")));
}

TEST_F(OtlpShapesTest, WhatIsNotUsedIsForgottenAndStaysForThoseWhoHoldIt) {
  Request first = Of("first");
  AddGauge("loss", 1, &first);
  for (int i = 0; i < 3; ++i) Read(first);
  const OtlpMetrics held = Read(first);
  EXPECT_EQ(Parsed(held), 0u);
  for (int i = 0; i < 10'000; ++i) memory_.shapes.Remember(absl::StrCat("resource ", i));
  EXPECT_EQ(memory_.shapes.Find(ResourceOf(first)), nullptr);
  EXPECT_NE(memory_.shapes.Find("resource 9999"), nullptr);
  EXPECT_THAT(
      *LabelsOfKey(held.write.series[0].key),
      ElementsAre(::testing::Pair("__name__", "loss"), ::testing::Pair("service_name", "first")));
}

TEST_F(OtlpShapesTest, WhatIsUsedIsNotForgotten) {
  Request used = Of("used");
  AddGauge("loss", 1, &used);
  for (int i = 0; i < 3; ++i) Read(used);
  for (int i = 0; i < 10'000; ++i) {
    memory_.shapes.Remember(absl::StrCat("resource ", i));
    if (i % 100 != 0) continue;
    ASSERT_EQ(Parsed(Read(used)), 0u) << i;
  }
}

// Metrics of ever new names, as identifiers in names make them, in a resource that is always used.
TEST_F(OtlpShapesTest, AResourceDoesNotGrowForEver) {
  Read(Of("endless"));
  std::weak_ptr<OtlpResourceShapes> shapes;
  int times = 0;
  for (int i = 0; i < 20'000; ++i) {
    Request request = Of("endless");
    AddGauge(absl::StrCat("metric ", i), 1, &request);
    Read(request);
    if (shapes.expired()) {
      ++times;
      shapes = memory_.shapes.Find(ResourceOf(request));
    }
  }
  EXPECT_GT(times, 3);
}

TEST_F(OtlpShapesTest, ManyMetricsOfOneNameAreReadAsBefore) {
  Request request = Of("vision");
  for (int i = 0; i < 100; ++i) {
    AddGauge("loss", i, &request)->set_unit(absl::StrCat(i));
  }
  for (int i = 0; i < 3; ++i) Read(request);
  const OtlpMetrics read = Read(request);
  EXPECT_EQ(Parsed(read), 100u - 64u);
  EXPECT_EQ(read.write.samples.size(), 100u);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(read.write.samples[i].value, static_cast<double>(i));
}

}  // namespace
}  // namespace tacho::server::interop
