#include "server/process/clock_watch.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"

namespace tacho::server::process {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr absl::Duration kDay = absl::Hours(24);

class ClockWatchTest : public testing::Test {
 protected:
  ClockWatch::Options Options() {
    ClockWatch::Options options;
    options.now = [this] { return now_; };
    options.monotonic = [this] { return uptime_; };
    options.votes = [this] { return votes_; };
    options.registry = &registry_;
    log::LogOptions log;
    log.write = [this](log::Level, absl::string_view line) { absl::StrAppend(&logged_, line); };
    options.log = log::Log(std::move(log));
    options.on_doubt = [this](const std::string& doubt) { told_.push_back(doubt); };
    return options;
  }
  // Both clocks go on, and are looked at each second.
  void Pass(absl::Duration time) {
    for (; time > absl::ZeroDuration(); time -= absl::Seconds(1)) {
      uptime_ += absl::Seconds(1);
      now_ += absl::Seconds(1);
      watch_.Look();
    }
  }
  void Jump(absl::Duration by) {
    now_ += by;
    watch_.Look();
  }
  double Jumps(const std::string& direction) {
    for (const auto& family : registry_.Collect()) {
      if (family.name != "tacho_clock_jumps_total") continue;
      for (const auto& metric : family.metric) {
        if (metric.label[0].value == direction) return metric.counter.value;
      }
    }
    return -1;
  }

  prometheus::Registry registry_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  absl::Time uptime_ = absl::UnixEpoch() + absl::Hours(3);
  ClockVotes votes_;
  std::string logged_;
  std::vector<std::string> told_;
  ClockWatch watch_{Options()};
};

TEST_F(ClockWatchTest, AJumpIsLoggedCountedAndMakesTheClockDoubtful) {
  Pass(absl::Seconds(5));
  EXPECT_TRUE(watch_.IsTrusted());
  Jump(100 * kDay);
  EXPECT_FALSE(watch_.IsTrusted());
  EXPECT_THAT(watch_.Doubt(), HasSubstr("jumped ahead by 2400h"));
  EXPECT_THAT(logged_, AllOf(HasSubstr("jumped ahead"), HasSubstr("clock: not trusted")));
  EXPECT_EQ(Jumps("ahead"), 1);
  EXPECT_EQ(Jumps("back"), 0);
  Pass(absl::Hours(1));
  EXPECT_FALSE(watch_.IsTrusted()) << "nobody has confirmed it";
  EXPECT_EQ(Jumps("ahead"), 1);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0], watch_.Doubt());
}

TEST_F(ClockWatchTest, AClockThatComesBackIsTrustedAgain) {
  Jump(-kDay);
  EXPECT_THAT(watch_.Doubt(), HasSubstr("jumped back by 24h"));
  Pass(absl::Minutes(1));
  Jump(kDay - absl::Seconds(2));
  EXPECT_TRUE(watch_.IsTrusted());
  EXPECT_EQ(Jumps("back"), 1);
  EXPECT_EQ(Jumps("ahead"), 1);
  EXPECT_THAT(told_.back(), IsEmpty());
}

TEST_F(ClockWatchTest, MostAgentsConfirmAJumpAfterAMinute) {
  votes_ = {.agree = 2, .disagree = 2};
  Jump(kDay);
  Pass(absl::Minutes(5));
  EXPECT_FALSE(watch_.IsTrusted()) << "half are not most";
  votes_ = {.agree = 3, .disagree = 1};
  Pass(absl::Seconds(40));
  votes_ = {.agree = 2, .disagree = 2};
  Pass(absl::Seconds(1));
  votes_ = {.agree = 3, .disagree = 1};
  Pass(absl::Seconds(60));
  EXPECT_FALSE(watch_.IsTrusted()) << "the minute begins anew";
  Pass(absl::Seconds(1));
  EXPECT_TRUE(watch_.IsTrusted());
  EXPECT_THAT(logged_, HasSubstr("most agents agree with the new time"));
  Jump(-kDay);
  EXPECT_FALSE(watch_.IsTrusted()) << "the new time is the one that is trusted";
}

TEST_F(ClockWatchTest, LittleStepsAreNoJumpButManyOfThemAre) {
  for (int i = 0; i < 10; ++i) {
    Jump(absl::Seconds(55));
    Pass(absl::Minutes(10));
  }
  EXPECT_TRUE(watch_.IsTrusted()) << "a time service at work";
  EXPECT_EQ(Jumps("ahead"), 0);
  for (int i = 0; i < 3; ++i) {
    Jump(absl::Seconds(55));
    Pass(absl::Seconds(1));
  }
  EXPECT_FALSE(watch_.IsTrusted());
  EXPECT_GE(Jumps("ahead"), 1);
}

TEST_F(ClockWatchTest, WhileHalfOfTheAgentsDisagreeTheClockIsDoubtful) {
  EXPECT_THAT(watch_.Dispute(), IsEmpty()) << "there are no agents";
  votes_ = {.agree = 2, .disagree = 1, .ahead = kDay};
  EXPECT_THAT(watch_.Dispute(), IsEmpty()) << "one may be the one that is wrong";
  votes_ = {.agree = 1, .disagree = 1, .ahead = kDay};
  EXPECT_THAT(watch_.Dispute(), HasSubstr("1 of 2")) << "one may be on the collector's host";
  votes_ = {.agree = 1, .disagree = 2, .ahead = kDay};
  EXPECT_THAT(watch_.Dispute(), HasSubstr("2 of 3 agents are 24h ahead of the collector's"));
  watch_.Look();
  EXPECT_FALSE(watch_.IsTrusted());
  votes_.ahead = -kDay;
  EXPECT_THAT(watch_.Dispute(), HasSubstr("24h behind"));
  votes_ = {.agree = 2, .disagree = 1};
  watch_.Look();
  EXPECT_TRUE(watch_.IsTrusted());
}

}  // namespace
}  // namespace tacho::server::process
