// Where the agent's lines go. main() gives them to the logging library; tests keep or drop them.
#pragma once

#include <functional>

#include "absl/strings/string_view.h"

namespace tacho::agent {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Takes one line, without a line feed. Called from several threads; may be null.
using LogLine = std::function<void(LogLevel level, absl::string_view line)>;

inline void Say(const LogLine& log, LogLevel level, absl::string_view line) {
  if (log) log(level, line);
}

}  // namespace tacho::agent
