// Takes the place of functions of libc, of two of libstdc++ and RocksDB, and of Abseil's locks.
// Each does what the real one does, but waits and reads clocks by the schedule. Outside of a
// schedule each is the real one.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>

#include "absl/time/clock.h"
#include "tests/simulate/schedule/real_calls.h"
#include "tests/simulate/schedule/schedule.h"
#include "tests/simulate/schedule/waiting.h"

// NOLINTBEGIN: the names, and the shapes of these functions, are libc's.

namespace {

using tacho::simulate::Block;
using tacho::simulate::Clock;
using tacho::simulate::Deadline;
using tacho::simulate::Interrupt;
using tacho::simulate::ReadClock;
using tacho::simulate::Scheduled;
using tacho::simulate::WakeAll;
using tacho::simulate::WakeSome;
using tacho::simulate::real::Find;

constexpr int64_t kSecond = 1'000'000'000;

int64_t Nanos(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }
timespec TimeOf(int64_t nanos) { return {.tv_sec = nanos / kSecond, .tv_nsec = nanos % kSecond}; }

bool IsWall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }
Clock ClockOf(clockid_t clock) { return IsWall(clock) ? Clock::kWall : Clock::kMonotonic; }

Deadline At(clockid_t clock, const timespec* time) {
  if (time == nullptr) return {};
  return {.set = true, .clock = ClockOf(clock), .ns = Nanos(*time)};
}
Deadline After(const timespec* time) {
  if (time == nullptr) return {};
  return {
      .set = true, .clock = Clock::kMonotonic, .ns = ReadClock(Clock::kMonotonic) + Nanos(*time)};
}

#define REAL(function)                                    \
  ([]() -> decltype(&function) {                          \
    static constinit decltype(&function) known = nullptr; \
    return Find(&known, #function);                       \
  }())

// Takes a lock as `try_lock` would, waiting for those that have it.
template <typename Lock, typename TryLock>
int LockBy(Lock* lock, TryLock* try_lock, const char* what) {
  for (;;) {
    const int result = try_lock(lock);
    if (result != EBUSY) return result;
    Block(lock, what, {});
  }
}

int WaitOnCondition(pthread_cond_t* condition, pthread_mutex_t* mutex, const Deadline& deadline) {
  const int unlocked = REAL(pthread_mutex_unlock)(mutex);
  if (unlocked != 0) return unlocked;
  WakeAll(mutex);
  const bool woken = Block(condition, "a condition variable", deadline);
  const int locked = LockBy(mutex, REAL(pthread_mutex_trylock), "a mutex");
  if (locked != 0) return locked;
  return woken ? 0 : ETIMEDOUT;
}

long Futex(uint32_t* word, int operation, uint32_t value, const timespec* timeout) {
  const int command = operation & FUTEX_CMD_MASK;
  if (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET) {
    const int woken = WakeSome(word, static_cast<int>(std::min<uint32_t>(value, INT_MAX)));
    Interrupt();
    return woken;
  }
  if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) {
    errno = EAGAIN;
    return -1;
  }
  // FUTEX_WAIT has a time to wait, FUTEX_WAIT_BITSET a moment.
  const bool wall = (operation & FUTEX_CLOCK_REALTIME) != 0;
  const Deadline deadline =
      command == FUTEX_WAIT ? After(timeout) : At(wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, timeout);
  if (Block(word, "a futex", deadline)) return 0;
  errno = ETIMEDOUT;
  return -1;
}

bool IsFutexOfOurs(long number, long operation) {
  if (number != SYS_futex) return false;
  const long command = operation & FUTEX_CMD_MASK;
  return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_WAKE ||
         command == FUTEX_WAKE_BITSET;
}

void FillRandom(void* buffer, size_t size) {
  auto* to = static_cast<char*>(buffer);
  while (size > 0) {
    const uint64_t random = tacho::simulate::ScheduleRandom();
    const size_t part = std::min(size, sizeof(random));
    std::memcpy(to, &random, part);
    to += part;
    size -= part;
  }
}

}  // namespace

