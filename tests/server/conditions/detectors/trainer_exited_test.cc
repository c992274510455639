#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conditions/detectors/detectors.h"
#include "tests/server/conditions/settings.h"

namespace tacho::server::conditions {
namespace {

JobWindow WithExits(const std::map<uint32_t, std::map<std::string, std::string>>& exits) {
  JobWindow window;
  window.now_ns = 100'000'000'000;
  window.ended = true;
  for (const auto& [task, fields] : exits) {
    window.exits.push_back({task, "h", window.now_ns - 10'000'000'000, fields});
  }
  return window;
}

Finding Judged(const JobWindow& window) { return DetectTrainerExited(window, Defaults()); }

TEST(TrainerExitedTest, IsAbsentWithoutAnExit) {
  JobWindow window = WithExits({});
  EXPECT_FALSE(Judged(window).judged);
  window.tasks.emplace_back();
  EXPECT_TRUE(Judged(window).judged);
  EXPECT_FALSE(Judged(window).present);
}

TEST(TrainerExitedTest, TheReasonIsWhatIsKnown) {
  const auto check = [](const std::map<std::string, std::string>& fields, const char* reason,
                        const char* message) {
    const Finding finding = Judged(WithExits({{3, fields}}));
    EXPECT_EQ(finding.reason, reason);
    EXPECT_EQ(finding.message, message);
    ASSERT_EQ(finding.culprits.size(), 1u);
    EXPECT_EQ(finding.culprits[0].task, 3u);
    EXPECT_EQ(finding.culprits[0].score, 10);
  };
  check({{"signal", "9"}}, "Signal", "Task 3 on h was ended by signal 9");
  check({{"exit_code", "2"}}, "ExitCode", "Task 3 on h returned 2");
  check({{"exit_code", "1"}, {"exception", "KeyError"}}, "Exception",
        "Task 3 on h failed with KeyError");
  check({}, "Unknown", "Task 3 on h is gone; how it ended is not known");
}

TEST(TrainerExitedTest, IsCriticalIfNothingTrainsAnyMore) {
  EXPECT_EQ(Judged(WithExits({{0, {{"signal", "11"}}}})).severity, Severity::kCritical);
  EXPECT_EQ(Judged(WithExits({{0, {{"signal", "15"}}}})).severity, Severity::kWarning)
      << "somebody asked it to end";
  EXPECT_EQ(Judged(WithExits({{0, {{"signal", "2"}}}})).severity, Severity::kWarning);
  JobWindow goes_on = WithExits({{0, {{"signal", "11"}}}});
  goes_on.ended = false;
  EXPECT_EQ(Judged(goes_on).severity, Severity::kWarning);
}

TEST(TrainerExitedTest, ManyExitsNameTheFirst) {
  std::map<uint32_t, std::map<std::string, std::string>> exits;
  for (uint32_t task = 0; task < 100; ++task) exits[task] = {};
  const Finding finding = Judged(WithExits(exits));
  EXPECT_EQ(finding.culprits.size(), kMaxCulprits);
  EXPECT_EQ(finding.culprits[0].task, 0u);
  EXPECT_THAT(finding.message, ::testing::HasSubstr("99 more exited after it"));
}

}  // namespace
}  // namespace tacho::server::conditions
