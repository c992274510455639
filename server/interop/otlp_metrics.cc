// A point becomes one series or several of the same labels.
#include "server/interop/otlp_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/interop/formats/label_mapping.h"
#include "server/interop/formats/native_histogram.h"
#include "server/interop/formats/otlp_points.h"
#include "server/interop/formats/wire_reader.h"
#include "server/interop/otlp_attributes.h"

namespace tacho::server::interop {
namespace {

constexpr uint32_t kNoRecordedValue = 1;
// Of most points with their metric; what is less costs a copy.
constexpr size_t kLeastBytesOfPoint = 48;
// The counter's last value before may be of the very time of its new start, and it is kept.
constexpr int64_t kZeroAfterNs = 1'000'000;
// A start that is longer ago is not stored: it may be too old for the store.
constexpr int64_t kLongestStartNs = int64_t{3600} * 1'000'000'000;
constexpr int kResourceLevel = 2;  // Request, ResourceMetrics.
// Bytes of a key beside the metric's name and the point's labels, in most cases.
constexpr size_t kMoreOfKey = 48;

// One request.
class Reader {
 public:
  Reader(const std::vector<std::string>& wanted, OtlpMemory* memory)
      : wanted_(wanted), memory_(*memory) {}

  // How many points there may be.
  void Expect(size_t points) {
    result_.write.series.reserve(points);
    result_.write.samples.reserve(points);
  }
  // A ResourceMetrics.
  absl::Status Read(absl::string_view message) {
    absl::string_view resource;
    bool has_resource = false;
    scopes_.clear();
    WireReader in(message);
    while (in.Next()) {
      if (!in.is_bytes()) continue;
      if (in.field() == 1) {
        if (std::exchange(has_resource, true)) return Damaged();
        resource = in.bytes();
      } else if (in.field() == 2) {
        scopes_.push_back(in.bytes());
      }
    }
    if (in.broken()) return Damaged();
    known_ = memory_.shapes.Find(resource);
    // The message of a known resource was valid when it came first. What comes once is not learned.
    const bool learns = known_ != nullptr;
    if (!learns) {
      if (!ReadResource(resource)) return Damaged();
      memory_.shapes.Remember(resource);
      known_ = std::make_shared<OtlpResourceShapes>();
    }
    TACHO_RETURN_IF_ERROR(ReadScopes(resource, learns));
    for (const OtlpShape& shape : learned_) memory_.shapes.Add(resource, known_.get(), shape);
    learned_.clear();
    result_.write.kept.push_back(std::move(known_));
    return absl::OkStatus();
  }
  static absl::Status Damaged() {
    return errors::ErrorOf(errors::Failure::kMalformed,
                           "the body is no ExportMetricsServiceRequest in protobuf");
  }
  OtlpMetrics Take() && { return std::move(result_); }

 private:
  using Label = std::pair<std::string, std::string>;

  // `learns`: the resource is known, and its labels are read only if they are needed.
  absl::Status ReadScopes(absl::string_view resource, bool learns) {
    bool has_labels = !learns;
    size_t next = 0;
    absl::ReaderMutexLock lock(&known_->mutex);
    for (const absl::string_view scope : scopes_) {
      WireReader in(scope);
      while (in.Next()) {
        if (in.field() != 2 || !in.is_bytes()) continue;
        if (!known_->Take(in.bytes(), &next, &result_.write)) {
          if (!std::exchange(has_labels, true)) ReadResource(resource);
          const size_t first = result_.write.series.size();
          if (!ReadMetric(in.bytes())) return Damaged();
          if (learns) Learn(in.bytes(), first);
        }
        TACHO_RETURN_IF_ERROR(result_.write.CheckSize());
      }
      if (in.broken()) return Damaged();
    }
    return absl::OkStatus();
  }

  // The metric at hand became the series from `first` on.
  void Learn(absl::string_view message, size_t first) ABSL_SHARED_LOCKS_REQUIRED(known_->mutex) {
    if (!known_->Takes(told_.name)) return;
    auto shape = OtlpShape::Of(message, told_, std::span(result_.write.series).subspan(first));
    if (shape.has_value()) learned_.push_back(*std::move(shape));
  }

