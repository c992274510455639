// Fields of a type that a message does not have are passed over, as protobuf does with what it does
// not know.
#include "server/interop/formats/metric_families.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8.h"
#include "proto/exposition/exposition_scanner.h"
#include "server/interop/formats/foreign_write.h"
#include "server/interop/formats/native_histogram.h"
#include "server/interop/formats/wire_reader.h"

namespace tacho::server::interop {
namespace {

// MetricType in metrics.proto.
enum class Kind : uint64_t {
  kCounter = 0,
  kGauge = 1,
  kSummary = 2,
  kUntyped = 3,
  kHistogram = 4,
  kGaugeHistogram = 5
};

FamilyType TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return FamilyType::kCounter;
    case Kind::kGauge:
      return FamilyType::kGauge;
    case Kind::kSummary:
      return FamilyType::kSummary;
    case Kind::kHistogram:
      return FamilyType::kHistogram;
    case Kind::kGaugeHistogram:
      return FamilyType::kGaugeHistogram;
    default:
      return FamilyType::kUnknown;
  }
}

// The field of Metric that has the value of a kind.
uint32_t FieldOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return 3;
    case Kind::kGauge:
      return 2;
    case Kind::kSummary:
      return 4;
    case Kind::kHistogram:
    case Kind::kGaugeHistogram:
      return 7;
    default:
      return 5;
  }
}

// A whole number, or the one with a fraction that may stand instead.
struct Count {
  double whole = 0;
  std::optional<double> real;
  double value() const { return real.value_or(whole); }
};

class FamilyReader {
 public:
  FamilyReader(const ExpositionLimits& limits, Exposition* result)
      : limits_(limits), result_(*result) {}

  absl::Status Read(absl::string_view message) {
    ExpositionFamily family;
    kind_ = Kind::kCounter;
    std::vector<absl::string_view> metrics;
    WireReader in(message);
    while (in.Next()) {
      if (in.field() == 3 && in.is_varint()) kind_ = static_cast<Kind>(in.number());
      if (!in.is_bytes()) continue;
      if (in.field() == 1) family.name = std::string(in.bytes());
      if (in.field() == 2) family.help = std::string(in.bytes());
      if (in.field() == 4) {
        if (metrics.size() >= limits_.max_samples) return TooMany("samples");
        metrics.push_back(in.bytes());
      }
      if (in.field() == 5) family.unit = std::string(in.bytes());
    }
    if (in.broken()) return Damaged();
    if (!IsUtf8(family.help) || !IsUtf8(family.unit) || !IsMetricName(family.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("family ", result_.families.size() + 1,
                       " has a name that is none, or text that is not UTF-8"));
    }
    if (result_.families.size() >= limits_.max_samples) return TooMany("families");
    family.type = TypeOf(kind_);
    name_ = family.name;
    result_.families.push_back(std::move(family));
    for (const absl::string_view metric : metrics) TACHO_RETURN_IF_ERROR(ReadMetric(metric));
    return absl::OkStatus();
  }
  static absl::Status Damaged() {
    return absl::InvalidArgumentError(
        "the body is no messages of io.prometheus.client.MetricFamily with their lengths");
  }

