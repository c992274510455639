// The translator on generated messages: what protobuf's own parser makes of a request.
#include "tests/server/interop/otlp_oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/stubs/logging.h"
#include "interop/otlp_metrics_service.pb.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/interop/formats/label_mapping.h"
#include "server/interop/formats/native_histogram.h"

namespace tacho::server::interop {
namespace {

namespace common = opentelemetry::proto::common::v1;

constexpr int kMaxDepth = 8;

std::string TextAt(const common::AnyValue& value, int depth) {
  switch (value.value_case()) {
    case common::AnyValue::kStringValue:
      return value.string_value();
    case common::AnyValue::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case common::AnyValue::kIntValue:
      return absl::StrCat(value.int_value());
    case common::AnyValue::kDoubleValue:
      return BoundText(value.double_value());
    case common::AnyValue::kBytesValue:
      return absl::Base64Escape(value.bytes_value());
    case common::AnyValue::kArrayValue: {
      if (depth == kMaxDepth) return "…";
      std::vector<std::string> parts;
      for (const auto& part : value.array_value().values()) {
        parts.push_back(TextAt(part, depth + 1));
      }
      return absl::StrCat("[", absl::StrJoin(parts, ","), "]");
    }
    case common::AnyValue::kKvlistValue: {
      if (depth == kMaxDepth) return "…";
      std::vector<std::string> parts;
      for (const auto& part : value.kvlist_value().values()) {
        parts.push_back(absl::StrCat(part.key(), "=", TextAt(part.value(), depth + 1)));
      }
      return absl::StrCat("{", absl::StrJoin(parts, ","), "}");
    }
    case common::AnyValue::VALUE_NOT_SET:
      break;
  }
  return "";
}

std::string AttributeText(const common::AnyValue& value) { return TextAt(value, 0); }

void AddAttribute(const common::KeyValue& attribute, storage::Labels* labels) {
  std::string name = LabelNameOf(attribute.key());
  for (auto& [known, value] : *labels) {
    if (known == name) return absl::StrAppend(&value, ";", AttributeText(attribute.value()));
  }
  labels->emplace_back(std::move(name), AttributeText(attribute.value()));
}

storage::Labels WantedLabels(const opentelemetry::proto::resource::v1::Resource& resource,
                             const std::vector<std::string>& wanted) {
  storage::Labels labels;
  for (const common::KeyValue& attribute : resource.attributes()) {
    if (std::find(wanted.begin(), wanted.end(), attribute.key()) == wanted.end()) continue;
    AddAttribute(attribute, &labels);
  }
  return labels;
}

namespace otlp = opentelemetry::proto::metrics::v1;

constexpr uint32_t kNoRecordedValue = 1;
constexpr int kMaxAttributes = 128;  // Of a point.
// Bytes of a key beside the metric's name and the point's labels, in most cases.
constexpr size_t kMoreOfKey = 48;

// One request.
class Reader {
 public:
  Reader(const std::vector<std::string>& wanted, OtlpMemory* memory)
      : wanted_(wanted), memory_(*memory) {}

  absl::Status Read(const otlp::ResourceMetrics& resource) {
    resource_ = WantedLabels(resource.resource(), wanted_);
    for (const auto& scope : resource.scope_metrics()) {
      for (const auto& metric : scope.metrics()) {
        Read(metric);
        TACHO_RETURN_IF_ERROR(result_.write.CheckSize());
      }
    }
    return absl::OkStatus();
  }
  OtlpMetrics Take() && { return std::move(result_); }

 private:
  using Label = std::pair<std::string, std::string>;

  void Read(const otlp::Metric& metric) {
    name_ = metric.name();
    ForeignMetric& told = result_.write.metrics.emplace_back();
    metric_ = &told;
    told.SetTexts(metric.unit(), metric.description());
    delta_ = counts_ = false;
    switch (metric.data_case()) {
      case otlp::Metric::kGauge:
        told.typed = true;
        for (const auto& point : metric.gauge().data_points()) Number(point);
        break;
      case otlp::Metric::kSum:
        told.typed = true;
        if (metric.sum().is_monotonic()) told.type = storage::MetricType::kCounter;
        delta_ = metric.sum().aggregation_temporality() == otlp::AGGREGATION_TEMPORALITY_DELTA;
        counts_ = metric.sum().is_monotonic();
        for (const auto& point : metric.sum().data_points()) Number(point);
        break;
      case otlp::Metric::kHistogram:
        delta_ =
            metric.histogram().aggregation_temporality() == otlp::AGGREGATION_TEMPORALITY_DELTA;
        counts_ = true;
        for (const auto& point : metric.histogram().data_points()) Explicit(point);
        break;
      case otlp::Metric::kExponentialHistogram:
        if (metric.exponential_histogram().aggregation_temporality() ==
            otlp::AGGREGATION_TEMPORALITY_DELTA) {
          // Its buckets differ from point to point, so that cumulative ones cannot be added up.
          for (int i = 0; i < metric.exponential_histogram().data_points_size(); ++i) {
            Reject("an exponential histogram " + name_ +
                   " has deltas; choose cumulative temporality");
          }
          break;
        }
        counts_ = true;
        for (const auto& point : metric.exponential_histogram().data_points()) Exponential(point);
        break;
      case otlp::Metric::kSummary:
        for (const auto& point : metric.summary().data_points()) Quantiles(point);
        break;
      case otlp::Metric::DATA_NOT_SET:
        break;
    }
  }

