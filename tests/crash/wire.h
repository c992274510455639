// The reports of a process that will be killed to the campaign that kills it, through a pipe that
// outlives it. Each report is one write() of less than PIPE_BUF, so it arrives whole or not at all;
// only the contents of what it opened are longer, and nothing else is sent meanwhile.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace tacho::crash {

struct Report {
  enum Kind : uint8_t {
    kContents = 1,  // `number` bytes follow: what it holds as opened, see Contents.
    kSent = 2,      // Message `number` of `agent` is about to be queued.
    kStored = 3,    // It was acknowledged.
    kRefused = 4,   // It was refused at once: it can never come up.
    kUnsure = 5,    // The disk refused: it may come up after a restart.
    kEnding = 6,    // The process kills itself now, at its point.
    kClosed = 7,    // It was closed in order.
    kFailed = 8,    // `number` bytes of text follow; the process exits.
    kCutoff = 9,    // Days before `number` (ns), or sequences, may be dropped from now on.
    kResumed = 10,  // The disk takes writes again.
    kGaveUp = 11,   // The disk failed for this process: it ends, to be started again.
  };
  Kind kind;
  uint8_t agent;
  uint8_t altered;
  uint8_t padding[5] = {};
  uint64_t number;
};
static_assert(sizeof(Report) == 16);

// The end that reports. Thread-safe. Ends the process if the campaign is gone.
class ReportPipe {
 public:
  explicit ReportPipe(int fd) : fd_(fd) {}

  void Tell(Report::Kind kind, uint32_t agent = 0, uint64_t number = 0, bool altered = false) const;
  void TellText(Report::Kind kind, const std::string& text) const;
  // kFailed; returns an exit status.
  int Fail(const std::string& why) const;

 private:
  void WriteAll(const char* bytes, size_t size) const;

  const int fd_;
  mutable std::mutex mutex_;
};

}  // namespace tacho::crash
