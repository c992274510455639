#include "server/interop/formats/otlp_values.h"

#include <cstdint>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/utf8.h"
#include "server/interop/formats/native_histogram.h"
#include "server/interop/formats/wire_reader.h"

namespace tacho::server::interop {
namespace {

constexpr int kMaxDepth = 8;  // Of values in a text.

enum OtlpValueField : uint32_t {
  kStringValue = 1,
  kBoolValue = 2,
  kIntValue = 3,
  kDoubleValue = 4,
  kArrayValue = 5,
  kListValue = 6,
  kBytesValue = 7
};

bool IsOtlpValue(absl::string_view value, int level);

// An ArrayValue, or a KeyValueList if `keys`.
bool AreParts(absl::string_view parts, bool keys, int level) {
  if (level > kMaxLevels) return false;
  WireReader in(parts);
  while (in.Next()) {
    if (in.field() != 1 || !in.is_bytes()) continue;
    OtlpAttribute attribute;
    if (keys ? !ReadOtlpAttribute(in.bytes(), level + 1, &attribute)
             : !IsOtlpValue(in.bytes(), level + 1)) {
      return false;
    }
  }
  return !in.broken();
}

bool IsOtlpValue(absl::string_view value, int level) {
  if (level > kMaxLevels) return false;
  WireReader in(value);
  while (in.Next()) {
    if (!in.is_bytes()) continue;
    const uint32_t field = in.field();
    if (field == kStringValue && !IsUtf8(in.bytes())) return false;
    if ((field == kArrayValue || field == kListValue) &&
        !AreParts(in.bytes(), field == kListValue, level + 1)) {
      return false;
    }
  }
  return !in.broken();
}

std::string ValueTextAt(absl::string_view value, int depth);

std::string ValueListText(absl::string_view list, bool keys, int depth) {
  if (depth == kMaxDepth) return "…";
  std::vector<std::string> parts;
  WireReader in(list);
  while (in.Next()) {
    if (in.field() != 1 || !in.is_bytes()) continue;
    if (keys) {
      OtlpAttribute part;
      ReadOtlpAttribute(in.bytes(), 0, &part);
      parts.push_back(absl::StrCat(part.key, "=", ValueTextAt(part.value, depth + 1)));
    } else {
      parts.push_back(ValueTextAt(in.bytes(), depth + 1));
    }
  }
  const std::string joined = absl::StrJoin(parts, ",");
  return keys ? absl::StrCat("{", joined, "}") : absl::StrCat("[", joined, "]");
}

std::string ValueTextAt(absl::string_view value, int depth) {
  std::string text;
  WireReader in(value);
  while (in.Next()) {  // The last one counts.
    switch (in.field()) {
      case kStringValue:
        if (in.is_bytes()) text.assign(in.bytes().data(), in.bytes().size());
        break;
      case kBoolValue:
        if (in.is_varint()) text = in.number() != 0 ? "true" : "false";
        break;
      case kIntValue:
        if (in.is_varint()) text = absl::StrCat(in.integer());
        break;
      case kDoubleValue:
        if (in.is_fixed64()) text = BoundText(in.real());
        break;
      case kArrayValue:
      case kListValue:
        if (in.is_bytes()) text = ValueListText(in.bytes(), in.field() == kListValue, depth);
        break;
      case kBytesValue:
        if (in.is_bytes()) text = absl::Base64Escape(in.bytes());
        break;
      default:
        break;
    }
  }
  return text;
}

}  // namespace

bool ReadOtlpAttribute(absl::string_view message, int level, OtlpAttribute* attribute) {
  if (level > kMaxLevels) return false;
  *attribute = {};
  bool has_value = false;
  WireReader in(message);
  while (in.Next()) {
    if (!in.is_bytes()) continue;
    if (in.field() == 1) {
      attribute->key = in.bytes();
      if (!IsUtf8(in.bytes())) return false;
    } else if (in.field() == 2) {
      attribute->value = in.bytes();
      if (has_value || !IsOtlpValue(in.bytes(), level + 1)) return false;
      has_value = true;
    }
  }
  return !in.broken();
}

std::string OtlpValueText(absl::string_view value) { return ValueTextAt(value, 0); }

}  // namespace tacho::server::interop