  // Reads what points of all kinds have. False if the point is rejected, or too much was read.
  template <typename Point>
  bool Begin(const Point& point) {
    if (!result_.write.CheckSize().ok()) return false;
    if (name_.empty()) return Reject("a metric has no name");
    if (point.time_unix_nano() == 0 || point.time_unix_nano() > INT64_MAX) {
      return Reject("a point of " + name_ + " has no time");
    }
    if (point.attributes_size() > kMaxAttributes) {
      return Reject("a point of " + name_ + " has too many attributes");
    }
    time_ns_ = static_cast<int64_t>(point.time_unix_nano());
    stale_ = (point.flags() & kNoRecordedValue) != 0;
    start_ns_ = 0;
    const uint64_t start = point.start_time_unix_nano();
    if (counts_ && !delta_ && !stale_ && start <= point.time_unix_nano()) {
      start_ns_ = static_cast<int64_t>(start);
    }
    own_.clear();
    for (const common::KeyValue& attribute : point.attributes()) AddAttribute(attribute, &own_);
    labels_.clear();
    for (const auto& [name, value] : own_) AppendLabel(name, value, &labels_);
    for (const auto& [name, value] : resource_) {
      if (FindLabel(own_, name) == nullptr) AppendLabel(name, value, &labels_);
    }
    result_.write.text_bytes += labels_.size();
    return true;
  }

  bool Reject(std::string problem) {
    if (result_.rejected++ == 0) result_.problem = std::move(problem);
    return false;
  }

  // A sample of the series NAMEsuffix; `adds` if it is a difference where the point's are.
  void Add(absl::string_view suffix, double value, bool adds, const Label* label = nullptr) {
    if (!result_.write.CheckSize().ok()) return;
    std::string key;
    key.reserve(labels_.size() + name_.size() + kMoreOfKey);
    AppendLabel(kNameLabel, suffix.empty() ? name_ : absl::StrCat(name_, suffix), &key);
    if (label != nullptr) AppendLabel(label->first, label->second, &key);
    key += labels_;
    if (stale_) {
      value = StaleMarker();
    } else if (adds && delta_) {
      auto added = memory_.deltas.Add(key, time_ns_, value);
      if (absl::IsAlreadyExists(added.status())) return;
      if (!added.ok()) {
        Reject(std::string(added.status().message()));
        return;
      }
      value = added->total;
      result_.noted.added.push_back(*std::move(added));
    }
    const bool reset = adds && memory_.starts.Note(key, start_ns_, &result_.noted.resets);
    result_.write.AddSeriesWithText(std::move(key), metric_, ForeignSeries::Part::kSample);
    const int64_t zero_ns = start_ns_ + 1'000'000;
    if (reset && zero_ns < time_ns_ && time_ns_ - zero_ns <= 3'600'000'000'000) {
      result_.write.AddSample(zero_ns, 0);
    }
    result_.write.AddSample(time_ns_, value);
  }

  void Number(const otlp::NumberDataPoint& point) {
    result_.write.exemplars += static_cast<uint64_t>(point.exemplars_size());
    if (!Begin(point)) return;
    if (!stale_ && point.value_case() == otlp::NumberDataPoint::VALUE_NOT_SET) {
      Reject("a point of " + name_ + " has no value");
      return;
    }
    const bool whole = point.value_case() == otlp::NumberDataPoint::kAsInt;
    Add("", whole ? static_cast<double>(point.as_int()) : point.as_double(), true);
  }

  template <typename Point>
  void Ends(const Point& point) {
    Add("_count", static_cast<double>(point.count()), true);
    if (point.has_sum()) Add("_sum", point.sum(), true);
    if (point.has_min()) Add("_min", point.min(), false);
    if (point.has_max()) Add("_max", point.max(), false);
  }

