#include "client/tfevents/event.h"

#include <cmath>

#include "client/tfevents/proto_wire.h"
#include "client/tfevents/tensor.h"

namespace tacho::client {
namespace {

using Field = ProtoFields::Field;
using Type = ProtoFields::Type;

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
constexpr uint32_t kEventWallTime = 1;
constexpr uint32_t kEventStep = 2;
constexpr uint32_t kEventSummary = 5;
constexpr uint32_t kEventSessionLog = 7;
constexpr uint32_t kSessionLogStatus = 1;
constexpr uint64_t kSessionLogStart = 1;
constexpr uint32_t kSummaryValue = 1;
constexpr uint32_t kValueTag = 1;
constexpr uint32_t kValueSimple = 2;
constexpr uint32_t kValueTensor = 8;
constexpr uint32_t kValueMetadata = 9;
constexpr uint32_t kMetadataPlugin = 1;
constexpr uint32_t kMetadataDataClass = 4;
constexpr uint64_t kDataClassScalar = 1;
constexpr uint32_t kPluginName = 1;

// Old-style histogram, image, histogram, audio: the other members of the value's oneof.
bool IsOtherValue(uint32_t number) { return number >= 3 && number <= 6; }

bool DecodePlugin(absl::string_view bytes, TfValue* value) {
  ProtoFields fields(bytes);
  for (Field field; fields.Next(&field);) {
    if (field.Is(kPluginName, Type::kBytes)) value->plugin = field.bytes;
  }
  return !fields.malformed();
}

bool DecodeMetadata(absl::string_view bytes, TfValue* value) {
  ProtoFields fields(bytes);
  for (Field field; fields.Next(&field);) {
    if (field.Is(kMetadataPlugin, Type::kBytes) && !DecodePlugin(field.bytes, value)) return false;
    if (field.Is(kMetadataDataClass, Type::kVarint)) {
      value->scalar_class = field.value == kDataClassScalar;
    }
  }
  return !fields.malformed();
}

bool DecodeTensorValue(absl::string_view bytes, TfValue* value) {
  TensorNumber number;
  if (!DecodeTensorNumber(bytes, &number)) return false;
  value->kind = number.single ? TfValue::Kind::kTensor : TfValue::Kind::kOther;
  value->value = number.value;
  value->rank_zero = number.rank_zero;
  return true;
}

bool DecodeValue(absl::string_view bytes, TfValue* value) {
  ProtoFields fields(bytes);
  for (Field field; fields.Next(&field);) {
    if (field.Is(kValueTag, Type::kBytes)) {
      value->tag = field.bytes;
    } else if (field.Is(kValueSimple, Type::kFixed32)) {
      value->kind = TfValue::Kind::kSimple;
      value->value = WidenFloat(static_cast<uint32_t>(field.value));
    } else if (field.Is(kValueTensor, Type::kBytes)) {
      if (!DecodeTensorValue(field.bytes, value)) return false;
    } else if (field.Is(kValueMetadata, Type::kBytes)) {
      if (!DecodeMetadata(field.bytes, value)) return false;
    } else if (IsOtherValue(field.number)) {
      value->kind = TfValue::Kind::kOther;
    }
  }
  return !fields.malformed();
}

bool VisitValues(absl::string_view summary, absl::FunctionRef<void(const TfValue&)> visit) {
  ProtoFields fields(summary);
  for (Field field; fields.Next(&field);) {
    if (!field.Is(kSummaryValue, Type::kBytes)) continue;
    TfValue value;
    if (!DecodeValue(field.bytes, &value)) return false;
    visit(value);
  }
  return !fields.malformed();
}

bool DecodeSessionLog(absl::string_view bytes, TfEvent* event) {
  ProtoFields fields(bytes);
  for (Field field; fields.Next(&field);) {
    if (field.Is(kSessionLogStatus, Type::kVarint)) {
      event->session_start = field.value == kSessionLogStart;
    }
  }
  return !fields.malformed();
}

// The time and step, which may stand behind the summary that they belong to.
bool DecodeEventHead(absl::string_view payload, TfEvent* event) {
  ProtoFields fields(payload);
  for (Field field; fields.Next(&field);) {
    if (field.Is(kEventWallTime, Type::kFixed64)) {
      event->wall_time = DoubleFromBits(field.value);
    } else if (field.Is(kEventStep, Type::kVarint)) {
      event->step = static_cast<int64_t>(field.value);
    } else if (field.Is(kEventSessionLog, Type::kBytes)) {
      if (!DecodeSessionLog(field.bytes, event)) return false;
    }
  }
  return !fields.malformed();
}

}  // namespace

bool DecodeTfEvent(absl::string_view payload, TfEvent* event,
                   absl::FunctionRef<void(const TfValue&)> visit) {
  *event = TfEvent();
  if (!DecodeEventHead(payload, event)) return false;
  ProtoFields fields(payload);
  for (Field field; fields.Next(&field);) {
    if (field.Is(kEventSummary, Type::kBytes) && !VisitValues(field.bytes, visit)) return false;
  }
  return true;
}

std::optional<int64_t> UnixNsOfWallTime(double wall_time) {
  constexpr double kEndSeconds = 9223372036;  // The last whole second of an int64 of ns.
  if (!(wall_time >= 0 && wall_time < kEndSeconds)) return std::nullopt;
  const double seconds = std::floor(wall_time);
  return static_cast<int64_t>(seconds) * 1'000'000'000 + std::llround((wall_time - seconds) * 1e9);
}

}  // namespace tacho::client
