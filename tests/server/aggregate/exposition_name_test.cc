#include "server/aggregate/exposition_name.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tacho::server::aggregate {
namespace {

using storage::MetricType;

std::string Gauge(absl::string_view name) {
  const ExpositionName made = ExpositionNameOf("tacho_job_{metric}", name, MetricType::kGauge);
  return made.family + (made.metric_label.empty() ? "" : "{" + made.metric_label + "}");
}
std::string Counter(absl::string_view name) {
  const ExpositionName made = ExpositionNameOf("tacho_job_{metric}", name, MetricType::kCounter);
  return made.family + (made.metric_label.empty() ? "" : "{" + made.metric_label + "}");
}

TEST(ExpositionName, LeavesAPlainNameAsItIs) {
  EXPECT_EQ(Gauge("loss"), "tacho_job_loss");
  EXPECT_EQ(Gauge("data_wait_seconds"), "tacho_job_data_wait_seconds");
  EXPECT_EQ(Counter("examples_total"), "tacho_job_examples_total");
}

TEST(ExpositionName, KeepsTheOriginalAsALabelWhereTheFamilyDiffers) {
  EXPECT_EQ(Gauge("tpu.hbm.used"), "tacho_job_tpu_hbm_used{tpu.hbm.used}");
  EXPECT_EQ(Gauge("train/loss (ema)"), "tacho_job_train_loss_ema{train/loss (ema)}");
  EXPECT_EQ(Gauge("Loss"), "tacho_job_loss{Loss}");
  EXPECT_EQ(Gauge("LearningRate"), "tacho_job_learning_rate{LearningRate}");
  EXPECT_EQ(Gauge("GPU 0"), "tacho_job_gpu_0{GPU 0}");
  EXPECT_EQ(Gauge("\xe6\x8d\x9f\xe5\xa4\xb1"), "tacho_job_metric{\xe6\x8d\x9f\xe5\xa4\xb1}");
  EXPECT_EQ(Counter("examples"), "tacho_job_examples_total{examples}");
}

TEST(ExpositionName, GivesNoGaugeAnEndingThatPrometheusReserves) {
  EXPECT_EQ(Gauge("bytes_total"), "tacho_job_bytes_total_value{bytes_total}");
  EXPECT_EQ(Gauge("count"), "tacho_job_count_value{count}");
  EXPECT_EQ(Gauge("grad.sum"), "tacho_job_grad_sum_value{grad.sum}");
  EXPECT_EQ(Gauge("x_bucket"), "tacho_job_x_bucket_value{x_bucket}");
  EXPECT_EQ(Gauge("x_info"), "tacho_job_x_info_value{x_info}");
  EXPECT_EQ(Gauge("account"), "tacho_job_account");
}

TEST(ExpositionName, LeavesTheCollectorsOwnFamiliesAlone) {
  for (const char* own :
       {"tasks", "hosts", "attempt", "last_step", "last_seen_timestamp_seconds"}) {
    EXPECT_EQ(Gauge(own), std::string("tacho_job_") + own + "_value{" + own + "}");
  }
}

TEST(ExpositionName, KeepsDifferentMetricsApart) {
  std::set<std::string> made;
  const char* const names[] = {"a.b",     "a:b",   "a_b",         "A.B",   "a b",
                               "a_b_",    "a_sum", "a_sum_value", "a.sum", "x",
                               "x_total", "X",     "metric",      ".",     ":"};
  for (const char* name : names) {
    EXPECT_TRUE(made.insert("gauge " + Gauge(name)).second) << name;
    EXPECT_TRUE(made.insert("counter " + Counter(name)).second) << name;
  }
}

TEST(ExpositionName, NeverMixesTypesInAFamily) {
  for (const char* name : {"x", "x_total", "X.total", "total", "a_total_value"}) {
    for (const char* other : {"x", "x_total", "X.total", "total", "a_total_value"}) {
      EXPECT_NE(ExpositionNameOf("tacho_job_{metric}", name, MetricType::kGauge).family,
                ExpositionNameOf("tacho_job_{metric}", other, MetricType::kCounter).family);
    }
  }
}

TEST(ExpositionName, IsWhatARuleSays) {
  const auto name = [](absl::string_view rename, absl::string_view metric, MetricType type) {
    const ExpositionName made = ExpositionNameOf(rename, metric, type);
    return made.family + (made.metric_label.empty() ? "" : "{" + made.metric_label + "}");
  };
  EXPECT_EQ(name("tacho_chip_{metric}", "power", MetricType::kGauge), "tacho_chip_power");
  EXPECT_EQ(name("tacho_{metric}_now", "a.b", MetricType::kGauge), "tacho_a_b_now{a.b}");
  EXPECT_EQ(name("tacho_hbm_bytes", "tpu.hbm.used", MetricType::kGauge), "tacho_hbm_bytes");
  EXPECT_EQ(name("tacho_tokens", "tok", MetricType::kCounter), "tacho_tokens_total");
  EXPECT_EQ(name("tacho_tokens_total", "tok", MetricType::kCounter), "tacho_tokens_total");
  EXPECT_EQ(name("{metric}", "lag_seconds_bucket", MetricType::kHistogram),
            "lag_seconds{lag_seconds_bucket}");
  EXPECT_EQ(RateFamily("tacho_tokens_total"), "tacho_tokens_per_second");
}

}  // namespace
}  // namespace tacho::server::aggregate
