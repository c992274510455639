// Tells ThreadSanitizer what absl::Mutex, CondVar and Notification order. The distribution's Abseil
// is built without it, so every use of a lock would look like a race. Linked into each test of a
// build with -fsanitize=thread; takes the place of the library's functions and calls them.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

// In the sanitizer's library, in none of its headers.
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);

namespace {

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// While it lives, this thread is inside Abseil, which may look at the conditions of other waiters
// with the lock held, at a moment that the sanitizer knows nothing of.
class Inside {
 public:
  Inside() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Inside() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
};

// What a call does to the lock at `address`, as the sanitizer shall see it.
template <typename Call>
auto Acquiring(void* address, Call call) {
  struct AtEnd {
    void* address;
    ~AtEnd() { __tsan_acquire(address); }
  } at_end{address};
  const Inside inside;
  return call();
}
template <typename Call>
auto Releasing(void* address, Call call) {
  __tsan_release(address);
  const Inside inside;
  return call();
}
template <typename Call>
auto Reacquiring(void* address, Call call) {
  __tsan_release(address);
  return Acquiring(address, call);
}

}  // namespace

#define TACHO_REAL(type, symbol) static const auto real = Real<type>(symbol)
#define TACHO_MUTEX "_ZN4absl7debian35Mutex"

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  TACHO_REAL(void(Mutex*), TACHO_MUTEX "4LockEv");
  Acquiring(this, [this] { real(this); });
}
void Mutex::ReaderLock() {
  TACHO_REAL(void(Mutex*), TACHO_MUTEX "10ReaderLockEv");
  Acquiring(this, [this] { real(this); });
}
bool Mutex::TryLock() {
  TACHO_REAL(bool(Mutex*), TACHO_MUTEX "7TryLockEv");
  return Acquiring(this, [this] { return real(this); });
}
void Mutex::Unlock() {
  TACHO_REAL(void(Mutex*), TACHO_MUTEX "6UnlockEv");
  Releasing(this, [this] { real(this); });
}
void Mutex::ReaderUnlock() {
  TACHO_REAL(void(Mutex*), TACHO_MUTEX "12ReaderUnlockEv");
  Releasing(this, [this] { real(this); });
}
void Mutex::Await(const Condition& condition) {
  TACHO_REAL(void(Mutex*, const Condition&), TACHO_MUTEX "5AwaitERKNS0_9ConditionE");
  Reacquiring(this, [&] { real(this, condition); });
}
bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  TACHO_REAL(bool(Mutex*, const Condition&, Duration),
             TACHO_MUTEX "16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return Reacquiring(this, [&] { return real(this, condition, timeout); });
}
bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  TACHO_REAL(bool(Mutex*, const Condition&, Time),
             TACHO_MUTEX "17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return Reacquiring(this, [&] { return real(this, condition, deadline); });
}

void CondVar::Wait(Mutex* mutex) {
  TACHO_REAL(void(CondVar*, Mutex*), "_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  Reacquiring(mutex, [&] { real(this, mutex); });
}
bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  TACHO_REAL(bool(CondVar*, Mutex*, Duration),
             "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return Reacquiring(mutex, [&] { return real(this, mutex, timeout); });
}
bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  TACHO_REAL(bool(CondVar*, Mutex*, Time),
             "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  return Reacquiring(mutex, [&] { return real(this, mutex, deadline); });
}

void Notification::Notify() {
  TACHO_REAL(void(Notification*), "_ZN4absl7debian312Notification6NotifyEv");
  Releasing(this, [this] { real(this); });
}
void Notification::WaitForNotification() const {
  TACHO_REAL(void(const Notification*), "_ZNK4absl7debian312Notification19WaitForNotificationEv");
  Acquiring(const_cast<Notification*>(this), [this] { real(this); });
}
bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  TACHO_REAL(bool(const Notification*, Duration),
             "_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
  return Acquiring(const_cast<Notification*>(this), [&] { return real(this, timeout); });
}

ABSL_NAMESPACE_END
}  // namespace absl
