// Our own reader of remote write reads what is sent.
#include "server/forward/write_request.h"

#include <bit>

#include "gmock/gmock.h"
#include "server/interop/formats/foreign_write.h"
#include "server/interop/formats/packed_body.h"
#include "server/interop/formats/prometheus_write.h"

namespace tacho::server::forward {
namespace {

using testing::ElementsAre;
using testing::Pair;

SeriesTextPtr TextNamed(const std::string& name, storage::MetricType type) {
  auto text = std::make_shared<SeriesText>();
  text->labels = {{"__name__", name}, {"job", "a"}};
  for (const auto& [label, value] : text->labels) {
    interop::AppendLabel(label, value, &text->labels_bytes);
  }
  text->type = type;
  text->help = "what it is";
  text->unit = "s";
  return text;
}

void Add(const SeriesTextPtr& text, int64_t time_ms, double value, WriteBatch* batch) {
  const WriteSample sample = {time_ms, value};
  batch->Add(text, {&sample, 1});
}

class WriteRequestTest : public testing::TestWithParam<WriteVersion> {
 protected:
  // The message after a journey.
  interop::ForeignWrite Sent(WriteBatch* batch) {
    batch->Finish();
    message_ = *interop::UnpackSnappy(PackSnappy(batch->Encode(GetParam())), 1 << 20);
    auto write = GetParam() == WriteVersion::k1 ? interop::ReadWriteRequest1(message_)
                                                : interop::ReadWriteRequest2(message_);
    EXPECT_TRUE(write.ok()) << write.status();
    return write.ok() ? *std::move(write) : interop::ForeignWrite();
  }
  std::string message_;
};

TEST_P(WriteRequestTest, SeriesTimesAndBitsArrive) {
  const auto loss = TextNamed("loss", storage::MetricType::kGauge);
  const auto steps = TextNamed("steps_total", storage::MetricType::kCounter);
  const auto nan_bits = uint64_t{0x7ff8000000000123};
  WriteBatch batch;
  Add(loss, 1'700'000'000'123, -0.0, &batch);
  Add(steps, -5, 1, &batch);
  Add(loss, 1'700'000'000'124, std::bit_cast<double>(nan_bits), &batch);
  const auto write = Sent(&batch);
  ASSERT_EQ(write.series.size(), 2u);
  EXPECT_THAT(*interop::LabelsOfKey(write.series[0].key),
              ElementsAre(Pair("__name__", "loss"), Pair("job", "a")));
  EXPECT_EQ(write.series[0].count, 2u);
  EXPECT_EQ(write.samples[0].time_ns, 1'700'000'000'123'000'000);
  EXPECT_EQ(std::bit_cast<uint64_t>(write.samples[0].value), std::bit_cast<uint64_t>(-0.0));
  EXPECT_EQ(std::bit_cast<uint64_t>(write.samples[1].value), nan_bits);
  EXPECT_EQ(write.samples[2].time_ns, -5'000'000);
}

TEST_P(WriteRequestTest, ASeriesAscendsWithOneSampleAMillisecond) {
  const auto loss = TextNamed("loss", storage::MetricType::kGauge);
  WriteBatch batch;
  for (const auto& [time, value] : {std::pair(20, 1.0), {10, 2.0}, {20, 3.0}, {15, 4.0}}) {
    Add(loss, time, value, &batch);
  }
  const auto write = Sent(&batch);
  EXPECT_EQ(batch.samples(), 3u);
  ASSERT_EQ(write.samples.size(), 3u);
  EXPECT_EQ(write.samples[0].value, 2);
  EXPECT_EQ(write.samples[1].value, 4);
  EXPECT_EQ(write.samples[2].value, 3);
}

INSTANTIATE_TEST_SUITE_P(Versions, WriteRequestTest,
                         testing::Values(WriteVersion::k1, WriteVersion::k2));

TEST(WriteRequest2Test, TypeHelpAndUnitGoAlong) {
  WriteBatch batch;
  Add(TextNamed("steps_total", storage::MetricType::kCounter), 1, 1, &batch);
  batch.Finish();
  const std::string message = batch.Encode(WriteVersion::k2);
  const auto write = interop::ReadWriteRequest2(message);
  ASSERT_TRUE(write.ok()) << write.status();
  ASSERT_EQ(write->metrics.size(), 1u);
  EXPECT_EQ(write->metrics[0].help, "what it is");
  EXPECT_EQ(write->metrics[0].unit, "s");
}

TEST(WriteHeadersTest, EachVersionHasItsOwn) {
  EXPECT_THAT(HeadersOf(WriteVersion::k1, "tacho-collector/1"),
              testing::IsSupersetOf(
                  {"Content-Encoding: snappy", "Content-Type: application/x-protobuf",
                   "X-Prometheus-Remote-Write-Version: 0.1.0", "User-Agent: tacho-collector/1"}));
  EXPECT_THAT(HeadersOf(WriteVersion::k2, "a"),
              testing::IsSupersetOf(
                  {"Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request",
                   "X-Prometheus-Remote-Write-Version: 2.0.0"}));
}

}  // namespace
}  // namespace tacho::server::forward