  bool ReadResource(absl::string_view message) {
    resource_.clear();
    WireReader in(message);
    while (in.Next()) {
      if (in.field() != 1 || !in.is_bytes()) continue;
      OtlpAttribute attribute;
      if (!ReadOtlpAttribute(in.bytes(), kResourceLevel + 1, &attribute)) return false;
      const bool wanted = std::find(wanted_.begin(), wanted_.end(), attribute.key) != wanted_.end();
      if (wanted) AddAttribute(attribute, &resource_);
    }
    return !in.broken();
  }

  bool ReadMetric(absl::string_view message) {
    if (!ReadOtlpMetric(message, &told_)) return false;
    name_ = std::string(told_.name);
    ForeignMetric& metric = result_.write.metrics.emplace_back();
    metric_ = &metric;
    metric.SetTexts(told_.unit, told_.description);
    metric.typed = told_.kind == OtlpMetric::kGauge || told_.kind == OtlpMetric::kSum;
    if (told_.kind == OtlpMetric::kSum && told_.monotonic) {
      metric.type = storage::MetricType::kCounter;
    }
    counts_ = !told_.delta &&
              (told_.kind == OtlpMetric::kSum ? told_.monotonic : told_.kind != OtlpMetric::kGauge);
    delta_ = told_.delta && told_.kind != OtlpMetric::kGauge && told_.kind != OtlpMetric::kSummary;
    for (const absl::string_view point : told_.points) {
      if (!ReadOtlpPoint(point, told_.kind, &point_)) return false;
      TakePoint();
    }
    return true;
  }

  void TakePoint() {
    switch (told_.kind) {
      case OtlpMetric::kGauge:
      case OtlpMetric::kSum:
        return Number(point_);
      case OtlpMetric::kHistogram:
        return Explicit(point_);
      case OtlpMetric::kExponential:
        if (!delta_) return Exponential(point_);
        // Its buckets differ from point to point, so that cumulative ones cannot be added up.
        Reject("an exponential histogram " + name_ + " has deltas; choose cumulative temporality");
        return;
      case OtlpMetric::kSummary:
        return Quantiles(point_);
      case OtlpMetric::kNone:
        return;
    }
  }

