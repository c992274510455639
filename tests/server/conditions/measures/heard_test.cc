#include "server/conditions/measures/heard.h"

#include <limits>

#include "gtest/gtest.h"

namespace tacho::server::conditions {
namespace {

constexpr int64_t kTime = 1'700'000'000'000'000'000;

int64_t CorrectedBy(double offset_seconds) {
  JobWindow window;
  HostWindow& host = window.hosts.emplace_back();
  host.host = "h";
  host.agent.emplace().clock_offset_seconds = offset_seconds;
  return Hosts(window).Corrected("h", kTime);
}

TEST(HostsTest, CorrectsATimeByTheClockOfItsAgent) {
  EXPECT_EQ(CorrectedBy(2.5), kTime - 2'500'000'000);
  EXPECT_EQ(CorrectedBy(std::numeric_limits<double>::infinity()), kTime);
}

TEST(HostsTest, AnOffsetThatNoClockHasLeavesTheTimeWithinItsRange) {
  EXPECT_EQ(CorrectedBy(1e300), kTime + std::numeric_limits<int64_t>::min());
  EXPECT_EQ(CorrectedBy(-1e300), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace tacho::server::conditions
