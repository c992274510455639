// The rules of the specifications that a receiver has to keep; what it answers is in
// remote_write_door_test.cc.
#include "server/interop/formats/prometheus_write.h"

#include <bit>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/prometheus_remote.pb.h"
#include "interop/prometheus_write_v2.pb.h"
#include "proto/base/stale_marker.h"

namespace tacho::server::interop {
namespace {

namespace v2 = io::prometheus::write::v2;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

void Label(::prometheus_remote::TimeSeries* series, const char* name, const char* value) {
  auto* const label = series->add_labels();
  label->set_name(name);
  label->set_value(value);
}

storage::Labels LabelsOf(const ForeignWrite& write, size_t index) {
  return *LabelsOfKey(write.series.at(index).key);
}

// A request and its bytes, which keys point to.
struct Read {
  std::string bytes;
  absl::StatusOr<ForeignWrite> write;
};
Read Read1(const ::prometheus_remote::WriteRequest& request) {
  Read read{.bytes = request.SerializeAsString(), .write = ForeignWrite()};
  read.write = ReadWriteRequest1(read.bytes);
  return read;
}
std::unique_ptr<Read> Read2(const v2::Request& request) {
  auto read =
      std::make_unique<Read>(Read{.bytes = request.SerializeAsString(), .write = ForeignWrite()});
  read->write = ReadWriteRequest2(read->bytes);
  return read;
}

TEST(ReadWriteRequest1Test, SeriesSamplesAndBitsAreKept) {
  ::prometheus_remote::WriteRequest request;
  auto* const series = request.add_timeseries();
  Label(series, "__name__", "loss");
  Label(series, "job", "vision");
  const double nan = std::bit_cast<double>(uint64_t{0x7ff8000000000123});
  for (const auto& [time, value] : {std::pair(1'700'000'000'000, 0.5),
                                    {1'700'000'001'000, nan},
                                    {1'700'000'002'000, StaleMarker()}}) {
    auto* const sample = series->add_samples();
    sample->set_timestamp(time);
    sample->set_value(value);
  }
  auto bytes = request.SerializeAsString();
  const auto write = ReadWriteRequest1(bytes);
  ASSERT_TRUE(write.ok()) << write.status();
  ASSERT_EQ(write->series.size(), 1u);
  EXPECT_THAT(LabelsOf(*write, 0), ElementsAre(Pair("__name__", "loss"), Pair("job", "vision")));
  ASSERT_EQ(write->samples.size(), 3u);
  EXPECT_EQ(write->samples[0].time_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(std::bit_cast<uint64_t>(write->samples[1].value), 0x7ff8000000000123);
  EXPECT_TRUE(IsStaleMarker(write->samples[2].value));
}

TEST(ReadWriteRequest1Test, LabelsThatDoNotStandTogetherAreOneSeries) {
  ::prometheus_remote::TimeSeries first;
  Label(&first, "__name__", "loss");
  auto* const sample = first.add_samples();
  sample->set_timestamp(5);
  ::prometheus_remote::TimeSeries second;
  Label(&second, "job", "vision");
  ::prometheus_remote::WriteRequest request;
  *request.add_timeseries() = first;
  // One message after the other is their union: field by field, labels in two places.
  const std::string body = first.SerializeAsString() + second.SerializeAsString();
  std::string bytes = "\x0a";
  bytes += static_cast<char>(body.size());
  bytes += body;
  const auto write = ReadWriteRequest1(bytes);
  ASSERT_TRUE(write.ok()) << write.status();
  EXPECT_THAT(LabelsOf(*write, 0), ElementsAre(Pair("__name__", "loss"), Pair("job", "vision")));
}

TEST(ReadWriteRequest1Test, MetadataComesAloneAndExemplarsAreCounted) {
  ::prometheus_remote::WriteRequest request;
  auto* const metadata = request.add_metadata();
  metadata->set_type(::prometheus_remote::MetricMetadata::COUNTER);
  metadata->set_metric_family_name("requests");
  metadata->set_help("Requests.");
  auto* const series = request.add_timeseries();
  Label(series, "__name__", "m");
  series->add_samples();
  series->add_exemplars();
  const auto read = Read1(request);
  ASSERT_TRUE(read.write.ok());
  ASSERT_EQ(read.write->metrics.size(), 1u);
  EXPECT_EQ(read.write->metrics[0].type, storage::MetricType::kCounter);
  EXPECT_EQ(read.write->metrics[0].help, "Requests.");
  EXPECT_EQ(read.write->exemplars, 1u);
}

TEST(ReadWriteRequest1Test, ATimeThatDoesNotFitIsTheNearestThatDoes) {
  ::prometheus_remote::WriteRequest request;
  auto* const series = request.add_timeseries();
  Label(series, "__name__", "m");
  series->add_samples()->set_timestamp(INT64_MAX);
  series->add_samples()->set_timestamp(INT64_MIN);
  const auto read = Read1(request);
  EXPECT_EQ(read.write->samples[0].time_ns, INT64_MAX);
  EXPECT_EQ(read.write->samples[1].time_ns, INT64_MIN);
}

TEST(ReadWriteRequest1Test, EveryCutOfARequestIsRefusedOrRead) {
  ::prometheus_remote::WriteRequest request;
  for (int i = 0; i < 3; ++i) {
    auto* const series = request.add_timeseries();
    Label(series, "__name__", "loss");
    series->add_samples()->set_value(1);
  }
  const std::string bytes = request.SerializeAsString();
  int refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto write = ReadWriteRequest1(absl::string_view(bytes).substr(0, size));
    refused += write.ok() ? 0 : 1;
    EXPECT_TRUE(!write.ok() || write->samples.size() < 3u) << size;
  }
  EXPECT_GT(refused, 10);
}

TEST(ReadWriteRequest1Test, ANativeHistogramBecomesTheSeriesOfAClassicOne) {
  ::prometheus_remote::WriteRequest request;
  auto* const series = request.add_timeseries();
  Label(series, "__name__", "latency");
  Label(series, "job", "x");
  auto* const histogram = series->add_histograms();
  histogram->set_count_int(3);
  histogram->set_sum(7);
  histogram->set_schema(0);
  histogram->set_timestamp(5);
  auto* const span = histogram->add_positive_spans();
  span->set_offset(1);
  span->set_length(2);
  histogram->add_positive_deltas(2);
  histogram->add_positive_deltas(-1);
  const auto read = Read1(request);
  ASSERT_TRUE(read.write.ok()) << read.write.status();
  std::vector<std::pair<std::string, double>> found;
  for (size_t i = 0; i < read.write->series.size(); ++i) {
    std::string text;
    for (const auto& [name, value] : LabelsOf(*read.write, i)) text += name + "=" + value + ",";
    found.emplace_back(text, read.write->samples[i].value);
  }
  EXPECT_THAT(found, ElementsAre(Pair("__name__=latency_count,job=x,", 3),
                                 Pair("__name__=latency_sum,job=x,", 7),
                                 Pair("__name__=latency_bucket,le=2,job=x,", 2),
                                 Pair("__name__=latency_bucket,le=4,job=x,", 3),
                                 Pair("__name__=latency_bucket,le=+Inf,job=x,", 3)));
}

v2::Request Request2() {
  v2::Request request;
  for (const char* symbol : {"", "__name__", "loss", "job", "vision", "Loss.", "1"}) {
    request.add_symbols(symbol);
  }
  auto* const series = request.add_timeseries();
  for (const uint32_t ref : {1, 2, 3, 4}) series->add_labels_refs(ref);
  auto* const sample = series->add_samples();
  sample->set_value(2.5);
  sample->set_timestamp(9);
  series->mutable_metadata()->set_type(1);
  series->mutable_metadata()->set_help_ref(5);
  series->mutable_metadata()->set_unit_ref(6);
  return request;
}

TEST(ReadWriteRequest2Test, SymbolsBecomeTheSameKeysAsLabels) {
  const auto read = Read2(Request2());
  ASSERT_TRUE(read->write.ok()) << read->write.status();
  ::prometheus_remote::TimeSeries same;
  Label(&same, "__name__", "loss");
  Label(&same, "job", "vision");
  EXPECT_EQ(read->write->series[0].key, same.SerializeAsString());
  EXPECT_EQ(read->write->metrics[0].help, "Loss.");
  EXPECT_EQ(read->write->metrics[0].unit, "1");
  EXPECT_EQ(read->write->metrics[0].type, storage::MetricType::kCounter);
}

TEST(ReadWriteRequest2Test, BrokenRulesAreRefusedInWords) {
  const auto problem = [](const std::function<void(v2::Request*)>& spoil) {
    v2::Request request = Request2();
    spoil(&request);
    return std::string(Read2(request)->write.status().message());
  };
  EXPECT_THAT(problem([](auto* r) { r->set_symbols(0, "x"); }), HasSubstr("symbols[0]"));
  EXPECT_THAT(problem([](auto* r) { r->mutable_timeseries(0)->set_labels_refs(1, 99); }),
              HasSubstr("symbol 99 of 7"));
  EXPECT_THAT(problem([](auto* r) { r->mutable_timeseries(0)->add_labels_refs(1); }),
              HasSubstr("two for each label"));
  EXPECT_THAT(problem([](auto* r) { r->mutable_timeseries(0)->clear_samples(); }),
              HasSubstr("samples or histograms"));
  EXPECT_THAT(problem([](auto* r) { r->mutable_timeseries(0)->add_histograms(); }),
              HasSubstr("not both"));
  EXPECT_THAT(
      problem([](auto* r) { r->mutable_timeseries(0)->mutable_metadata()->set_help_ref(7); }),
      HasSubstr("symbol 7 of 7"));
}

// Each reference has two bytes and stands for as many as the symbol has.
TEST(ReadWriteRequest2Test, AFewBytesDoNotBecomeManyGigabytes) {
  v2::Request request;
  request.add_symbols("");
  request.add_symbols(std::string(1 << 20, 'x'));
  for (int i = 0; i < 200; ++i) {
    auto* const series = request.add_timeseries();
    for (int ref = 0; ref < 100; ++ref) series->add_labels_refs(1);
    series->add_samples();
  }
  EXPECT_THAT(Read2(request)->write.status().message(), HasSubstr("send fewer samples"));
}

TEST(ReadWriteRequest2Test, AHelpThatManySeriesReferToIsShortAndCounts) {
  v2::Request request = Request2();
  request.add_symbols(std::string(1 << 20, 'x'));
  request.mutable_timeseries(0)->mutable_metadata()->set_help_ref(7);
  EXPECT_EQ(Read2(request)->write->metrics[0].help.size(), 1024u);
  const auto series = request.timeseries(0);
  for (int i = 0; i < 70'000; ++i) *request.add_timeseries() = series;
  EXPECT_THAT(Read2(request)->write.status().message(), HasSubstr("send fewer samples"));
}

// Each bucket is a series that has all labels of the histogram.
TEST(ReadWriteRequest1Test, ALongLabelOfAHistogramWithManyBucketsIsTooMuch) {
  ::prometheus_remote::WriteRequest request;
  auto* const series = request.add_timeseries();
  Label(series, "__name__", "latency");
  Label(series, "text", std::string(100'000, 'x').c_str());
  auto* const histogram = series->add_histograms();
  auto* const span = histogram->add_positive_spans();
  span->set_length(1000);
  for (int i = 0; i < 1000; ++i) histogram->add_positive_deltas(i == 0 ? 1 : 0);
  EXPECT_THAT(Read1(request).write.status().message(), HasSubstr("send fewer samples"));
}

}  // namespace
}  // namespace tacho::server::interop