  void Bucket(double bound, double count) {
    const Label le{"le", BoundText(bound)};
    Add("_bucket", count, true, &le);
  }

  void Explicit(const otlp::HistogramDataPoint& point) {
    result_.write.exemplars += static_cast<uint64_t>(point.exemplars_size());
    if (!Begin(point)) return;
    const int buckets = point.bucket_counts_size();
    const auto& bounds = point.explicit_bounds();
    const auto not_above = [](double a, double b) { return !(a < b); };
    if (buckets != 0 && buckets != bounds.size() + 1) {
      Reject("a histogram " + name_ + " needs one bucket more than bounds");
      return;
    }
    if (std::adjacent_find(bounds.begin(), bounds.end(), not_above) != bounds.end()) {
      Reject("the bounds of a histogram " + name_ + " do not ascend");
      return;
    }
    Ends(point);
    double cumulative = 0;
    for (int i = 0; i + 1 < buckets; ++i) {
      cumulative += static_cast<double>(point.bucket_counts(i));
      Bucket(bounds.Get(i), cumulative);
    }
    Bucket(std::numeric_limits<double>::infinity(), static_cast<double>(point.count()));
  }

  void Exponential(const otlp::ExponentialHistogramDataPoint& point) {
    result_.write.exemplars += static_cast<uint64_t>(point.exemplars_size());
    if (!Begin(point)) return;
    if (point.scale() < kMinSchema || point.scale() > 20 ||
        point.positive().bucket_counts_size() + point.negative().bucket_counts_size() >
            static_cast<int>(kMaxHistogramBuckets)) {
      Reject(absl::StrCat("a histogram ", name_, " has the scale ", point.scale(),
                          " or too many buckets; scales -4 to 20 and ", kMaxHistogramBuckets,
                          " buckets are taken"));
      return;
    }
    Ends(point);
    double cumulative = 0;
    const auto add = [&](double bound, double count) {
      cumulative += count;
      if (count > 0 && !std::isinf(bound)) Bucket(bound, cumulative);
    };
    const auto bound_of = [&](const auto& buckets, int i) {
      return HistogramBound(point.scale(), int64_t{buckets.offset()} + i);
    };
    for (int i = point.negative().bucket_counts_size(); i-- > 0;) {
      add(-bound_of(point.negative(), i), static_cast<double>(point.negative().bucket_counts(i)));
    }
    add(point.zero_threshold(), static_cast<double>(point.zero_count()));
    for (int i = 0; i < point.positive().bucket_counts_size(); ++i) {
      add(bound_of(point.positive(), i + 1),
          static_cast<double>(point.positive().bucket_counts(i)));
    }
    Bucket(std::numeric_limits<double>::infinity(), static_cast<double>(point.count()));
  }

  void Quantiles(const otlp::SummaryDataPoint& point) {
    if (!Begin(point)) return;
    Add("_count", static_cast<double>(point.count()), false);
    Add("_sum", point.sum(), false);
    for (const auto& at : point.quantile_values()) {
      const Label quantile{"quantile", BoundText(at.quantile())};
      Add("", at.value(), false, &quantile);
    }
  }

  const std::vector<std::string>& wanted_;
  OtlpMemory& memory_;
  OtlpMetrics result_;
  storage::Labels resource_;  // Its labels.
  // The metric and the point at hand.
  std::string name_;
  const ForeignMetric* metric_ = nullptr;
  bool delta_ = false;
  bool counts_ = false;
  int64_t start_ns_ = 0;
  bool stale_ = false;
  int64_t time_ns_ = 0;
  storage::Labels own_;  // The point's labels.
  std::string labels_;   // These and the resource's, as a part of a key.
};

}  // namespace

absl::StatusOr<OtlpMetrics> ReadByMessages(absl::string_view bytes,
                                           const std::vector<std::string>& resource_attributes,
                                           OtlpMemory* memory) {
  const google::protobuf::LogSilencer silencer;
  opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return errors::ErrorOf(errors::Failure::kMalformed, "no message");
  }
  Reader reader(resource_attributes, memory);
  absl::Status status;
  for (const auto& resource : request.resource_metrics()) {
    status = reader.Read(resource);
    if (!status.ok()) break;
  }
  OtlpMetrics result = std::move(reader).Take();
  if (status.ok()) return result;
  result.noted.TakeBack(memory);
  return status;
}

}  // namespace tacho::server::interop