 private:
  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("a metric of ", name_, " ", what));
  }

  absl::Status TooMany(absl::string_view what) const {
    return absl::ResourceExhaustedError(
        absl::StrCat("the body has more than ", limits_.max_samples, " ", what));
  }

  absl::Status ReadMetric(absl::string_view message) {
    labels_.clear();
    time_ns_ = std::nullopt;
    std::optional<absl::string_view> value;
    WireReader in(message);
    while (in.Next()) {
      if (in.field() == 1 && in.is_bytes()) TACHO_RETURN_IF_ERROR(ReadLabel(in.bytes()));
      if (in.field() == 6 && in.is_varint()) time_ns_ = NanosFromMillis(in.integer());
      if (in.field() == FieldOf(kind_) && in.is_bytes()) value = in.bytes();
    }
    if (in.broken()) return Damaged();
    if (!value.has_value()) return Wrong("has no value of its type");
    switch (kind_) {
      case Kind::kSummary:
        return ReadSummary(*value);
      case Kind::kHistogram:
      case Kind::kGaugeHistogram:
        return ReadHistogram(*value);
      default:
        return ReadNumber(*value);
    }
  }

  absl::Status ReadLabel(absl::string_view message) {
    std::string name;
    std::string value;
    WireReader in(message);
    while (in.Next()) {
      if (in.field() == 1 && in.is_bytes()) name = std::string(in.bytes());
      if (in.field() == 2 && in.is_bytes()) value = std::string(in.bytes());
    }
    if (in.broken()) return Damaged();
    if (!IsLabelName(name)) return Wrong("has a label whose name is none");
    if (!IsUtf8(value)) return Wrong(absl::StrCat("has a label ", name, " that is not UTF-8"));
    const auto same = [&name](const auto& label) { return label.first == name; };
    if (std::any_of(labels_.begin(), labels_.end(), same)) {
      return Wrong(absl::StrCat("has the label ", name, " twice"));
    }
    if (labels_.size() >= limits_.max_labels) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a metric of ", name_, " has more than ", limits_.max_labels, " labels"));
    }
    labels_.emplace_back(std::move(name), std::move(value));
    return absl::OkStatus();
  }

  // `label` stands behind the metric's own; a metric that has it itself is refused.
  absl::Status Add(absl::string_view suffix, double value, absl::string_view label = "",
                   absl::string_view label_value = "") {
    if (result_.samples.size() >= limits_.max_samples) return TooMany("samples");
    ExpositionSample& sample = result_.samples.emplace_back();
    sample.name = absl::StrCat(name_, suffix);
    sample.labels = labels_;
    if (!label.empty()) {
      for (const auto& [name, own] : labels_) {
        if (name == label) return Wrong(absl::StrCat("has the label ", label, " itself"));
      }
      sample.labels.emplace_back(label, label_value);
    }
    sample.value = value;
    sample.time_ns = time_ns_;
    sample.family = result_.families.size() - 1;
    return absl::OkStatus();
  }

  // Counter, Gauge and Untyped.
  absl::Status ReadNumber(absl::string_view message) {
    double value = 0;
    WireReader in(message);
    while (in.Next()) {
      if (in.field() == 1 && in.is_fixed64()) value = in.real();
    }
    return in.broken() ? Damaged() : Add("", value);
  }

  absl::Status ReadSummary(absl::string_view message) {
    Count count;
    double sum = 0;
    WireReader in(message);
    while (in.Next()) {
      if (in.field() == 1 && in.is_varint()) count.whole = static_cast<double>(in.number());
      if (in.field() == 2 && in.is_fixed64()) sum = in.real();
      if (in.field() == 3 && in.is_bytes()) TACHO_RETURN_IF_ERROR(ReadQuantile(in.bytes()));
    }
    if (in.broken()) return Damaged();
    TACHO_RETURN_IF_ERROR(Add("_sum", sum));
    return Add("_count", count.value());
  }

  absl::Status ReadQuantile(absl::string_view message) {
    double quantile = 0;
    double value = 0;
    WireReader in(message);
    while (in.Next()) {
      if (in.field() == 1 && in.is_fixed64()) quantile = in.real();
      if (in.field() == 2 && in.is_fixed64()) value = in.real();
    }
    return in.broken() ? Damaged() : Add("", value, "quantile", BoundText(quantile));
  }

  absl::Status ReadHistogram(absl::string_view message) {
    Count count;
    double sum = 0;
    bool has_infinite = false;
    WireReader in(message);
    while (in.Next()) {
      if (in.field() == 1 && in.is_varint()) count.whole = static_cast<double>(in.number());
      if (in.field() == 4 && in.is_fixed64()) count.real = in.real();
      if (in.field() == 2 && in.is_fixed64()) sum = in.real();
      if (in.field() == 3 && in.is_bytes()) {
        TACHO_RETURN_IF_ERROR(ReadBucket(in.bytes(), &has_infinite));
      }
    }
    if (in.broken()) return Damaged();
    // Go's client leaves it out, because it is the count.
    if (!has_infinite) {
      TACHO_RETURN_IF_ERROR(Add("_bucket", count.value(), "le", "+Inf"));
    }
    const bool may_fall = kind_ == Kind::kGaugeHistogram;
    TACHO_RETURN_IF_ERROR(Add(may_fall ? "_gsum" : "_sum", sum));
    return Add(may_fall ? "_gcount" : "_count", count.value());
  }

  absl::Status ReadBucket(absl::string_view message, bool* has_infinite) {
    Count count;
    double bound = 0;
    WireReader in(message);
    while (in.Next()) {
      if (in.field() == 1 && in.is_varint()) count.whole = static_cast<double>(in.number());
      if (in.field() == 4 && in.is_fixed64()) count.real = in.real();
      if (in.field() == 2 && in.is_fixed64()) bound = in.real();
    }
    if (in.broken()) return Damaged();
    *has_infinite = *has_infinite || bound == std::numeric_limits<double>::infinity();
    return Add("_bucket", count.value(), "le", BoundText(bound));
  }

  const ExpositionLimits& limits_;
  Exposition& result_;
  // Of the family and the metric at hand.
  Kind kind_ = Kind::kCounter;
  std::string name_;
  ExpositionSample::Labels labels_;
  std::optional<int64_t> time_ns_;
};

}  // namespace

absl::StatusOr<Exposition> ReadMetricFamilies(absl::string_view body,
                                              const ExpositionLimits& limits) {
  Exposition result;
  FamilyReader reader(limits, &result);
  while (!body.empty()) {
    const auto message = WireReader::TakeDelimited(&body);
    if (!message.has_value()) return FamilyReader::Damaged();
    TACHO_RETURN_IF_ERROR(reader.Read(*message));
  }
  return result;
}

}  // namespace tacho::server::interop
