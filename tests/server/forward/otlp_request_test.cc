// Our own reader of OTLP, and the mapping that is built in, make of it what it was.
#include "server/forward/otlp_request.h"

#include <bit>

#include "gmock/gmock.h"
#include "interop/otlp_metrics_service.pb.h"
#include "proto/base/stale_marker.h"
#include "server/interop/formats/foreign_write.h"
#include "server/interop/formats/label_mapping.h"
#include "server/interop/otlp_metrics.h"
#include "tests/server/memory_store.h"

namespace tacho::server::forward {
namespace {

using opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr int64_t kTimeNs = 1'700'000'000'123'456'789;
// As the configuration has them if it says nothing.
const std::vector<std::string> kResourceAttributes = {
    "service.name", "service.namespace", "service.instance.id", "host.name",     "tacho.job",
    "tacho.host",   "tacho.task",        "tacho.attempt",       "k8s.node.name",
};

config::v1::Forward Otlp() {
  config::v1::Forward config;
  config.set_protocol("otlp");
  return config;
}

class OtlpRequestTest : public testing::Test {
 protected:
  SeriesTextPtr TextOf(const storage::SeriesPtr& series, uint32_t attempt = 0,
                       const config::v1::Forward& config = Otlp()) {
    const auto naming = SeriesNaming::Create(config, "forward[0]");
    EXPECT_TRUE(naming.ok()) << naming.status();
    return (*naming)->TextOf(*series, attempt);
  }
  void Add(const SeriesTextPtr& text, int64_t time_ns, double value) {
    const WriteSample sample = {time_ns, value};
    batch_.Add(text, {&sample, 1});
  }
  // The message after a journey.
  const interop::ForeignWrite& Arrived() {
    batch_.Finish();
    interop::OtlpMemory memory(1000);
    auto read = interop::ReadOtlpMetrics(EncodeOtlp(batch_), kResourceAttributes, &memory);
    EXPECT_TRUE(read.ok()) << read.status();
    if (read.ok()) arrived_ = *std::move(read);
    EXPECT_EQ(arrived_.rejected, 0u) << arrived_.problem;
    return arrived_.write;
  }
  interop::MappedSeries Mapped(size_t series) {
    const auto mapping = interop::LabelMapping::Create({});
    auto mapped = (*mapping)->Map(*interop::LabelsOfKey(arrived_.write.series[series].key));
    EXPECT_TRUE(mapped.ok()) << mapped.status();
    return *std::move(mapped);
  }

