// What the replaced functions of libc are made of. For the thread that has the baton.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace tacho::simulate {

enum class Clock { kWall, kMonotonic };

struct Deadline {
  bool set = false;  // Else there is none.
  Clock clock = Clock::kMonotonic;
  int64_t ns = 0;
};

// The monotonic clock of a machine that has run for a while.
inline constexpr int64_t kMonotonicStartNs = 1'000'000'000'000;

// Whether the calling thread is scheduled now: it belongs to the schedule, and is not in the
// middle of it.
bool Scheduled();
// Waits until WakeSome(awaits) chooses this thread, or the deadline; false: it was the deadline.
bool Block(const void* awaits, const char* what, const Deadline& deadline);
// Makes at most so many of those that wait for it ready; returns how many.
int WakeSome(const void* awaited, int most);
void WakeAll(const void* awaited);
// Lets others run; the thread stays ready.
void Yield();
// Nanoseconds of a clock of the caller's machine.
int64_t ReadClock(Clock clock);
// As pthread_create(), and what must come before the real pthread_join().
int BeginThread(pthread_t* handle, const pthread_attr_t* attributes, void* (*start)(void*),
                void* argument);
void AwaitEnd(pthread_t handle);

}  // namespace tacho::simulate
