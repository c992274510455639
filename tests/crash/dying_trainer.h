// A trainer in a child process that records until something kills it, and what it had recorded.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "client/recorder.h"

namespace tacho::crash {

inline constexpr int kDyingMetrics = 9;

// Value m of row i; a torn row cannot match.
inline double DyingValue(int64_t i, int m) { return static_cast<double>(i * 16 + m); }

struct DyingTrainerOptions {
  std::string directory;
  uint64_t ring_bytes = 8ULL << 20;
  // It records this many rows, and then waits for its death; so that a ring need not lap.
  int64_t max_rows = 40'000;
  // Called before each row is committed.
  std::function<void(int64_t row)> before_row = [](int64_t) {};
};

class DyingTrainer {
 public:
  explicit DyingTrainer(const DyingTrainerOptions& options);
  DyingTrainer(const DyingTrainer&) = delete;
  DyingTrainer& operator=(const DyingTrainer&) = delete;
  ~DyingTrainer();

  pid_t pid() const { return pid_; }
  // Its ring's file.
  const std::string& ring() const { return ring_; }
  void WaitForFirstRow() const;
  // Returns its wait status.
  int WaitForDeath();

  // Rows that it had committed, reported through memory that survives it: one more may be in the
  // ring.
  int64_t closed() const { return *closed_; }

 private:
  [[noreturn]] void Train(const DyingTrainerOptions& options) const;

  std::atomic<int64_t>* closed_;
  pid_t pid_ = -1;
  std::string ring_;
};

// What a dead trainer has left in its ring.
struct DyingRing {
  int64_t rows = 0;
  int64_t lost = 0;   // Overwritten before.
  std::string wrong;  // Empty if there are only whole rows, one behind the other.
};
DyingRing ReadDyingRing(const std::string& ring);

}  // namespace tacho::crash
