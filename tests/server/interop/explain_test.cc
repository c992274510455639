#include "server/interop/explain.h"

#include <snappy.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/otlp_metrics_service.pb.h"
#include "interop/prometheus_remote.pb.h"
#include "interop/prometheus_write_v2.pb.h"

namespace tacho::server::interop {
namespace {

using testing::HasSubstr;

config::v1::Interop Config() {
  config::v1::Interop config;
  config.set_max_request_bytes(1 << 20);
  config.set_max_series(1000);
  config.add_otlp_resource_attributes("service.name");
  config.add_otlp_resource_attributes("host.name");
  return config;
}

std::string Request1() {
  ::prometheus_remote::WriteRequest request;
  for (const char* metric : {"up", "up", "tacho_job_loss"}) {
    auto* const series = request.add_timeseries();
    for (const auto& [name, value] :
         {std::pair("__name__", metric), {"job", "node"}, {"instance", "h7:9100"}}) {
      auto* const label = series->add_labels();
      label->set_name(name);
      label->set_value(value);
    }
    series->add_samples();
  }
  return request.SerializeAsString();
}

TEST(ExplainMappingTest, EachSeriesIsShownOnceWithWhatBecomesOfIt) {
  const auto text = ExplainMapping(Config(), Request1());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "{__name__=\"up\",job=\"node\",instance=\"h7:9100\"}\n"
            "  job node, host h7, by the built-in rule\n"
            "  up{instance=\"h7:9100\"}\n"
            "{__name__=\"tacho_job_loss\",job=\"node\",instance=\"h7:9100\"}\n"
            "  dropped by the built-in rule on the collector's own aggregates\n");
}

TEST(ExplainMappingTest, PackedRequestsAndTheOtherVersionAreUnderstood) {
  const std::string request = Request1();
  std::string packed;
  snappy::Compress(request.data(), request.size(), &packed);
  EXPECT_EQ(ExplainMapping(Config(), packed).value_or(""),
            ExplainMapping(Config(), request).value_or("-"));

  io::prometheus::write::v2::Request second;
  for (const char* symbol : {"", "__name__", "loss"}) second.add_symbols(symbol);
  auto* const series = second.add_timeseries();
  for (const uint32_t ref : {1, 2}) series->add_labels_refs(ref);
  series->add_samples();
  EXPECT_THAT(ExplainMapping(Config(), second.SerializeAsString()).value_or(""),
              HasSubstr("job unknown, host unknown"));
}

TEST(ExplainMappingTest, RequestsOfOpenTelemetryAreUnderstood) {
  opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest request;
  auto* const resource = request.add_resource_metrics();
  for (const auto& [name, value] :
       {std::pair("service.name", "vision"), {"host.name", "h7"}, {"process.pid", "9"}}) {
    auto* const attribute = resource->mutable_resource()->add_attributes();
    attribute->set_key(name);
    attribute->mutable_value()->set_string_value(value);
  }
  auto* const metric = resource->add_scope_metrics()->add_metrics();
  metric->set_name("train.loss");
  auto* const point = metric->mutable_gauge()->add_data_points();
  point->set_time_unix_nano(1);
  point->set_as_double(1);
  const auto text = ExplainMapping(Config(), request.SerializeAsString());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("job vision, host h7"));
  EXPECT_THAT(*text, HasSubstr("\n  train.loss"));
}

TEST(ExplainMappingTest, WhatIsNoRequestIsRefused) {
  for (const char* text : {"", "no request", "\x1f\x8b"}) {
    const auto refused = ExplainMapping(Config(), text);
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << text;
    EXPECT_THAT(refused.status().message(), HasSubstr("no request of remote write or of Open"));
  }
}

}  // namespace
}  // namespace tacho::server::interop
