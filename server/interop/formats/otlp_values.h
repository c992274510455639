// Attributes of OpenTelemetry in the bytes of a request, without generated messages
// (open-telemetry/opentelemetry-proto, opentelemetry/proto/common/v1/common.proto).
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tacho::server::interop {

// Messages in each other, as deep as protobuf reads them; the request itself is at level 0.
constexpr int kMaxLevels = 100;

// A KeyValue. Points into the request.
struct OtlpAttribute {
  absl::string_view key;
  absl::string_view value;  // The bytes of an AnyValue; empty: there is none.
};

// Reads a KeyValue and checks all that is in it. `level` is its own. False if the bytes are no such
// message, hold text that is not UTF-8 or nest too deep, or if it has two values, which protobuf
// would merge.
bool ReadOtlpAttribute(absl::string_view message, int level, OtlpAttribute* attribute);

// Of an AnyValue that was checked: numbers in decimal, bytes in base64, lists as [a,b] and
// {key=value}; "…" stands for what nests too deep. Nothing is the empty text.
std::string OtlpValueText(absl::string_view value);

}  // namespace tacho::server::interop
