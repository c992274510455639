// A library for LD_PRELOAD that sets a process's wall clock back or ahead while it runs, as
// settimeofday() would for the whole machine. The monotonic clock stays as it is.
//
// TACHO_CLOCK_STEP_FILE names a file of 8 bytes: what is added to the wall clock, in nanoseconds,
// as an int64 in the machine's byte order. The file is mapped, so that a write to it is a step at
// once. A test that links this file sets ClockStep() instead.
//
// The kernel looks at a wait until a time of day again whenever the clock is set. So does this
// library: such a wait (a futex of CLOCK_REALTIME, pthread_cond_timedwait()) is made of short ones
// on the monotonic clock, and each begins with a look at the stepped clock.
#include "tests/support/clock/stepped_clock.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kSlice = 20'000'000;  // How late a wait notices a step.

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::atomic<int64_t>* MapStep() {
  static std::atomic<int64_t> own = 0;
  const char* const path = std::getenv("TACHO_CLOCK_STEP_FILE");
  if (path == nullptr) return &own;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  void* const page = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) {
    std::perror("stepped_clock: TACHO_CLOCK_STEP_FILE");
    std::abort();
  }
  close(fd);
  return static_cast<std::atomic<int64_t>*>(page);
}

int64_t Step() { return tacho::ClockStep().load(); }

int64_t Nanos(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

timespec TimeOf(int64_t nanos) {
  nanos = std::max<int64_t>(nanos, 0);
  return {.tv_sec = nanos / kSecond, .tv_nsec = nanos % kSecond};
}

int RealClock(clockid_t clock, timespec* time) {
  static auto* const real = Real<int(clockid_t, timespec*)>("clock_gettime");
  return real(clock, time);
}

int64_t WallNow() {
  timespec now = {};
  RealClock(CLOCK_REALTIME, &now);
  return Nanos(now) + Step();
}

// The end of the next short wait, on the monotonic clock. `last`: the wait ends with it.
timespec SliceEnd(int64_t until, bool* last) {
  const int64_t left = until - WallNow();
  *last = left <= kSlice;
  timespec now = {};
  RealClock(CLOCK_MONOTONIC, &now);
  return TimeOf(Nanos(now) + std::clamp<int64_t>(left, 0, kSlice));
}

using SystemCall = long(long, long, long, long, long, long, long);

long RealCall(long number, const long (&a)[6]) {
  static auto* const real = Real<SystemCall>("syscall");
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

bool WaitsByWallClock(long number, const long (&a)[6]) {
  return number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) != 0 &&
         (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && a[3] != 0;
}

long WaitInSlices(long (&a)[6]) {
  const int64_t until = Nanos(*reinterpret_cast<const timespec*>(a[3]));
  a[1] &= ~static_cast<long>(FUTEX_CLOCK_REALTIME);
  for (;;) {
    bool last = false;
    const timespec end = SliceEnd(until, &last);
    a[3] = reinterpret_cast<long>(&end);
    const long result = RealCall(SYS_futex, a);
    if (last || result == 0 || errno != ETIMEDOUT) return result;
  }
}

}  // namespace

std::atomic<int64_t>& tacho::ClockStep() {
  static std::atomic<int64_t>* const step = MapStep();
  return *step;
}

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = RealClock(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    *time = TimeOf(Nanos(*time) + Step());
  }
  return result;
}

int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  const int64_t now = WallNow();
  *time = {.tv_sec = now / kSecond, .tv_usec = now % kSecond / 1000};
  return 0;
}

time_t time(time_t* result) noexcept {
  const time_t now = WallNow() / kSecond;
  if (result != nullptr) *result = now;
  return now;
}

long syscall(long number, ...) noexcept {
  long a[6] = {};
  va_list list;
  va_start(list, number);
  for (long& one : a) one = va_arg(list, long);
  va_end(list);
  return WaitsByWallClock(number, a) ? WaitInSlices(a) : RealCall(number, a);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* deadline) {
  constexpr unsigned int kMonotonic = 2;  // glibc's: the clock of pthread_condattr_setclock().
  if ((condition->__data.__wrefs & kMonotonic) != 0) {
    return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, deadline);
  }
  bool last = false;
  const timespec end = SliceEnd(Nanos(*deadline), &last);
  const int result = pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &end);
  // POSIX lets a wait return for no reason: its caller looks again and waits for the rest.
  return result == ETIMEDOUT && !last ? 0 : result;
}

}  // extern "C"
