// Requests of all shapes, whole and damaged, become what the generated messages make of them.
#include <bit>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "interop/otlp_metrics_service.pb.h"
#include "server/interop/otlp_metrics.h"
#include "tests/server/interop/otlp_oracle.h"

namespace tacho::server::interop {
namespace {

namespace common = opentelemetry::proto::common::v1;
namespace otlp = opentelemetry::proto::metrics::v1;
using Request = opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest;

const std::vector<std::string> kWanted = {"service.name", "a", "b.c"};
constexpr size_t kSeries = 2000;

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  Request Make() {
    Request request;
    for (uint64_t n = Below(4); n > 0; --n) {
      auto* const resource = request.add_resource_metrics();
      for (uint64_t a = Below(4); a > 0; --a) Fill(resource->mutable_resource()->add_attributes());
      for (uint64_t s = Below(3); s > 0; --s) {
        auto* const scope = resource->add_scope_metrics();
        for (uint64_t m = Below(4); m > 0; --m) Fill(scope->add_metrics());
      }
    }
    return request;
  }
  otlp::Metric MakeMetric() {
    otlp::Metric metric;
    Fill(&metric);
    return metric;
  }
  uint64_t Below(uint64_t n) { return random_() % n; }

  // Gives all numbers of all points that are there other values.
  void Renumber(Request* request) {
    for (auto& resource : *request->mutable_resource_metrics()) {
      for (auto& scope : *resource.mutable_scope_metrics()) {
        for (auto& metric : *scope.mutable_metrics()) Renumber(&metric);
      }
    }
  }

 private:
  void Renumber(otlp::Metric* metric) {
    switch (metric->data_case()) {
      case otlp::Metric::kGauge:
        for (auto& point : *metric->mutable_gauge()->mutable_data_points()) RenumberValue(&point);
        return;
      case otlp::Metric::kSum:
        for (auto& point : *metric->mutable_sum()->mutable_data_points()) RenumberValue(&point);
        return;
      case otlp::Metric::kHistogram:
        for (auto& point : *metric->mutable_histogram()->mutable_data_points()) {
          RenumberTime(&point);
          if (point.count() != 0) point.set_count(random_() | 1);
          if (point.has_sum()) point.set_sum(Real());
          if (point.has_min()) point.set_min(Real());
          if (point.has_max()) point.set_max(Real());
          for (auto& count : *point.mutable_bucket_counts()) count = random_();
        }
        return;
      case otlp::Metric::kSummary:
        for (auto& point : *metric->mutable_summary()->mutable_data_points()) {
          RenumberTime(&point);
          if (point.count() != 0) point.set_count(random_() | 1);
          if (point.sum() != 0) point.set_sum(1 + static_cast<double>(Below(100)));
          for (auto& at : *point.mutable_quantile_values()) {
            if (at.value() != 0) at.set_value(1 + static_cast<double>(Below(100)));
          }
        }
        return;
      default:
        return;
    }
  }
  template <typename Point>
  void RenumberTime(Point* point) {
    if (point->time_unix_nano() != 0) point->set_time_unix_nano(1 + Below(1'000'000'000'000));
    // Most go on.
    if (point->start_time_unix_nano() != 0 && Below(8) == 0) {
      point->set_start_time_unix_nano(point->time_unix_nano() - Below(1000));
    }
  }
  void RenumberValue(otlp::NumberDataPoint* point) {
    RenumberTime(point);
    if (point->has_as_double()) point->set_as_double(Real());
    if (point->has_as_int()) point->set_as_int(static_cast<int64_t>(random_()));
  }

