#include "proto/base/log.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::log {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class LogTest : public testing::Test {
 protected:
  Log Make() {
    LogOptions options;
    options.write = [this](Level, absl::string_view line) { lines_.emplace_back(line); };
    options.now = [this] { return now_; };
    return Log(std::move(options));
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::vector<std::string> lines_;  // Written by one thread at a time, which the log sees to.
};

TEST_F(LogTest, MadeFromNothingItDropsEverything) {
  const Log log;
  log.Error("m");
  log.Limited(Level::kError, "m");
  log.SetLevel(Level::kDebug);
  EXPECT_EQ(log.counts().lines[3], 0u);
}

TEST_F(LogTest, LessSevereMessagesAreDropped) {
  const Log log = Make();
  log.Debug("no");
  log.Info("yes");
  log.SetLevel(Level::kError);
  log.Warn("no");
  log.Limited(Level::kWarn, "no");
  log.Error("yes");
  ASSERT_THAT(lines_, SizeIs(2));
  EXPECT_THAT(lines_[1], HasSubstr("level=error msg=\"yes\""));
  EXPECT_EQ(log.counts().lines[static_cast<int>(Level::kWarn)], 0u);
}

TEST_F(LogTest, OverrideFallsBackByItselfToWhatIsConfiguredThen) {
  const Log log = Make();
  log.Override(Level::kDebug, absl::Minutes(5));
  log.Debug("1");
  log.SetLevel(Level::kError);
  log.Debug("2");
  EXPECT_EQ(log.levels().in_force, Level::kDebug);
  EXPECT_EQ(log.levels().configured, Level::kError);
  EXPECT_EQ(log.levels().override_until, now_ + absl::Minutes(5));
  now_ += absl::Minutes(5);
  log.Debug("no");
  log.Warn("no");
  log.Error("3");
  EXPECT_EQ(log.levels().override_until, absl::InfinitePast());
  EXPECT_THAT(lines_, SizeIs(3));
}

TEST_F(LogTest, OverrideWithoutEndStaysUntilItIsTakenBack) {
  const Log log = Make();
  log.Override(Level::kError, absl::InfiniteDuration());
  now_ += absl::Hours(24 * 365);
  log.Warn("no");
  log.Override(Level::kError, absl::ZeroDuration());
  log.Warn("yes");
  EXPECT_THAT(lines_, SizeIs(1));
}

TEST_F(LogTest, FloodOfOneMessageIsCutAndCounted) {
  const Log log = Make();
  for (int i = 0; i < 1000; ++i) log.Limited(Level::kWarn, "refused", {{"peer", i}});
  EXPECT_THAT(lines_, SizeIs(Log::kLinesPerMinute));
  log.Limited(Level::kWarn, "another", {});
  EXPECT_THAT(lines_, SizeIs(Log::kLinesPerMinute + 1)) << "another message has its own";
  now_ += absl::Minutes(1);
  log.Limited(Level::kWarn, "refused", {{"peer", "last"}});
  EXPECT_THAT(lines_.back(), EndsWith("msg=\"refused\" peer=last left_out=990\n"));
  log.Limited(Level::kWarn, "refused", {{"peer", "after"}});
  EXPECT_THAT(lines_.back(), EndsWith("peer=after\n")) << "told once";
  EXPECT_EQ(log.counts().left_out, 990u);
}

TEST_F(LogTest, WhatWasLeftOutIsToldThoughTheMessageDoesNotComeAgain) {
  {
    const Log log = Make();
    for (int i = 0; i < 12; ++i) log.Limited(Level::kWarn, "first");
    for (int i = 0; i < 13; ++i) log.Limited(Level::kWarn, "second");
    now_ += absl::Minutes(2);
    log.Limited(Level::kInfo, "third");
    EXPECT_THAT(lines_, SizeIs(2 * Log::kLinesPerMinute + 3));
    for (int i = 0; i < 14; ++i) log.Limited(Level::kWarn, "fourth");
  }
  const std::string all =
      absl::StrCat(lines_[lines_.size() - 1], lines_[20], lines_[21], lines_[22]);
  EXPECT_THAT(all, HasSubstr("msg=\"first\" left_out=2\n"));
  EXPECT_THAT(all, HasSubstr("msg=\"second\" left_out=3\n"));
  EXPECT_THAT(all, HasSubstr("msg=\"fourth\" left_out=4\n")) << "with the end of the log";
}

TEST_F(LogTest, ClockThatIsSetBackDoesNotSilence) {
  const Log log = Make();
  for (int i = 0; i < 20; ++i) log.Limited(Level::kWarn, "refused");
  now_ -= absl::Hours(1);
  log.Limited(Level::kWarn, "refused");
  EXPECT_THAT(lines_, SizeIs(Log::kLinesPerMinute + 1));
}

TEST_F(LogTest, MemoryIsBoundedWhateverTheMessagesAre) {
  const Log log = Make();
  for (int i = 0; i < 10'000; ++i) log.Limited(Level::kWarn, absl::StrCat("kind ", i));
  EXPECT_LT(lines_.size(), 300u) << "further ones share a limit";
}

TEST_F(LogTest, LinesOfManyThreadsDoNotMix) {
  const Log log = Make();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([log, thread] {
      for (int i = 0; i < 200; ++i) log.Info("m", {{"thread", thread}, {"i", i}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(lines_, SizeIs(800));
  EXPECT_EQ(log.counts().lines[static_cast<int>(Level::kInfo)], 800u);
}

}  // namespace
}  // namespace tacho::log
