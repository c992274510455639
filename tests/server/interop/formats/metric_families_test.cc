#include "server/interop/formats/metric_families.h"

#include <bit>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::server::interop {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Fields of protobuf messages, below 128 bytes each.
std::string Bytes(int field, const std::string& value) {
  return absl::StrCat(std::string(1, static_cast<char>(field << 3 | 2)),
                      std::string(1, static_cast<char>(value.size())), value);
}
std::string Varint(int field, int value) {
  return {static_cast<char>(field << 3), static_cast<char>(value)};
}
std::string Real(int field, double value) {
  std::string bytes(1, static_cast<char>(field << 3 | 1));
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(bits >> shift));
  return bytes;
}
std::string Label(const std::string& name, const std::string& value) {
  return Bytes(1, absl::StrCat(Bytes(1, name), Bytes(2, value)));
}
// A family of one metric, with its length.
std::string Family(const std::string& name, int type, const std::string& metric) {
  const std::string family = absl::StrCat(Bytes(1, name), Varint(3, type), Bytes(4, metric));
  return absl::StrCat(std::string(1, static_cast<char>(family.size())), family);
}
std::string Gauge(const std::string& name, const std::string& labels, double value) {
  return Family(name, 1, absl::StrCat(labels, Bytes(2, Real(1, value))));
}

std::vector<std::string> Lines(const absl::StatusOr<Exposition>& read) {
  std::vector<std::string> lines;
  if (!read.ok()) return {read.status().ToString()};
  for (const ExpositionSample& sample : read->samples) {
    std::string line = sample.name;
    for (const auto& [name, value] : sample.labels) absl::StrAppend(&line, " ", name, "=", value);
    absl::StrAppend(&line, " ", sample.value);
    if (sample.time_ns.has_value()) absl::StrAppend(&line, " at ", *sample.time_ns);
    lines.push_back(line);
  }
  return lines;
}

std::string Error(const std::string& body) {
  const auto read = ReadMetricFamilies(body);
  EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
  return std::string(read.status().message());
}

// What client_golang 1.14 pushes: a counter, a gauge, a histogram, a summary and an untyped metric.
TEST(MetricFamiliesTest, ReadsWhatGoPushes) {
  std::ifstream file(TACHO_SOURCE_DIR "/tests/server/interop/formats/push_of_go.bin",
                     std::ios::binary);
  std::ostringstream body;
  body << file.rdbuf();
  const auto read = ReadMetricFamilies(body.str());
  EXPECT_THAT(
      Lines(read),
      ElementsAre("accuracy set=test 0.93", "accuracy set=train 0.95",
                  "batch_seconds_bucket le=0.1 1", "batch_seconds_bucket le=0.5 3",
                  "batch_seconds_bucket le=1 3", "batch_seconds_bucket le=+Inf 4",
                  "batch_seconds_sum 3.55", "batch_seconds_count 4", "odd -7.5", "steps_total 1200",
                  "wait_seconds quantile=0.5 2", "wait_seconds quantile=0.99 3",
                  "wait_seconds_sum 6", "wait_seconds_count 3"));
  ASSERT_EQ(read->families.size(), 5u);
  EXPECT_EQ(read->families[0].help, "Of the set.");
  EXPECT_EQ(read->families[0].type, FamilyType::kGauge);
  EXPECT_EQ(read->families[1].type, FamilyType::kHistogram);
  EXPECT_EQ(read->families[2].type, FamilyType::kUnknown);
  EXPECT_EQ(read->families[3].type, FamilyType::kCounter);
  EXPECT_EQ(read->families[4].type, FamilyType::kSummary);
  EXPECT_EQ(read->samples[13].family, 4u);
}

TEST(MetricFamiliesTest, TimesFractionsAndInfiniteBuckets) {
  EXPECT_THAT(ReadMetricFamilies("")->samples, IsEmpty());
  const std::string timed = absl::StrCat(Bytes(2, Real(1, NAN)), Varint(6, 5));
  EXPECT_THAT(Lines(ReadMetricFamilies(Family("a", 1, timed))), ElementsAre("a nan at 5000000"));
  const std::string histogram =
      absl::StrCat(Real(4, 2.5), Real(2, -1), Bytes(3, absl::StrCat(Real(4, 0.5), Real(2, 1))),
                   Bytes(3, absl::StrCat(Real(4, 2.5), Real(2, INFINITY))));
  EXPECT_THAT(
      Lines(ReadMetricFamilies(Family("h", 5, Bytes(7, histogram)))),
      ElementsAre("h_bucket le=1 0.5", "h_bucket le=+Inf 2.5", "h_gsum -1", "h_gcount 2.5"));
}

TEST(MetricFamiliesTest, SaysWhatIsWrong) {
  EXPECT_THAT(Error("x"), HasSubstr("no messages of io.prometheus.client.MetricFamily"));
  const std::string right = Gauge("a", "", 1);
  for (size_t size = 1; size < right.size(); ++size) Error(right.substr(0, size));
  EXPECT_THAT(Error(right + Gauge("", "", 1)), HasSubstr("family 2 has a name that is none"));
  EXPECT_THAT(Error(Gauge("a b", "", 1)), HasSubstr("family 1"));
  EXPECT_THAT(Error(Family("a", 0, Bytes(2, Real(1, 1)))), HasSubstr("no value of its type"));
  EXPECT_THAT(Error(Gauge("a", Label("1", "x"), 1)), HasSubstr("label whose name is none"));
  EXPECT_THAT(Error(Gauge("a", Label("l", "\xff"), 1)), HasSubstr("label l that is not UTF-8"));
  EXPECT_THAT(Error(Gauge("a", Label("l", "x") + Label("l", "y"), 1)), HasSubstr("label l twice"));
  const std::string histogram = absl::StrCat(Label("le", "1"), Bytes(7, Varint(1, 1)));
  EXPECT_THAT(Error(Family("h", 4, histogram)), HasSubstr("has the label le itself"));
}

TEST(MetricFamiliesTest, TooMuchIsRefused) {
  const auto refused = [](const std::string& body, const ExpositionLimits& limits) {
    const auto read = ReadMetricFamilies(body, limits);
    EXPECT_TRUE(absl::IsResourceExhausted(read.status())) << read.status();
    return std::string(read.status().message());
  };
  const std::string two = Gauge("a", Label("l", "x"), 1) + Gauge("b", "", 1);
  EXPECT_TRUE(ReadMetricFamilies(two, {.max_samples = 2, .max_labels = 1}).ok());
  EXPECT_THAT(refused(two, {.max_samples = 1}), HasSubstr("more than 1 "));
  EXPECT_THAT(refused(two, {.max_labels = 0}), HasSubstr("more than 0 labels"));
  std::string empty;
  for (int i = 0; i < 20; ++i) empty += std::string("\x03", 1) + Bytes(1, "a");
  EXPECT_THAT(refused(empty, {.max_samples = 10}), HasSubstr("more than 10 families"));
}

}  // namespace
}  // namespace tacho::server::interop
