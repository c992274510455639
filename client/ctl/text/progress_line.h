// The progress of a long command: a bar on a terminal, a line now and then elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tacho::ctl {

// Used from one thread.
class ProgressLine {
 public:
  struct Options {
    std::ostream* out = nullptr;  // Not owned.
    bool is_terminal = false;
    size_t width = 0;  // The terminal's; 0: 80.
    std::function<absl::Time()> now = absl::Now;
  };
  explicit ProgressLine(Options options) : options_(std::move(options)) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { Clear(); }

  // `done` of `total` of `what` is finished; `total` may be 0.
  void Show(absl::string_view what, uint64_t done, uint64_t total);
  // Prints a line above the bar.
  void Say(absl::string_view line);
  // Removes the bar.
  void Clear();

 private:
  const Options options_;
  absl::Time next_ = absl::InfinitePast();
  bool first_ = true;
  bool shown_ = false;
};

}  // namespace tacho::ctl
