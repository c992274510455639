#include "agent/sources/rows/source_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(SourceLogTest, LinesBeyondTheLimitAreCountedAndToldLater) {
  std::vector<std::string> lines;
  absl::Time now = absl::FromUnixSeconds(1000);
  log::LogOptions options;
  options.write = [&lines](log::Level, absl::string_view line) { lines.emplace_back(line); };
  options.now = [&now] { return now; };
  const SourceLog log("part", log::Log(options));
  for (int i = 0; i < log::Log::kLinesPerMinute + 7; ++i) log.Warn("text", {{"i", i}});
  EXPECT_THAT(lines, SizeIs(log::Log::kLinesPerMinute));
  EXPECT_THAT(lines[0], HasSubstr("level=warn msg=\"part: text\" i=0\n"));
  log.Warn("is not held back");
  EXPECT_THAT(lines, SizeIs(log::Log::kLinesPerMinute + 1));
  lines.clear();
  now += absl::Seconds(61);
  log.Warn("text");
  now -= absl::Hours(1);
  log.Warn("text");
  EXPECT_THAT(lines, ElementsAre(HasSubstr("left_out=7"), HasSubstr("msg=\"part: text\"\n")))
      << "the second: the clock was set back";
}

TEST(SourceLogTest, EachSourceHasLinesOfItsOwn) {
  std::vector<std::string> lines;
  log::LogOptions options;
  options.write = [&lines](log::Level, absl::string_view line) { lines.emplace_back(line); };
  const log::Log log(options);
  for (int i = 0; i < 100; ++i) SourceLog("one", log).Warn("text");
  SourceLog("two", log).Warn("text");
  EXPECT_THAT(lines, SizeIs(log::Log::kLinesPerMinute + 1));
}

TEST(SourceLogTest, LostSampleSaysWhy) {
  std::vector<std::string> lines;
  log::LogOptions options;
  options.write = [&lines](log::Level, absl::string_view line) { lines.emplace_back(line); };
  const SourceLog log("host", log::Log(options));
  log.WarnIfLost(absl::OkStatus());
  log.WarnIfLost(absl::UnavailableError("full"));
  EXPECT_THAT(
      lines, ElementsAre(HasSubstr("msg=\"host: a sample is lost\" reason=\"UNAVAILABLE: full\"")));
}

TEST(SourceLogTest, LogMadeFromNothingIsSilent) {
  const SourceLog log("part", {});
  for (int i = 0; i < 100; ++i) log.Warn("text");
}

}  // namespace
}  // namespace tacho::agent
