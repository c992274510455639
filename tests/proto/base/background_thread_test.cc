#include "proto/base/background_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace tacho {
namespace {

int NiceOfThisThread() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

TEST(BackgroundThread, IsNamedAndGivesWayWithoutTheOthers) {
  const int before = NiceOfThisThread();
  int nice = 0;
  std::string name;
  std::thread([&] {
    BecomeBackgroundThread("background");
    nice = NiceOfThisThread();
    std::array<char, 16> text = {};
    pthread_getname_np(pthread_self(), text.data(), text.size());
    name = text.data();
  }).join();
  EXPECT_EQ(nice, kBackgroundNice);
  EXPECT_EQ(name, "background");
  EXPECT_EQ(NiceOfThisThread(), before);
}

}  // namespace
}  // namespace tacho
