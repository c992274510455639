#include "agent/sources/rows/trouble_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(TroubleLogTest, LinesBeyondTheLimitAreCountedAndToldLater) {
  std::vector<std::string> lines;
  TroubleLog log("part", [&lines](absl::string_view line) { lines.emplace_back(line); });
  const absl::Time start = absl::FromUnixSeconds(1000);
  for (int i = 0; i < TroubleLog::kLinesPerMinute + 7; ++i) log.Say(start, "kind", "text");
  EXPECT_THAT(lines, SizeIs(TroubleLog::kLinesPerMinute));
  EXPECT_EQ(lines[0], "part: text");
  log.Say(start, "other kind", "is not held back");
  EXPECT_THAT(lines, SizeIs(TroubleLog::kLinesPerMinute + 1));
  lines.clear();
  log.Say(start + absl::Seconds(61), "kind", "later");
  log.Say(start - absl::Hours(1), "kind", "clock set back");
  EXPECT_THAT(lines, ElementsAre(HasSubstr("7 lines"), "part: clock set back"));
}

TEST(TroubleLogTest, NullCallbackIsSilent) {
  TroubleLog log("part", nullptr);
  for (int i = 0; i < 100; ++i) log.Say(absl::FromUnixSeconds(i * 60), "kind", "text");
}

}  // namespace
}  // namespace tacho::agent
