// The log of a program: one line a message, with fields, on standard error.
//
//   logfmt  time=2026-11-21T16:07:02.123Z level=info msg="listening" grpc=127.0.0.1:7411
//   json
//   {"time":"2026-11-21T16:07:02.123Z","level":"info","msg":"listening","grpc":"127.0.0.1:7411"}
//
// Much of what is logged was sent by others: whatever the bytes, a message makes one line, which a
// terminal shows as text, and is cut where it is too long (line.h).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/base/line.h"

namespace tacho::log {

struct LogOptions {
  Format format = Format::kLogfmt;
  Level level = Level::kInfo;  // Less severe messages are dropped.
  // Takes one line, with its line feed. Called by one thread at a time.
  std::function<void(Level level, absl::string_view line)> write;
  std::function<absl::Time()> now = absl::Now;
};

// How many messages there were, by level, and how many lines rate limits left out.
struct LogCounts {
  uint64_t lines[4] = {};  // By Level.
  uint64_t left_out = 0;
};

using Fields = std::initializer_list<Field>;

// A handle: copies write to the same log. Made from nothing it drops everything. Thread-safe.
class Log {
 public:
  Log() = default;
  explicit Log(LogOptions options);

  // `message` is a constant text, without what varies: that is in `fields`.
  void Debug(absl::string_view message, Fields fields = {}) const;
  void Info(absl::string_view message, Fields fields = {}) const;
  void Warn(absl::string_view message, Fields fields = {}) const;
  void Error(absl::string_view message, Fields fields = {}) const;
  void Write(Level level, absl::string_view message, Fields fields = {}) const;

  // For lines that others can cause as often as they like: at most `lines_per_minute` lines with
  // one `message` are written in a minute. The next one has the number of lines `left_out`; if
  // none comes, a line of its own has it, at the next Limited() that writes or at the end of the
  // log.
  static constexpr int kLinesPerMinute = 10;
  void Limited(Level level, absl::string_view message, Fields fields = {},
               int lines_per_minute = kLinesPerMinute) const;

  // The level of the configuration. What Override() set stays.
  void SetLevel(Level level) const;
  // Takes its place for so long; zero ends that at once.
  void Override(Level level, absl::Duration duration) const;

  struct Levels {
    Level in_force = Level::kInfo;
    Level configured = Level::kInfo;
    absl::Time override_until = absl::InfinitePast();  // In the past: there is none.
  };
  Levels levels() const;

  LogCounts counts() const;

 private:
  class Core;

  std::shared_ptr<Core> core_;
};

// Writes to standard error, one write(2) a line. If that is systemd's journal, as $JOURNAL_STREAM
// shows, each line begins with its priority ("<6>"), which the journal takes off.
std::function<void(Level, absl::string_view)> StandardError();

// Writes there, as the keys log.format and log.level of a configuration say.
Log StandardLog(absl::string_view format, absl::string_view level);

}  // namespace tacho::log