extern "C" {

int pthread_create(pthread_t* handle, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  if (!Scheduled()) {
    return tacho::simulate::real::CreateThread(handle, attributes, start, argument);
  }
  const int failure = tacho::simulate::BeginThread(handle, attributes, start, argument);
  Interrupt();
  return failure;
}

int pthread_join(pthread_t handle, void** result) {
  if (Scheduled()) tacho::simulate::AwaitEnd(handle);
  return REAL(pthread_join)(handle, result);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (!Scheduled()) return REAL(pthread_mutex_lock)(mutex);
  Interrupt();
  return LockBy(mutex, REAL(pthread_mutex_trylock), "a mutex");
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  const int result = REAL(pthread_mutex_unlock)(mutex);
  if (!Scheduled()) return result;
  WakeAll(mutex);
  Interrupt();
  return result;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (!Scheduled()) return REAL(pthread_cond_wait)(condition, mutex);
  return WaitOnCondition(condition, mutex, {});
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  if (!Scheduled()) return REAL(pthread_cond_clockwait)(condition, mutex, clock, until);
  return WaitOnCondition(condition, mutex, At(clock, until));
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  if (!Scheduled()) return REAL(pthread_cond_timedwait)(condition, mutex, until);
  // glibc keeps the clock of pthread_condattr_setclock() in this bit.
  const bool monotonic = (condition->__data.__wrefs & 2u) != 0;
  return WaitOnCondition(condition, mutex, At(monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, until));
}

int pthread_cond_signal(pthread_cond_t* condition) {
  if (!Scheduled()) return REAL(pthread_cond_signal)(condition);
  WakeSome(condition, 1);
  Interrupt();
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
  if (!Scheduled()) return REAL(pthread_cond_broadcast)(condition);
  WakeAll(condition);
  Interrupt();
  return 0;
}

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  if (!Scheduled()) return REAL(pthread_rwlock_rdlock)(lock);
  Interrupt();
  return LockBy(lock, REAL(pthread_rwlock_tryrdlock), "a lock for reading");
}

int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  if (!Scheduled()) return REAL(pthread_rwlock_wrlock)(lock);
  Interrupt();
  return LockBy(lock, REAL(pthread_rwlock_trywrlock), "a lock for writing");
}

int pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  const int result = REAL(pthread_rwlock_unlock)(lock);
  if (!Scheduled()) return result;
  WakeAll(lock);
  Interrupt();
  return result;
}

int sched_yield() {
  if (!Scheduled()) return REAL(sched_yield)();
  tacho::simulate::Yield();
  return 0;
}

int nanosleep(const timespec* time, timespec* left) {
  if (!Scheduled()) return REAL(nanosleep)(time, left);
  Block(nullptr, "time", After(time));
  return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  if (!Scheduled()) return REAL(clock_nanosleep)(clock, flags, time, left);
  Block(nullptr, "time", (flags & TIMER_ABSTIME) != 0 ? At(clock, time) : After(time));
  return 0;
}

int usleep(useconds_t microseconds) {
  if (!Scheduled()) return REAL(usleep)(microseconds);
  tacho::simulate::SleepNs(int64_t{microseconds} * 1000);
  return 0;
}

int clock_gettime(clockid_t clock, timespec* time) {
  const bool cpu = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
  if (!Scheduled()) return REAL(clock_gettime)(clock, time);
  // Processor time would differ from run to run.
  *time = TimeOf(cpu ? 0 : ReadClock(ClockOf(clock)));
  Interrupt();
  return 0;
}

int gettimeofday(timeval* time, void* zone) {
  if (!Scheduled()) return REAL(gettimeofday)(time, zone);
  const int64_t now = ReadClock(Clock::kWall);
  *time = {.tv_sec = now / kSecond, .tv_usec = now % kSecond / 1000};
  Interrupt();
  return 0;
}

