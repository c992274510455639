// A source's part of the agent's log.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/log.h"

namespace tacho::agent {

// The name of the source begins every message. The log writes of each message at most
// log::Log::kLinesPerMinute lines a minute, so a source may report every broken file and every
// refused row. Thread-safe.
class SourceLog {
 public:
  // A log made from nothing drops everything.
  SourceLog(absl::string_view source, log::Log log)
      : prefix_(absl::StrCat(source, ": ")), log_(std::move(log)) {}

  // `message` is a constant text; what varies is in `fields`.
  void Warn(absl::string_view message, log::Fields fields = {}) const {
    log_.Limited(log::Level::kWarn, absl::StrCat(prefix_, message), fields);
  }
  // For the status of a write to the sink.
  void WarnIfLost(const absl::Status& written) const {
    if (!written.ok()) Warn("a sample is lost", {{"reason", written.ToString()}});
  }

 private:
  std::string prefix_;
  log::Log log_;
};

}  // namespace tacho::agent
