#include "server/interop/otlp_attributes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/interop/formats/foreign_write.h"

namespace tacho::server::interop {
namespace {

namespace common = opentelemetry::proto::common::v1;

void AddText(absl::string_view key, std::string text, storage::Labels* labels) {
  std::string name = LabelNameOf(key);
  for (auto& [known, value] : *labels) {
    if (known == name) return absl::StrAppend(&value, ";", text);
  }
  labels->emplace_back(std::move(name), std::move(text));
}

}  // namespace

std::string AttributeText(const common::AnyValue& value) {
  return OtlpValueText(value.SerializeAsString());
}

void AddAttribute(const OtlpAttribute& attribute, storage::Labels* labels) {
  AddText(attribute.key, OtlpValueText(attribute.value), labels);
}

storage::Labels WantedLabels(const opentelemetry::proto::resource::v1::Resource& resource,
                             const std::vector<std::string>& wanted) {
  storage::Labels labels;
  for (const common::KeyValue& attribute : resource.attributes()) {
    if (std::find(wanted.begin(), wanted.end(), attribute.key()) == wanted.end()) continue;
    AddText(attribute.key(), AttributeText(attribute.value()), &labels);
  }
  return labels;
}

}  // namespace tacho::server::interop
