// Figures of a spool: its contents and its losses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tacho::agent {

// Why something was lost.
enum class SpoolLoss : size_t {
  kBytes,    // Dropped as the oldest, past SpoolOptions::max_bytes.
  kAge,      // Dropped after SpoolOptions::max_age.
  kDisk,     // The disk refused rows that no source reads again.
  kRefused,  // The collector would not have it.
  kDamaged,  // The disk gave it back damaged.
};
inline constexpr std::array<const char*, 5> kSpoolLossNames = {"bytes", "age", "disk", "refused",
                                                               "damaged"};

struct SpoolStats {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t appended_rows = 0;  // Since Open().

  // Since Open(). Gaps are not counted as messages: they only report others.
  struct Lost {
    uint64_t messages = 0;
    uint64_t rows = 0;
  };
  std::array<Lost, kSpoolLossNames.size()> lost = {};

  Lost& Of(SpoolLoss loss) { return lost[static_cast<size_t>(loss)]; }
  const Lost& Of(SpoolLoss loss) const { return lost[static_cast<size_t>(loss)]; }
  uint64_t dropped_entries() const {
    uint64_t sum = 0;
    for (const Lost& one : lost) sum += one.messages;
    return sum;
  }
  uint64_t dropped_rows() const {
    uint64_t sum = 0;
    for (const Lost& one : lost) sum += one.rows;
    return sum;
  }
};

}  // namespace tacho::agent