  std::string Text() {
    static const char* const kTexts[] = {"service.name", "a", "b.c",          "b_c",
                                         "loss",         "",  "\u00e4\u4e2d", "host.name"};
    return Below(4) == 0 ? std::string(Below(300), 'x') : kTexts[Below(8)];
  }
  double Real() {
    switch (Below(5)) {
      case 0:
        return std::bit_cast<double>(random_());
      case 1:
        return std::numeric_limits<double>::infinity();
      case 2:
        return 0;
      default:
        return static_cast<double>(Below(1000)) / 8 - 50;
    }
  }
  void Fill(common::AnyValue* value, int depth = 0) {
    switch (Below(depth > 10 ? 5 : 9)) {
      case 0:
        return value->set_string_value(Text());
      case 1:
        return value->set_bool_value(Below(2) == 0);
      case 2:
        return value->set_int_value(static_cast<int64_t>(random_()));
      case 3:
        return value->set_double_value(Real());
      case 4:
        return;
      case 5:
        return value->set_bytes_value(Text());
      case 6:
        value->mutable_kvlist_value();
        for (uint64_t n = Below(3); n > 0; --n) {
          auto* const part = value->mutable_kvlist_value()->add_values();
          part->set_key(Text());
          if (Below(5) != 0) Fill(part->mutable_value(), depth + 1);
        }
        return;
      default:
        value->mutable_array_value();
        for (uint64_t n = Below(3); n > 0; --n)
          Fill(value->mutable_array_value()->add_values(), depth + 1);
    }
  }
  void Fill(common::KeyValue* attribute) {
    attribute->set_key(Text());
    if (Below(8) != 0) Fill(attribute->mutable_value());
  }
  template <typename Point>
  void Begin(Point* point) {
    for (uint64_t n = Below(60) == 0 ? 130 : Below(4); n > 0; --n) Fill(point->add_attributes());
    if (Below(20) != 0) point->set_time_unix_nano(Below(20) == 0 ? random_() : 1 + Below(1000));
    if (Below(3) == 0) point->set_start_time_unix_nano(random_());
    if (Below(4) == 0) point->set_flags(static_cast<uint32_t>(Below(4)));
  }
  template <typename Point>
  void Ends(Point* point) {
    point->set_count(Below(1000));
    if (Below(2) == 0) point->set_sum(Real());
    if (Below(2) == 0) point->set_min(Real());
    if (Below(2) == 0) point->set_max(Real());
    for (uint64_t n = Below(3); n > 0; --n) point->add_exemplars();
  }
  template <typename Points>
  void Numbers(Points* points) {
    for (uint64_t n = Below(4); n > 0; --n) {
      auto* const point = points->Add();
      Begin(point);
      if (Below(8) != 0) point->set_as_double(Real());
      if (Below(3) == 0) point->set_as_int(static_cast<int64_t>(random_()));
      for (uint64_t e = Below(3); e > 0; --e) point->add_exemplars();
    }
  }
  void Fill(otlp::ExponentialHistogramDataPoint::Buckets* buckets) {
    buckets->set_offset(static_cast<int32_t>(Below(40)) - 20);
    for (uint64_t n = Below(40) == 0 ? 20'000 : Below(5); n > 0; --n)
      buckets->add_bucket_counts(Below(1000));
  }
  otlp::AggregationTemporality Temporality() {
    return static_cast<otlp::AggregationTemporality>(Below(4));
  }
  void Fill(otlp::Metric* metric) {
    metric->set_name(Text());
    metric->set_unit(Text());
    metric->set_description(Text());
    switch (Below(6)) {
      case 0:
        return Numbers(metric->mutable_gauge()->mutable_data_points());
      case 1:
        metric->mutable_sum()->set_is_monotonic(Below(2) == 0);
        metric->mutable_sum()->set_aggregation_temporality(Temporality());
        return Numbers(metric->mutable_sum()->mutable_data_points());
      case 2:
        metric->mutable_histogram()->set_aggregation_temporality(Temporality());
        for (uint64_t n = Below(3); n > 0; --n) {
          auto* const point = metric->mutable_histogram()->add_data_points();
          Begin(point);
          Ends(point);
          const uint64_t bounds = Below(4);
          for (uint64_t i = 0; i < bounds; ++i)
            point->add_explicit_bounds(static_cast<double>(i) * 2);
          for (uint64_t i = 0; i < bounds + (Below(8) == 0 ? 0 : 1); ++i)
            point->add_bucket_counts(Below(9));
        }
        return;
      case 3:
        metric->mutable_exponential_histogram()->set_aggregation_temporality(Temporality());
        for (uint64_t n = Below(3); n > 0; --n) {
          auto* const point = metric->mutable_exponential_histogram()->add_data_points();
          Begin(point);
          Ends(point);
          point->set_scale(static_cast<int32_t>(Below(28)) - 6);
          point->set_zero_count(Below(5));
          point->set_zero_threshold(static_cast<double>(Below(2)) / 1024);
          if (Below(4) != 0) Fill(point->mutable_positive());
          if (Below(2) != 0) Fill(point->mutable_negative());
        }
        return;
      case 4:
        for (uint64_t n = Below(3); n > 0; --n) {
          auto* const point = metric->mutable_summary()->add_data_points();
          Begin(point);
          point->set_count(Below(1000));
          point->set_sum(Real());
          for (uint64_t q = Below(4); q > 0; --q) {
            auto* const at = point->add_quantile_values();
            at->set_quantile(static_cast<double>(q) / 4);
            at->set_value(Real());
          }
        }
        return;
      default:
        return;
    }
  }

  std::mt19937_64 random_;
};

std::string MetricText(const ForeignMetric* metric) {
  if (metric == nullptr) return "nothing";
  return absl::StrCat(metric->name, "|", metric->unit, "|", metric->help, "|", metric->typed, "|",
                      static_cast<int>(metric->type));
}

std::string Text(const absl::StatusOr<OtlpMetrics>& read) {
  if (!read.ok()) return absl::StrCat("code ", static_cast<int>(read.status().code()));
  std::string text = absl::StrCat("rejected ", read->rejected, " ", read->problem, " exemplars ",
                                  read->write.exemplars, "\n");
  for (const auto& series : read->write.series) {
    absl::StrAppend(&text, series.key, " of ", MetricText(series.metric), ":");
    for (uint32_t i = 0; i < series.count; ++i) {
      const ForeignSample& sample = read->write.samples[series.first + i];
      absl::StrAppend(&text, " ", sample.time_ns, "=",
                      absl::Hex(std::bit_cast<uint64_t>(sample.value)));
    }
    absl::StrAppend(&text, "\n");
  }
  for (const auto& added : read->noted.added)
    absl::StrAppend(&text, added.key, added.time_ns, "\n");
  for (const auto& reset : read->noted.resets) absl::StrAppend(&text, reset.start_ns, "\n");
  return text;
}

TEST(OtlpEqualTest, RequestsBecomeWhatTheMessagesSay) {
  uint64_t samples = 0;
  uint64_t rejected = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const std::string bytes = Maker(seed).Make().SerializeAsString();
    OtlpMemory memory(kSeries);
    OtlpMemory other(kSeries);
    const auto read = ReadOtlpMetrics(bytes, kWanted, &memory);
    const auto expected = ReadByMessages(bytes, kWanted, &other);
    ASSERT_EQ(Text(read), Text(expected)) << "seed " << seed;
    if (!read.ok()) continue;
    EXPECT_EQ(read->write.text_bytes, expected->write.text_bytes);
    samples += read->write.samples.size();
    rejected += read->rejected;
  }
  EXPECT_GT(samples, 2'000u);
  EXPECT_GT(rejected, 100u);
}

// What protobuf takes and the reader does not: groups, and a message twice that would be merged.
TEST(OtlpEqualTest, DamagedRequestsBecomeTheSameOrAreRefused) {
  uint64_t taken = 0;
  uint64_t refused = 0;
  uint64_t refused_here = 0;
  for (uint64_t seed = 0; seed < 4'000; ++seed) {
    Maker maker(seed);
    std::string bytes = maker.Make().SerializeAsString();
    if (bytes.empty()) continue;
    for (uint64_t n = 1 + maker.Below(3); n > 0; --n) {
      bytes[maker.Below(bytes.size())] = static_cast<char>(maker.Below(256));
    }
    OtlpMemory memory(kSeries);
    OtlpMemory other(kSeries);
    const auto read = ReadOtlpMetrics(bytes, kWanted, &memory);
    const auto expected = ReadByMessages(bytes, kWanted, &other);
    if (read.ok()) {
      ASSERT_EQ(Text(read), Text(expected)) << "seed " << seed;
      ++taken;
    } else {
      ++refused;
      refused_here += expected.ok() ? 1 : 0;
    }
  }
  EXPECT_GT(taken, 200u);
  EXPECT_GT(refused, 200u);
  EXPECT_LT(refused_here * 20, refused);
}

// What is known of a request that came before changes nothing, whether the next one repeats it with
// other numbers, leaves some metrics out, has some more, or is damaged.
TEST(OtlpEqualTest, KnownShapesBecomeTheSame) {
  uint64_t recognised = 0;
  uint64_t taken = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Maker maker(seed);
    Request request = maker.Make();
    OtlpMemory memory(kSeries);
    OtlpMemory other(kSeries);
    for (int round = 0; round < 8; ++round) {
      std::string bytes = request.SerializeAsString();
      if (round == 4 && !bytes.empty()) {
        bytes[maker.Below(bytes.size())] = static_cast<char>(maker.Below(256));
      }
      const auto read = ReadOtlpMetrics(bytes, kWanted, &memory);
      const auto expected = ReadByMessages(bytes, kWanted, &other);
      if (round == 4 && !read.ok()) {
        // Protobuf may merge what this refuses. And deltas that were taken back leave rounding.
        break;
      }
      ASSERT_EQ(Text(read), Text(expected)) << "seed " << seed << ", round " << round;
      if (read.ok()) {
        taken += read->write.series.size();
        recognised += read->write.series.size() - read->write.texts.size();
      }
      maker.Renumber(&request);
      for (auto& resource : *request.mutable_resource_metrics()) {
        for (auto& scope : *resource.mutable_scope_metrics()) {
          auto* const metrics = scope.mutable_metrics();
          if (metrics->empty()) continue;
          if (round == 5) metrics->erase(metrics->begin());
          if (round == 6) *metrics->Add() = Maker(seed + 1'000).MakeMetric();
        }
      }
    }
  }
  // Most of these have deltas, exemplars or exponential buckets.
  EXPECT_GT(recognised, 1'000u);
  EXPECT_LT(recognised, taken);
}

TEST(OtlpEqualTest, AsDeepAsProtobufReads) {
  const std::vector<std::string> wanted = {"a"};
  for (int levels : {1, 8, 9, 40, 46, 47, 48, 49, 50, 60, 10'000}) {
    Request request;
    auto* const metric = request.add_resource_metrics()->add_scope_metrics()->add_metrics();
    metric->set_name("loss");
    auto* const point = metric->mutable_gauge()->add_data_points();
    point->set_time_unix_nano(1);
    auto* const attribute = point->add_attributes();
    attribute->set_key("a");
    auto* value = attribute->mutable_value();
    for (int i = 0; i < levels; ++i) value = value->mutable_array_value()->add_values();
    value->set_int_value(1);
    const std::string bytes = request.SerializeAsString();
    OtlpMemory memory(10);
    EXPECT_EQ(Text(ReadOtlpMetrics(bytes, wanted, &memory)),
              Text(ReadByMessages(bytes, wanted, &memory)))
        << levels;
  }
}

}  // namespace
}  // namespace tacho::server::interop
