#include "server/metrics/metric_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tacho::server::metrics {
namespace {

using testing::ElementsAre;
using testing::Field;

TEST(MetricFamilies, TakeNameHelpAndTypeFromTheTable) {
  prometheus::Registry registry;
  NewCounter(&registry, "tacho_config_reloads_total", {{"result", "success"}}).Increment();
  NewCounter(&registry, "tacho_config_reloads_total", {{"result", "success"}}).Increment();
  const auto families = registry.Collect();
  ASSERT_EQ(families.size(), 1u);
  EXPECT_EQ(families[0].name, "tacho_config_reloads_total");
  EXPECT_EQ(families[0].help, "Reloads that were asked for: success, failure.");
  EXPECT_EQ(families[0].type, prometheus::MetricType::Counter);
  ASSERT_EQ(families[0].metric.size(), 1u) << "asking twice returns the same counter";
  EXPECT_EQ(families[0].metric[0].counter.value, 2);
}

TEST(MetricFamilies, HelpSaysWhenAFamilyIsThere) {
  EXPECT_THAT(Metric("tacho_job_planned_steps").Help(),
              "The attribute planned_steps. If it is recorded.");
}

TEST(MetricFamilies, ALineHasTheValueOfItsType) {
  EXPECT_THAT(OneLine("tacho_ready", 1).metric,
              ElementsAre(Field(&prometheus::ClientMetric::gauge,
                                Field(&prometheus::ClientMetric::Gauge::value, 1))));
  EXPECT_THAT(OneLine("process_cpu_seconds_total", 2).metric,
              ElementsAre(Field(&prometheus::ClientMetric::counter,
                                Field(&prometheus::ClientMetric::Counter::value, 2))));
}

TEST(MetricFamiliesDeathTest, AFamilyOfAnotherTypeEndsTheProcess) {
  prometheus::Registry registry;
  EXPECT_DEATH(NewGauge(&registry, "tacho_config_reloads_total"), "check failed");
}

TEST(FindMetric, KnowsTheRowsAndNothingElse) {
  for (const MetricSection& section : kMetricSections) {
    for (const MetricInfo& info : section.metrics) EXPECT_EQ(FindMetric(info.name), &info);
  }
  EXPECT_EQ(FindMetric("tacho_nothing"), nullptr);
}

}  // namespace
}  // namespace tacho::server::metrics
