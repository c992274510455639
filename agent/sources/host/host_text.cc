#include "agent/sources/host/host_text.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace tacho::agent {

std::vector<absl::string_view> Lines(absl::string_view text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

std::vector<absl::string_view> Words(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
}

std::optional<double> Number(absl::string_view word) {
  double value = 0;
  if (!absl::SimpleAtod(word, &value) || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

bool ParseKeyed(absl::string_view text, const KeyedMetrics& metrics, Sample* out) {
  bool understood = false;
  for (absl::string_view line : Lines(text)) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.size() < 2) continue;
    for (const KeyedMetric* keyed = metrics.begin; keyed != metrics.end; ++keyed) {
      if (keyed->key != words[0]) continue;
      const std::optional<double> value = Number(words[1]);
      if (!value.has_value()) continue;
      out->Add(keyed->metric, *value * keyed->factor);
      understood = true;
    }
  }
  return understood;
}

}  // namespace tacho::agent
