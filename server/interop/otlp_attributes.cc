#include "server/interop/otlp_attributes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/interop/formats/foreign_write.h"
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

}  // namespace

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

}  // namespace tacho::server::interop
