// What a person says about files beside what they hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/import/record_sink.h"

namespace tacho::importer {

struct ReadOptions {
  // Of series that do not say otherwise.
  std::optional<uint32_t> task = 0;
  uint32_t attempt = 0;
  std::string host;
  std::vector<std::pair<std::string, std::string>> labels;  // Beside their own.

  // Where a file has no times, that of step 0, and how much later each step is. Absent: what the
  // file says, or INVALID_ARGUMENT with a text that asks for it.
  std::optional<absl::Time> start;
  std::optional<absl::Duration> step_time;

  // Fields of CSV and JSON lines; empty: by their names.
  std::string step_field;
  std::string time_field;
  std::vector<std::string> metrics;           // Only these; none: every number.
  absl::TimeZone zone = absl::UTCTimeZone();  // Of times without one.

  // Damaged lines and records are passed over and counted instead of ending the reading.
  bool skip_damaged = false;

  SeriesKey Key(std::string metric) const {
    SeriesKey key;
    key.task = task;
    key.attempt = attempt;
    key.host = host;
    key.metric = std::move(metric);
    key.labels = labels;
    return key;
  }
  bool Wants(const std::string& metric) const {
    if (metrics.empty()) return true;
    for (const std::string& wanted : metrics) {
      if (wanted == metric) return true;
    }
    return false;
  }
};

}  // namespace tacho::importer
