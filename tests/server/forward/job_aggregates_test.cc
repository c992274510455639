#include "server/forward/job_aggregates.h"

#include <cmath>

#include "gmock/gmock.h"
#include "interop/otlp_metrics.pb.h"
#include "interop/otlp_resource.pb.h"

namespace tacho::server::forward {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr char kPage[] = R"(# HELP tacho_job_loss Of the job's tasks
# TYPE tacho_job_loss gauge
tacho_job_loss{job="a\"b",stat="avg"} 0.1
tacho_job_loss{job="c",stat="max"} NaN
# TYPE tacho_job_examples_total counter
tacho_job_examples_total{job="c",stat="sum",metric="examples"} 1e+300
# HELP tacho_other Not about jobs
# TYPE tacho_other gauge
tacho_other{job="c"} 7
)";

JobAggregates Make(const config::v1::Forward& config) {
  auto made = JobAggregates::Create(config, "forward[0]");
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

TEST(JobAggregatesTest, LinesAboutJobsBecomeSamplesWithTheirLabelsAndTypes) {
  const auto samples = Make({}).Read(kPage);
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 3u);
  const AggregateSample& loss = (*samples)[0];
  EXPECT_THAT(loss.text->labels, ElementsAre(Pair("__name__", "tacho_job_loss"),
                                             Pair("job", "a\"b"), Pair("stat", "avg")));
  EXPECT_EQ(loss.value, 0.1);
  EXPECT_EQ(loss.text->type, storage::MetricType::kGauge);
  EXPECT_EQ(loss.text->help, "Of the job's tasks");
  EXPECT_FALSE(loss.text->labels_bytes.empty());
  EXPECT_TRUE(std::isnan((*samples)[1].value));
  EXPECT_EQ((*samples)[2].value, 1e300);
  EXPECT_EQ((*samples)[2].text->type, storage::MetricType::kCounter);
}

TEST(JobAggregatesTest, SelectorsChoose) {
  config::v1::Forward config;
  config.mutable_aggregates()->add_match("{__name__=\"tacho_job_loss\",job=\"c\"}");
  const auto samples = Make(config).Read(kPage);
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 1u);
  EXPECT_TRUE(std::isnan((*samples)[0].value));
}

TEST(JobAggregatesTest, ForOtlpTheJobIsTheServiceAndThereIsNoHost) {
  config::v1::Forward config;
  config.set_protocol("otlp");
  const auto samples = Make(config).Read(kPage);
  ASSERT_TRUE(samples.ok()) << samples.status();
  const OtlpText& text = *(*samples)[2].text->otlp;
  opentelemetry::proto::resource::v1::Resource resource;
  ASSERT_TRUE(resource.ParseFromString(text.resource));
  ASSERT_EQ(resource.attributes_size(), 1);
  EXPECT_EQ(resource.attributes(0).key(), "service.name");
  EXPECT_EQ(resource.attributes(0).value().string_value(), "c");
  opentelemetry::proto::metrics::v1::NumberDataPoint point;
  ASSERT_TRUE(point.ParseFromString(text.attributes));
  ASSERT_EQ(point.attributes_size(), 2);
  EXPECT_EQ(point.attributes(0).key(), "metric");
  EXPECT_EQ(point.attributes(1).key(), "stat");
  EXPECT_TRUE(text.grows);
}

TEST(JobAggregatesTest, APageWithoutJobsHasNone) {
  const auto samples = Make({}).Read("# TYPE tacho_other gauge\ntacho_other 7\n");
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_THAT(*samples, IsEmpty());
}

}  // namespace
}  // namespace tacho::server::forward
