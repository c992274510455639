// The writer's reports to the campaign, through a pipe that outlives it. Each report is one write()
// of less than PIPE_BUF, so it arrives whole or not at all; only the contents of the store are
// longer, and nothing else is sent meanwhile.
#pragma once

#include <cstdint>

namespace tacho::crash {

struct Report {
  enum Kind : uint8_t {
    kContents = 1,  // `number` bytes follow: the store as opened, see Contents.
    kSent = 2,      // Message `number` of `agent` is about to be queued.
    kStored = 3,    // It was acknowledged.
    kRefused = 4,   // It was refused at once: it can never come up.
    kUnsure = 5,    // The disk refused: it may come up after a restart.
    kEnding = 6,    // The process kills itself now, at point `number` (index into the names).
    kClosed = 7,    // The store was closed in order.
    kFailed = 8,    // `number` bytes of text follow; the process exits.
    kGaveUp = 11,   // The disk failed for this process: it ends, to be started again.
    kResumed = 10,  // The disk takes writes again.
    kCutoff = 9,    // Days before `number` (ns) may be dropped from now on.
  };
  Kind kind;
  uint8_t agent;
  uint8_t altered;
  uint8_t padding[5] = {};
  uint64_t number;
};
static_assert(sizeof(Report) == 16);

}  // namespace tacho::crash