time_t time(time_t* to) {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (Scheduled() && IsFutexOfOurs(number, a[1])) {
    return Futex(reinterpret_cast<uint32_t*>(a[0]), static_cast<int>(a[1]),
                 static_cast<uint32_t>(a[2]), reinterpret_cast<const timespec*>(a[3]));
  }
  return tacho::simulate::real::Syscall()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

ssize_t getrandom(void* buffer, size_t size, unsigned flags) {
  if (!Scheduled()) return REAL(getrandom)(buffer, size, flags);
  FillRandom(buffer, size);
  return static_cast<ssize_t>(size);
}

int getentropy(void* buffer, size_t size) {
  if (!Scheduled()) return REAL(getentropy)(buffer, size);
  FillRandom(buffer, size);
  return 0;
}

// RocksDB makes identifiers of it.
pid_t getpid() { return Scheduled() ? 4711 : static_cast<pid_t>(syscall(SYS_getpid)); }

// When this process began is a part of a ring's identity.
int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list list;
    va_start(list, flags);
    mode = va_arg(list, mode_t);
    va_end(list);
  }
  if (!Scheduled() || std::strcmp(path, "/proc/self/stat") != 0) {
    return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  }
  constexpr char kStat[] = "4711 (simulated) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1000 0\n";
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "stat", 0));
  if (fd < 0 || write(fd, kStat, sizeof(kStat) - 1) < 0 || lseek(fd, 0, SEEK_SET) < 0) return -1;
  return fd;
}

// RocksDB allocates by it.
int sched_getcpu() { return Scheduled() ? 0 : REAL(sched_getcpu)(); }

// std::random_device's, which would ask the processor.
unsigned ReplacedRandomDevice(void* /*device*/) __asm__("_ZNSt13random_device9_M_getvalEv");
unsigned ReplacedRandomDevice(void* /*device*/) {
  if (Scheduled()) return static_cast<unsigned>(tacho::simulate::ScheduleRandom());
  unsigned value = 0;
  getentropy(&value, sizeof(value));
  return value;
}

// rocksdb::GenerateRawUniqueId(), which reads the machine's own identifiers.
void ReplacedUniqueId(uint64_t* a, uint64_t* b, bool /*exclude_port_uuid*/) __asm__(
    "_ZN7rocksdb19GenerateRawUniqueIdEPmS0_b");
void ReplacedUniqueId(uint64_t* a, uint64_t* b, bool /*exclude_port_uuid*/) {
  if (Scheduled()) {
    *a = tacho::simulate::ScheduleRandom();
    *b = tacho::simulate::ScheduleRandom();
  } else {
    getentropy(a, sizeof(*a));
    getentropy(b, sizeof(*b));
  }
}

// rocksdb::port::GenerateRfcUuid(), which asks the kernel. A database's identity decides in which
// order a cache of its blocks is walked through, and so which memory is free when.
bool ReplacedUuid(std::string* uuid) __asm__(
    "_ZN7rocksdb4port15GenerateRfcUuidEPNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
bool ReplacedUuid(std::string* uuid) {
  uint64_t high = 0;
  uint64_t low = 0;
  ReplacedUniqueId(&high, &low, true);
  char text[37];
  std::snprintf(text, sizeof(text), "%08x-%04x-4%03x-8%03x-%012llx",
                static_cast<unsigned>(high >> 32), static_cast<unsigned>(high >> 16 & 0xffff),
                static_cast<unsigned>(high & 0xfff), static_cast<unsigned>(low >> 48 & 0xfff),
                static_cast<unsigned long long>(low & 0xffffffffffff));
  *uuid = text;
  return true;
}

// absl::Mutex: a thread may be interrupted before it takes a lock and after it gives it back.
// Waiting for one goes through syscall().
using LockCall = void(void*);
#define MUTEX_CALL(symbol, before, after)       \
  void symbol(void* mutex) __asm__(#symbol);    \
  void symbol(void* mutex) {                    \
    static constinit LockCall* known = nullptr; \
    if (before) Interrupt();                    \
    Find(&known, #symbol)(mutex);               \
    if (after) Interrupt();                     \
  }
MUTEX_CALL(_ZN4absl7debian35Mutex4LockEv, true, false)
MUTEX_CALL(_ZN4absl7debian35Mutex6UnlockEv, false, true)
MUTEX_CALL(_ZN4absl7debian35Mutex10ReaderLockEv, true, false)
MUTEX_CALL(_ZN4absl7debian35Mutex12ReaderUnlockEv, false, true)

}  // extern "C"

// Abseil's own would go on from its last look at the clock by the processor's counter.
namespace absl {
ABSL_NAMESPACE_BEGIN
int64_t GetCurrentTimeNanos() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return Nanos(now);
}
Time Now() { return FromUnixNanos(GetCurrentTimeNanos()); }
namespace base_internal {
// Abseil would measure it.
double NominalCPUFrequency() { return 1e9; }
}  // namespace base_internal
ABSL_NAMESPACE_END
}  // namespace absl

// NOLINTEND