  // Reads what points of all kinds have. False if the point is rejected, or too much was read.
  bool Begin(const OtlpPoint& point) {
    result_.write.exemplars += point.exemplars;
    if (!result_.write.CheckSize().ok()) return false;
    if (name_.empty()) return Reject("a metric has no name");
    if (point.time_ns == 0 || point.time_ns > INT64_MAX) {
      return Reject("a point of " + name_ + " has no time");
    }
    if (point.attribute_count > OtlpPoint::kMaxAttributes) {
      return Reject("a point of " + name_ + " has too many attributes");
    }
    time_ns_ = static_cast<int64_t>(point.time_ns);
    stale_ = (point.flags & kNoRecordedValue) != 0;
    start_ns_ = StartOf(point);
    own_.clear();
    for (const OtlpAttribute& attribute : point.attributes) AddAttribute(attribute, &own_);
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

  // When a counter began; 0 if that does not matter.
  int64_t StartOf(const OtlpPoint& point) const {
    const bool told = counts_ && !stale_ && point.start_ns <= point.time_ns;
    return told ? static_cast<int64_t>(point.start_ns) : 0;
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
    const int64_t zero_ns = start_ns_ + kZeroAfterNs;
    if (reset && zero_ns < time_ns_ && time_ns_ - zero_ns <= kLongestStartNs) {
      result_.write.AddSample(zero_ns, 0);
    }
    result_.write.AddSample(time_ns_, value);
  }

  void Number(const OtlpPoint& point) {
    if (!Begin(point)) return;
    if (!stale_ && point.value == OtlpPoint::Value::kNone) {
      Reject("a point of " + name_ + " has no value");
      return;
    }
    const bool whole = point.value == OtlpPoint::Value::kWhole;
    Add("", whole ? static_cast<double>(point.whole) : point.real, true);
  }

  void Ends(const OtlpPoint& point) {
    Add("_count", static_cast<double>(point.count), true);
    if (point.sum.has_value()) Add("_sum", *point.sum, true);
    if (point.min.has_value()) Add("_min", *point.min, false);
    if (point.max.has_value()) Add("_max", *point.max, false);
  }

  void Bucket(double bound, double count) {
    const Label le{"le", BoundText(bound)};
    Add("_bucket", count, true, &le);
  }

  void Explicit(const OtlpPoint& point) {
    if (!Begin(point)) return;
    const size_t buckets = point.bucket_counts.size();
    const std::vector<double>& bounds = point.bounds;
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
    for (size_t i = 0; i + 1 < buckets; ++i) {
      cumulative += static_cast<double>(point.bucket_counts[i]);
      Bucket(bounds[i], cumulative);
    }
    Bucket(std::numeric_limits<double>::infinity(), static_cast<double>(point.count));
  }

  void Exponential(const OtlpPoint& point) {
    if (!Begin(point)) return;
    if (point.scale < kMinSchema || point.scale > 20 ||
        point.positive.count + point.negative.count > kMaxHistogramBuckets) {
      Reject(absl::StrCat("a histogram ", name_, " has the scale ", point.scale,
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
    const auto bound_of = [&](const OtlpPoint::Buckets& buckets, size_t i) {
      return HistogramBound(point.scale, int64_t{buckets.offset} + static_cast<int64_t>(i));
    };
    for (size_t i = point.negative.counts.size(); i-- > 0;) {
      add(-bound_of(point.negative, i), static_cast<double>(point.negative.counts[i]));
    }
    add(point.zero_threshold, static_cast<double>(point.zero_count));
    for (size_t i = 0; i < point.positive.counts.size(); ++i) {
      add(bound_of(point.positive, i + 1), static_cast<double>(point.positive.counts[i]));
    }
    Bucket(std::numeric_limits<double>::infinity(), static_cast<double>(point.count));
  }

  void Quantiles(const OtlpPoint& point) {
    if (!Begin(point)) return;
    Add("_count", static_cast<double>(point.count), false);
    Add("_sum", point.sum.value_or(0), false);
    for (const auto& [at, value] : point.quantiles) {
      const Label quantile{"quantile", BoundText(at)};
      Add("", value, false, &quantile);
    }
  }

  const std::vector<std::string>& wanted_;
  OtlpMemory& memory_;
  OtlpMetrics result_;
  std::shared_ptr<OtlpResourceShapes> known_;  // Of the resource; empty if it is new.
  std::vector<OtlpShape> learned_;             // Its new ones.
  storage::Labels resource_;                   // Its labels.
  std::vector<absl::string_view> scopes_;      // Of the resource.
  // The metric and the point at hand.
  OtlpMetric told_;
  OtlpPoint point_;
  std::string name_;
  const ForeignMetric* metric_ = nullptr;
  bool delta_ = false;
  bool counts_ = false;  // Its values only grow until it is reset.
  int64_t start_ns_ = 0;
  bool stale_ = false;
  int64_t time_ns_ = 0;
  storage::Labels own_;  // The point's labels.
  std::string labels_;   // These and the resource's, as a part of a key.
};

}  // namespace

absl::StatusOr<OtlpMetrics> ReadOtlpMetrics(absl::string_view request,
                                            const std::vector<std::string>& resource_attributes,
                                            OtlpMemory* memory) {
  Reader reader(resource_attributes, memory);
  absl::Status status;
  reader.Expect(std::min(request.size() / kLeastBytesOfPoint, ForeignWrite::kMaxSamples));
  WireReader in(request);
  while (status.ok() && in.Next()) {
    if (in.field() == 1 && in.is_bytes()) status = reader.Read(in.bytes());
  }
  if (in.broken()) status = Reader::Damaged();
  OtlpMetrics result = std::move(reader).Take();
  if (status.ok()) return result;
  result.noted.TakeBack(memory);
  return status;
}

}  // namespace tacho::server::interop
