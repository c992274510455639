#include "agent/sources/identity/pod_labels.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "agent/sources/identity/quoted_text.h"

namespace tacho::agent {
namespace {

using Labels = std::map<std::string, std::string>;

void Add(absl::string_view key, std::string value, Labels* labels) {
  if (key.empty() || labels->size() >= kMaxPodLabels) return;
  labels->try_emplace(std::string(key), std::move(value));
}

}  // namespace

Labels ParsePodLabels(absl::string_view untrusted) {
  Labels labels;
  for (const absl::string_view line : absl::StrSplit(untrusted, '\n')) {
    const size_t equals = line.find('=');
    if (equals == absl::string_view::npos) continue;
    absl::string_view rest = line.substr(equals + 1);
    std::optional<std::string> value = ConsumeQuoted(&rest);
    if (!value.has_value() || !absl::StripAsciiWhitespace(rest).empty()) continue;
    Add(line.substr(0, equals), *std::move(value), &labels);
  }
  return labels;
}

Labels ParseNodeLabels(absl::string_view untrusted) {
  Labels labels;
  for (const absl::string_view entry : absl::StrSplit(untrusted, ',')) {
    const size_t equals = entry.find('=');
    if (equals == absl::string_view::npos) continue;
    Add(absl::StripAsciiWhitespace(entry.substr(0, equals)),
        std::string(absl::StripAsciiWhitespace(entry.substr(equals + 1))), &labels);
  }
  return labels;
}

}  // namespace tacho::agent
