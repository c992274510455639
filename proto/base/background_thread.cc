#include "proto/base/background_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/timed_wait.h"

namespace tacho {
namespace {

constexpr size_t kMaxNameBytes = 15;  // The kernel's limit; pthread_setname_np() fails above it.

}  // namespace

void BecomeBackgroundThread(const char* name) {
  TACHO_CHECK(std::strlen(name) <= kMaxNameBytes);
  pthread_setname_np(pthread_self(), name);
  // This changes the thread alone: Linux keeps a nice value for each (setpriority(2), NOTES).
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kBackgroundNice);
}

void RepeatingThread::Start(const char* name, Priority priority, absl::Duration pause,
                            std::function<void()> work) {
  TACHO_CHECK(!thread_.joinable() && std::strlen(name) <= kMaxNameBytes);
  thread_ = std::thread([this, name, priority, pause, work = std::move(work)] {
    pthread_setname_np(pthread_self(), name);
    if (priority == Priority::kBackground) BecomeBackgroundThread(name);
    while (!IsStoppedWithin(pause)) work();
  });
}

void RepeatingThread::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool RepeatingThread::IsStoppedWithin(absl::Duration pause) {
  absl::MutexLock lock(&mutex_);
  return AwaitFor(&mutex_, absl::Condition(&stopping_), pause);
}

}  // namespace tacho
