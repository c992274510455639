// Fields of a type that the message does not have are passed over, as protobuf does with what it
// does not know.
#include "server/interop/formats/otlp_points.h"

#include <bit>

#include "proto/base/utf8.h"
#include "server/interop/formats/native_histogram.h"
#include "server/interop/formats/wire_reader.h"

namespace tacho::server::interop {
namespace {

constexpr int kAttributeLevel = 6;  // Request, ResourceMetrics, ScopeMetrics, Metric, Gauge, point.

int32_t ZigZag32(uint64_t number) {
  const auto coded = static_cast<uint32_t>(number);
  return static_cast<int32_t>(coded >> 1) ^ -static_cast<int32_t>(coded & 1);
}

bool IsMessage(absl::string_view bytes) {
  WireReader in(bytes);
  while (in.Next()) {
  }
  return !in.broken();
}

void ClearPoint(OtlpPoint* point) {
  point->attribute_count = 0;
  point->attributes.clear();
  point->start_ns = 0;
  point->time_ns = 0;
  point->flags = 0;
  point->exemplars = 0;
  point->value = OtlpPoint::Value::kNone;
  point->real = 0;
  point->whole = 0;
  point->count = 0;
  point->sum = point->min = point->max = std::nullopt;
  point->bucket_counts.clear();
  point->bounds.clear();
  point->scale = 0;
  point->zero_count = 0;
  point->zero_threshold = 0;
  for (OtlpPoint::Buckets* buckets : {&point->positive, &point->negative}) {
    buckets->offset = 0;
    buckets->count = 0;
    buckets->counts.clear();
  }
  point->quantiles.clear();
}

bool AddPointAttribute(const WireReader& in, OtlpPoint* point) {
  if (!in.is_bytes()) return true;
  OtlpAttribute attribute;
  if (!ReadOtlpAttribute(in.bytes(), kAttributeLevel, &attribute)) return false;
  if (++point->attribute_count <= OtlpPoint::kMaxAttributes) {
    point->attributes.push_back(attribute);
  }
  return true;
}

bool AddExemplar(const WireReader& in, OtlpPoint* point) {
  if (!in.is_bytes()) return true;
  ++point->exemplars;
  return IsMessage(in.bytes());
}

void TakeFlags(const WireReader& in, OtlpPoint* point) {
  if (in.is_varint()) point->flags = static_cast<uint32_t>(in.number());
}

template <typename Number>
void TakeReal(const WireReader& in, Number* number) {
  if (in.is_fixed64()) *number = in.real();
}

void TakeFixed(const WireReader& in, uint64_t* number) {
  if (in.is_fixed64()) *number = in.number();
}

bool TakeNumberField(const WireReader& in, OtlpPoint* point) {
  switch (in.field()) {
    case 2:
      TakeFixed(in, &point->start_ns);
      return true;
    case 3:
      TakeFixed(in, &point->time_ns);
      return true;
    case 4:
      if (!in.is_fixed64()) return true;
      point->value = OtlpPoint::Value::kReal;
      point->real = in.real();
      return true;
    case 5:
      return AddExemplar(in, point);
    case 6:
      if (!in.is_fixed64()) return true;
      point->value = OtlpPoint::Value::kWhole;
      point->whole = in.integer();
      return true;
    case 7:
      return AddPointAttribute(in, point);
    case 8:
      TakeFlags(in, point);
      return true;
    default:
      return true;
  }
}

bool TakeHistogramField(const WireReader& in, OtlpPoint* point) {
  const bool numbers = in.is_fixed64() || in.is_bytes();
  switch (in.field()) {
    case 2:
      TakeFixed(in, &point->start_ns);
      return true;
    case 3:
      TakeFixed(in, &point->time_ns);
      return true;
    case 4:
      TakeFixed(in, &point->count);
      return true;
    case 5:
      TakeReal(in, &point->sum);
      return true;
    case 6:
      return !numbers ||
             in.ForEachFixed64([point](uint64_t count) { point->bucket_counts.push_back(count); });
    case 7:
      return !numbers || in.ForEachFixed64([point](uint64_t bits) {
        point->bounds.push_back(std::bit_cast<double>(bits));
      });
    case 8:
      return AddExemplar(in, point);
    case 9:
      return AddPointAttribute(in, point);
    case 10:
      TakeFlags(in, point);
      return true;
    case 11:
      TakeReal(in, &point->min);
      return true;
    case 12:
      TakeReal(in, &point->max);
      return true;
    default:
      return true;
  }
}

bool AddBuckets(const WireReader& field, OtlpPoint::Buckets* buckets) {
  if (!field.is_bytes()) return true;
  WireReader in(field.bytes());
  while (in.Next()) {
    if (in.field() == 1 && in.is_varint()) buckets->offset = ZigZag32(in.number());
    if (in.field() != 2 || !(in.is_varint() || in.is_bytes())) continue;
    if (!in.ForEachVarint([buckets](uint64_t count) {
          if (++buckets->count <= kMaxHistogramBuckets) buckets->counts.push_back(count);
        })) {
      return false;
    }
  }
  return !in.broken();
}

bool TakeExponentialField(const WireReader& in, OtlpPoint* point) {
  switch (in.field()) {
    case 1:
      return AddPointAttribute(in, point);
    case 2:
      TakeFixed(in, &point->start_ns);
      return true;
    case 3:
      TakeFixed(in, &point->time_ns);
      return true;
    case 4:
      TakeFixed(in, &point->count);
      return true;
    case 5:
      TakeReal(in, &point->sum);
      return true;
    case 6:
      if (in.is_varint()) point->scale = ZigZag32(in.number());
      return true;
    case 7:
      TakeFixed(in, &point->zero_count);
      return true;
    case 8:
      return AddBuckets(in, &point->positive);
    case 9:
      return AddBuckets(in, &point->negative);
    case 10:
      TakeFlags(in, point);
      return true;
    case 11:
      return AddExemplar(in, point);
    case 12:
      TakeReal(in, &point->min);
      return true;
    case 13:
      TakeReal(in, &point->max);
      return true;
    case 14:
      TakeReal(in, &point->zero_threshold);
      return true;
    default:
      return true;
  }
}

bool AddQuantile(const WireReader& field, OtlpPoint* point) {
  if (!field.is_bytes()) return true;
  auto& [quantile, value] = point->quantiles.emplace_back();
  WireReader in(field.bytes());
  while (in.Next()) {
    if (in.field() == 1) TakeReal(in, &quantile);
    if (in.field() == 2) TakeReal(in, &value);
  }
  return !in.broken();
}

bool TakeSummaryField(const WireReader& in, OtlpPoint* point) {
  switch (in.field()) {
    case 2:
      TakeFixed(in, &point->start_ns);
      return true;
    case 3:
      TakeFixed(in, &point->time_ns);
      return true;
    case 4:
      TakeFixed(in, &point->count);
      return true;
    case 5:
      TakeReal(in, &point->sum);
      return true;
    case 6:
      return AddQuantile(in, point);
    case 7:
      return AddPointAttribute(in, point);
    case 8:
      TakeFlags(in, point);
      return true;
    default:
      return true;
  }
}

using TakePointField = bool (*)(const WireReader&, OtlpPoint*);

TakePointField FieldsOf(OtlpMetric::Kind kind) {
  switch (kind) {
    case OtlpMetric::kHistogram:
      return TakeHistogramField;
    case OtlpMetric::kExponential:
      return TakeExponentialField;
    case OtlpMetric::kSummary:
      return TakeSummaryField;
    default:
      return TakeNumberField;
  }
}

// Gauge, Sum, Histogram, ExponentialHistogram or Summary.
bool ReadMetricData(absl::string_view data, OtlpMetric* metric) {
  constexpr int32_t kDelta = 1;  // AggregationTemporality.
  WireReader in(data);
  while (in.Next()) {
    if (in.field() == 1 && in.is_bytes()) metric->points.push_back(in.bytes());
    if (in.field() == 2 && in.is_varint()) {
      metric->delta = static_cast<int32_t>(in.number()) == kDelta;
    }
    if (in.field() == 3 && in.is_varint()) metric->monotonic = in.number() != 0;
  }
  return !in.broken();
}

}  // namespace

bool ReadOtlpMetric(absl::string_view message, OtlpMetric* metric) {
  metric->name = metric->description = metric->unit = {};
  metric->kind = OtlpMetric::kNone;
  metric->delta = metric->monotonic = false;
  metric->points.clear();
  WireReader in(message);
  while (in.Next()) {
    if (!in.is_bytes()) continue;
    switch (in.field()) {
      case 1:
      case 2:
      case 3:
        if (!IsUtf8(in.bytes())) return false;
        (in.field() == 1   ? metric->name
         : in.field() == 2 ? metric->description
                           : metric->unit) = in.bytes();
        break;
      case OtlpMetric::kGauge:
      case OtlpMetric::kSum:
      case OtlpMetric::kHistogram:
      case OtlpMetric::kExponential:
      case OtlpMetric::kSummary:
        if (metric->kind != OtlpMetric::kNone || !ReadMetricData(in.bytes(), metric)) return false;
        metric->kind = static_cast<OtlpMetric::Kind>(in.field());
        break;
      default:
        break;
    }
  }
  return !in.broken();
}

bool ReadOtlpPoint(absl::string_view message, OtlpMetric::Kind kind, OtlpPoint* point) {
  ClearPoint(point);
  const TakePointField take = FieldsOf(kind);
  WireReader in(message);
  while (in.Next()) {
    if (!take(in, point)) return false;
  }
  return !in.broken();
}

}  // namespace tacho::server::interop
