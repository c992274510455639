// How far a long command has come: a bar on a terminal, a line now and then elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tacho::ctl {

// One thread.
class ProgressLine {
 public:
  struct Options {
    std::ostream* out = nullptr;  // Not owned.
    bool is_terminal = false;
    size_t width = 0;  // Of the terminal; 0: 80.
    std::function<absl::Time()> now = absl::Now;
  };
  explicit ProgressLine(Options options) : options_(std::move(options)) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { Clear(); }

  // `what` is done to `done` of `total`, which may be 0.
  void Show(absl::string_view what, uint64_t done, uint64_t total);
  // A line of its own, above the bar.
  void Say(absl::string_view line);
  // Takes the bar away.
  void Clear();

 private:
  const Options options_;
  absl::Time next_ = absl::InfinitePast();
  bool first_ = true;
  bool shown_ = false;
};

}  // namespace tacho::ctl
