// How a group of detectors makes the rows of its table.
#pragma once

#include <utility>

#include "absl/time/time.h"
#include "server/conditions/detector.h"

namespace tacho::server::conditions {

// `config` is the condition's message: all of them have `enabled`, `for`, `clear_after` and
// `severity`. `settings` are what SettingsOf() made of the rest of it.
template <typename Settings, typename Config>
Detector Row(const char* name, Finding (*detect)(const JobWindow&, const Settings&),
             Settings settings, const Config& config) {
  return {.name = name,
          .enabled = config.enabled(),
          .detect = [detect, settings = std::move(settings)](
                        const JobWindow& window) { return detect(window, settings); },
          .hold_for = absl::Nanoseconds(config.for_()),
          .clear_after = absl::Nanoseconds(config.clear_after()),
          .severity = ParseSeverity(config.severity())};
}

}  // namespace tacho::server::conditions
