#include "server/conditions/window/finding.h"

#include "gtest/gtest.h"

namespace tacho::server::conditions {
namespace {

TEST(FindingTest, NotJudgedNotPresentAndPresentDiffer) {
  EXPECT_FALSE(NotJudged().judged);
  EXPECT_TRUE(NotPresent().judged);
  EXPECT_FALSE(NotPresent().present);
  const Finding finding = Present(Severity::kCritical, "HostClock", "The clock of h1 is off");
  EXPECT_TRUE(finding.judged);
  EXPECT_TRUE(finding.present);
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_EQ(finding.reason, "HostClock");
  EXPECT_EQ(finding.message, "The clock of h1 is off");
}

TEST(FindingTest, KeepsTheFirstCulpritsAndDropsTheOthers) {
  Finding finding = Present(Severity::kWarning, "HostClock", "The clocks are off");
  for (int i = 0; i < 40; ++i) finding.BlameHost("h" + std::to_string(i), 40 - i);
  ASSERT_EQ(finding.culprits.size(), kMaxCulprits);
  EXPECT_EQ(finding.culprits.front().host, "h0");
  EXPECT_EQ(finding.culprits.back().host, "h15");
}

TEST(FindingTest, CulpritsHaveTheFieldsThatApply) {
  Finding finding = Present(Severity::kWarning, "SlowCompute", "One task is slow");
  finding.BlameTask({.task = 3, .host = "h3"}, 1.5, 100, "loss");
  finding.BlameHost("h4", 2, 7);
  finding.BlameChip("h5", "0", 3, "clock");
  finding.BlameMetric("loss", 50, 4);
  EXPECT_EQ(finding.culprits[0].task, 3u);
  EXPECT_EQ(finding.culprits[0].host, "h3");
  EXPECT_EQ(finding.culprits[0].metric, "loss");
  EXPECT_EQ(finding.culprits[0].step, 100);
  EXPECT_EQ(finding.culprits[0].score, 1.5);
  EXPECT_EQ(finding.culprits[1].task, 7u);
  EXPECT_EQ(finding.culprits[1].step, std::nullopt);
  EXPECT_EQ(finding.culprits[2].chip, "0");
  EXPECT_EQ(finding.culprits[2].metric, "clock");
  EXPECT_EQ(finding.culprits[2].task, std::nullopt);
  EXPECT_EQ(finding.culprits[3].metric, "loss");
  EXPECT_EQ(finding.culprits[3].step, 50);
}

TEST(FindingTest, SeveritiesHaveNames) {
  for (const Severity severity : {Severity::kInfo, Severity::kWarning, Severity::kCritical}) {
    EXPECT_EQ(ParseSeverity(SeverityName(severity)), severity);
  }
  EXPECT_EQ(ParseSeverity(""), std::nullopt);
  EXPECT_EQ(ParseSeverity("fatal"), std::nullopt);
}

}  // namespace
}  // namespace tacho::server::conditions