  MemoryStore store_;
  WriteBatch batch_;
  interop::OtlpMetrics arrived_;
};

TEST_F(OtlpRequestTest, TheReceiverStoresWhatIsStoredHere) {
  const auto series =
      store_.AddSeries("ml/bert", MetricNamed("tpu.hbm.used"), 3, "h1",
                       {{"attempt", "own"}, {"chip", "7"}, {"instance", "x:1"}, {"metric", "a"}});
  const uint64_t nan = 0x7ff8000000000123;
  Add(TextOf(series, 2), kTimeNs, std::bit_cast<double>(nan));
  Add(TextOf(series, 2), kTimeNs + 1, -0.0);
  const auto& write = Arrived();
  ASSERT_EQ(write.samples.size(), 2u);
  EXPECT_EQ(write.samples[0].time_ns, kTimeNs);
  EXPECT_EQ(std::bit_cast<uint64_t>(write.samples[0].value), nan);
  EXPECT_EQ(write.samples[1].time_ns, kTimeNs + 1);
  EXPECT_EQ(std::bit_cast<uint64_t>(write.samples[1].value), std::bit_cast<uint64_t>(-0.0));
  for (size_t i = 0; i < 2; ++i) {
    const auto mapped = Mapped(i);
    EXPECT_EQ(mapped.source, (storage::Source{"ml/bert", 3, 2, "h1"}));
    EXPECT_EQ(mapped.metric, "tpu.hbm.used");
    EXPECT_THAT(mapped.labels, ElementsAre(Pair("attempt", "own"), Pair("chip", "7"),
                                           Pair("instance", "x:1"), Pair("metric", "a")));
  }
}

TEST_F(OtlpRequestTest, LabelsThatSayWhereASeriesIsFromDoNotMoveIt) {
  const auto series =
      store_.AddSeries("job", MetricNamed("loss"), std::nullopt, "h1",
                       {{"host_name", "other"}, {"service_name", "other"}, {"tacho_task", "9"}});
  Add(TextOf(series), kTimeNs, 1);
  Arrived();
  EXPECT_EQ(Mapped(0).source, (storage::Source{"job", std::nullopt, 0, "h1"}));
  EXPECT_THAT(Mapped(0).labels,
              ElementsAre(Pair("exported_tacho_task", "9"), Pair("host_name", "other"),
                          Pair("service_name", "other")));
}

TEST_F(OtlpRequestTest, OnlyWhatGrowsIsACumulativeMonotonicSum) {
  storage::Metric steps = MetricNamed("steps", storage::MetricType::kCounter, "1");
  steps.help = "Steps so far";
  Add(TextOf(store_.AddSeries("job", steps, 0, "h1")), kTimeNs, 7);
  Add(TextOf(store_.AddSeries("job", steps, 0, "h1", {{"le", "2"}})), kTimeNs, 8);
  Add(TextOf(store_.AddSeries("job", MetricNamed("loss"), 0, "h1")), kTimeNs, 0.5);
  Add(TextOf(store_.AddSeries("job", MetricNamed("loss"), 1, "h1")), kTimeNs, 0.25);
  batch_.Finish();
  ExportMetricsServiceRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodeOtlp(batch_)));
  ASSERT_EQ(request.resource_metrics_size(), 2);  // Of the two tasks.
  ASSERT_EQ(request.resource_metrics(0).scope_metrics_size(), 1);
  const auto& metrics = request.resource_metrics(0).scope_metrics(0).metrics();
  ASSERT_EQ(metrics.size(), 2);
  EXPECT_EQ(metrics[0].name(), "steps");
  EXPECT_EQ(metrics[0].unit(), "1");
  EXPECT_EQ(metrics[0].description(), "Steps so far");
  EXPECT_TRUE(metrics[0].sum().is_monotonic());
  EXPECT_EQ(metrics[0].sum().aggregation_temporality(),
            opentelemetry::proto::metrics::v1::AGGREGATION_TEMPORALITY_CUMULATIVE);
  EXPECT_EQ(metrics[0].sum().data_points_size(), 2);
  EXPECT_EQ(metrics[1].name(), "loss");
  EXPECT_EQ(metrics[1].gauge().data_points(0).as_double(), 0.5);
  EXPECT_EQ(request.resource_metrics(1).scope_metrics(0).metrics(0).gauge().data_points_size(), 1);
}

TEST_F(OtlpRequestTest, AnEndHasNoRecordedValue) {
  const auto series = store_.AddSeries("job", MetricNamed("loss"), 0, "h1");
  Add(TextOf(series), kTimeNs, StaleMarker());
  const auto& write = Arrived();
  ASSERT_EQ(write.samples.size(), 1u);
  EXPECT_TRUE(IsStaleMarker(write.samples[0].value));
  EXPECT_EQ(write.samples[0].time_ns, kTimeNs);
  ExportMetricsServiceRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodeOtlp(batch_)));
  const auto& point =
      request.resource_metrics(0).scope_metrics(0).metrics(0).gauge().data_points(0);
  EXPECT_EQ(point.flags(), 1u);
  EXPECT_EQ(point.value_case(), point.VALUE_NOT_SET);
}

TEST_F(OtlpRequestTest, ARuleThatKeepsTheNameKeepsTheRealOne) {
  config::v1::Forward config = Otlp();
  auto* rule = config.add_relabel();
  rule->set_job("renamed-{job}");
  rule->set_host("{host}");
  rule->set_task("{task}");
  rule->set_attempt("{attempt}");
  rule->set_metric("{__name__}");
  const auto series = store_.AddSeries("job", MetricNamed("tpu.hbm.used"), 3, "h1");
  Add(TextOf(series, 1, config), kTimeNs, 1);
  rule->set_metric("other_{__name__}");
  Add(TextOf(series, 1, config), kTimeNs, 1);
  Arrived();
  EXPECT_EQ(Mapped(0).source, (storage::Source{"renamed-job", 3, 1, "h1"}));
  EXPECT_EQ(Mapped(0).metric, "tpu.hbm.used");
  EXPECT_THAT(Mapped(0).labels, IsEmpty());
  EXPECT_EQ(Mapped(1).metric, "other_tpu_hbm_used");
}

}  // namespace
}  // namespace tacho::server::forward
