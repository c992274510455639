#include "server/aggregate/exposition_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/metrics/metric_table.h"

namespace tacho::server::aggregate {
namespace {

constexpr absl::string_view kReservedEndings[] = {"_total", "_count", "_sum", "_bucket", "_info"};
constexpr char kPlaceholder[] = "{metric}";
constexpr char kTotal[] = "_total";

std::string SnakeCase(absl::string_view name) {
  std::string snake;
  bool gap = false;        // Something was left out since the last character.
  bool was_small = false;  // The last character was a small letter or a digit.
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (!absl::ascii_isalnum(byte) && c != '_') {
      gap = true;
      continue;
    }
    const bool parts = gap || (was_small && absl::ascii_isupper(byte));
    if (parts && !snake.empty() && snake.back() != '_' && c != '_') snake += '_';
    gap = false;
    was_small = absl::ascii_islower(byte) || absl::ascii_isdigit(byte);
    snake += absl::ascii_tolower(byte);
  }
  return snake.empty() ? "metric" : snake;
}

bool HasReservedEnding(absl::string_view name) {
  for (const absl::string_view ending : kReservedEndings) {
    if (absl::EndsWith(absl::StrCat("_", name), ending)) return true;
  }
  return false;
}

}  // namespace

ExpositionName ExpositionNameOf(absl::string_view rename, absl::string_view metric_name,
                                storage::MetricType type) {
  const bool counter = type == storage::MetricType::kCounter;
  const bool whole = !absl::StrContains(rename, kPlaceholder);
  std::string name = whole ? std::string(rename) : SnakeCase(metric_name);
  const auto family = [&] {
    return whole ? name : absl::StrReplaceAll(rename, {{kPlaceholder, name}});
  };
  if (counter) {
    if (absl::EndsWith(name, kTotal)) name.resize(name.size() - (sizeof(kTotal) - 1));
    if (IsCollectorFamily(family() + kTotal)) absl::StrAppend(&name, "_value");
    absl::StrAppend(&name, kTotal);
  } else if (type == storage::MetricType::kHistogram && absl::EndsWith(name, "_bucket")) {
    name.resize(name.size() - 7);
  } else if (HasReservedEnding(name) || IsCollectorFamily(family())) {
    absl::StrAppend(&name, "_value");
  }
  const bool told = whole || name == metric_name;
  return {family(), told ? std::string() : std::string(metric_name)};
}

std::string RateFamily(absl::string_view counter_family) {
  std::string family = absl::StrCat(
      counter_family.substr(0, counter_family.size() - (sizeof(kTotal) - 1)), "_per_second");
  if (IsCollectorFamily(family)) absl::StrAppend(&family, "_value");
  return family;
}

bool IsCollectorFamily(absl::string_view family) { return metrics::FindMetric(family) != nullptr; }

}  // namespace tacho::server::aggregate
