#include "server/interop/formats/label_template.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"

namespace tacho::server::interop {
namespace {

// "10.0.0.7:9100" -> "10.0.0.7", "[fe80::1]:9100" -> "fe80::1". What has no port stays as it is:
// also an address of IPv6 without brackets.
absl::string_view WithoutPort(absl::string_view address) {
  if (absl::ConsumePrefix(&address, "[")) return address.substr(0, address.find(']'));
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return address;
  return address.find(':') == colon ? address.substr(0, colon) : address;
}

}  // namespace

const std::string* FindLabel(const storage::Labels& labels, absl::string_view name) {
  for (const auto& [key, value] : labels) {
    if (key == name) return &value;
  }
  return nullptr;
}

absl::StatusOr<LabelTemplate> LabelTemplate::Parse(absl::string_view text) {
  LabelTemplate result;
  while (!text.empty()) {
    const size_t open = text.find_first_of("{}");
    if (open != 0) {
      result.parts_.push_back({.literal = std::string(text.substr(0, open))});
      if (open == absl::string_view::npos) break;
    }
    if (text[open] == '}') {
      return absl::InvalidArgumentError("a '}' has no '{' before it");
    }
    const size_t close = text.find('}', open);
    if (close == absl::string_view::npos) {
      return absl::InvalidArgumentError("a '{' has no '}' behind it");
    }
    TACHO_ASSIGN_OR_RETURN(auto part, ParseBraces(text.substr(open + 1, close - open - 1)));
    result.parts_.push_back(std::move(part));
    text.remove_prefix(close + 1);
  }
  return result;
}

absl::StatusOr<LabelTemplate::Part> LabelTemplate::ParseBraces(absl::string_view inside) {
  Part part;
  const size_t colon = inside.find(':');
  if (colon != absl::string_view::npos) part.fallback = std::string(inside.substr(colon + 1));
  for (absl::string_view label : absl::StrSplit(inside.substr(0, colon), ',')) {
    Choice choice;
    choice.host_only = absl::ConsumeSuffix(&label, "|host");
    if (label.empty() || absl::StrContains(label, '|') || absl::StrContains(label, '{')) {
      return absl::InvalidArgumentError(
          absl::StrCat("'{", inside,
                       "}' is not a list of labels; expected {label}, {label,other}, {label|host} "
                       "or {label:text}"));
    }
    choice.label = std::string(label);
    part.choices.push_back(std::move(choice));
  }
  return part;
}

std::optional<std::string> LabelTemplate::Expand(const storage::Labels& labels,
                                                 std::vector<absl::string_view>* used) const {
  std::string text;
  for (const Part& part : parts_) {
    text += part.literal;
    if (part.choices.empty()) continue;
    const std::string* value = nullptr;
    for (const Choice& choice : part.choices) {
      value = FindLabel(labels, choice.label);
      if (value == nullptr || value->empty()) continue;
      const absl::string_view whole = *value;
      const absl::string_view taken = choice.host_only ? WithoutPort(whole) : whole;
      absl::StrAppend(&text, taken);
      if (taken.size() == whole.size()) used->push_back(choice.label);
      break;
    }
    if (value != nullptr && !value->empty()) continue;
    if (!part.fallback.has_value()) return std::nullopt;
    text += *part.fallback;
  }
  return text;
}

}  // namespace tacho::server::interop
