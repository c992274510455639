#include "proto/base/background_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tacho {

void BecomeBackgroundThread(const char* name) {
  pthread_setname_np(pthread_self(), name);
  // Of the thread alone: Linux keeps a nice value for each (setpriority(2), NOTES).
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kBackgroundNice);
}

}  // namespace tacho
