#include "server/aggregate/exposition_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tacho::server {
namespace {

constexpr absl::string_view kReservedEndings[] = {"_total", "_count", "_sum", "_bucket", "_info"};
// After "tacho_job_": those of job_families.h.
constexpr absl::string_view kReservedNames[] = {"tasks", "hosts", "attempt", "last_step",
                                                "last_seen_timestamp_seconds"};

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

bool IsReserved(absl::string_view name) {
  for (const absl::string_view reserved : kReservedNames) {
    if (name == reserved) return true;
  }
  for (const absl::string_view ending : kReservedEndings) {
    if (absl::EndsWith(absl::StrCat("_", name), ending)) return true;
  }
  return false;
}

}  // namespace

ExpositionName ExpositionNameOf(absl::string_view metric_name, storage::MetricType type) {
  std::string name = SnakeCase(metric_name);
  if (type == storage::MetricType::kCounter) {
    if (!absl::EndsWith(name, "_total")) absl::StrAppend(&name, "_total");
  } else if (IsReserved(name)) {
    absl::StrAppend(&name, "_value");
  }
  return {absl::StrCat("tacho_job_", name), name == metric_name ? "" : std::string(metric_name)};
}

}  // namespace tacho::server
