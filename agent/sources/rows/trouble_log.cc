#include "agent/sources/rows/trouble_log.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::agent {

TroubleLog::TroubleLog(absl::string_view source, LogCallback log)
    : source_(source), log_(std::move(log)) {}

void TroubleLog::Say(absl::Time now, absl::string_view kind, absl::string_view text) {
  Minute& minute = kinds_[std::string(kind)];
  // A clock that was set back must not silence the log until it has caught up.
  if (now - minute.begin >= absl::Minutes(1) || now < minute.begin) {
    minute.begin = now;
    minute.lines = 0;
  }
  if (minute.lines >= kLinesPerMinute) {
    ++minute.held_back;
    return;
  }
  ++minute.lines;
  if (log_ == nullptr) return;
  std::string line = absl::StrCat(source_, ": ", text);
  if (minute.held_back > 0) {
    absl::StrAppend(&line, " (", minute.held_back, " lines of this kind were held back before)");
    minute.held_back = 0;
  }
  log_(line);
}

}  // namespace tacho::agent
