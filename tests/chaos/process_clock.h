// The wall clock of a program, which the campaign sets while it runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tacho::chaos {

// For a program that is started with environment(); everybody else keeps the machine's clock.
class ProcessClock {
 public:
  // `library` is that of tests/support/clock; if it is empty, the clock cannot be set. `file` is
  // made anew.
  ProcessClock(const std::string& library, const std::string& file);
  ~ProcessClock();
  ProcessClock(const ProcessClock&) = delete;
  ProcessClock& operator=(const ProcessClock&) = delete;

  // "NAME=VALUE", for Process.
  const std::vector<std::string>& environment() const { return environment_; }
  bool can_be_set() const { return step_ != nullptr; }
  // From now on it is this much ahead of the machine's, or behind it.
  void Set(absl::Duration ahead);

 private:
  std::vector<std::string> environment_;
  std::atomic<int64_t>* step_ = nullptr;  // In the file.
};

}  // namespace tacho::chaos
