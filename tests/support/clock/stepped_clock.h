// The wall clock of a test that links stepped_clock.cc.
#pragma once

#include <atomic>
#include <cstdint>

namespace tacho {

// Nanoseconds that the process's wall clock is ahead of the machine's.
std::atomic<int64_t>& ClockStep();

}  // namespace tacho
