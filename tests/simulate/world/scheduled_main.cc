// Runs tests on virtual time, as the thread of the laboratory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "tests/simulate/schedule/schedule.h"

int main(int argc, char** argv) {
  tacho::simulate::BeginAgainWithoutRandomAddresses(argv);
  ::testing::InitGoogleTest(&argc, argv);
  tacho::simulate::BeginSchedule({});
  const int failed = RUN_ALL_TESTS();
  std::fflush(stdout);
  _exit(failed);  // A schedule has no end.
}
