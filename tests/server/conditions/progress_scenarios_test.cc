// Runs each detector of progress over every scenario, at three moments: it reports what is there,
// with the right host first, and nothing else.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/config/yaml_config.h"
#include "server/conditions/detectors/detectors.h"
#include "tacho/config/v1/collector.pb.h"
#include "tests/support/scenario.h"

namespace tacho::testing {
namespace {

using server::conditions::Detector;
using server::conditions::Finding;

std::vector<Detector> DefaultDetectors() {
  config::v1::Collector config;
  EXPECT_TRUE(config::ParseYaml("", "default", &config).ok());
  return server::conditions::DetectorsOf(config.conditions().progress());
}

// The names of conditions that are reported, but are neither the scenario's nor follow from it.
std::vector<std::string> Wrong(const Scenario& scenario,
                               const server::conditions::JobWindow& window, bool during) {
  std::vector<std::string> wrong;
  for (const Detector& detector : DefaultDetectors()) {
    const Finding finding = detector.detect(window);
    if (!finding.present) continue;
    const bool follows = std::find(scenario.may_follow.begin(), scenario.may_follow.end(),
                                   detector.name) != scenario.may_follow.end();
    if (during && (detector.name == scenario.condition || follows)) continue;
    wrong.push_back(detector.name + ": " + finding.message);
  }
  return wrong;
}

class ProgressScenarioTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(ProgressScenarioTest, TellsWhatIsThereAndNothingElse) {
  Scenario scenario = GetParam();
  scenario.fleet.max_points = 700;
  const SyntheticFleet fleet(scenario.fleet, scenario.faults, scenario.duration_seconds);
  if (scenario.at_seconds > 0) {
    EXPECT_THAT(Wrong(scenario, fleet.At(scenario.at_seconds - 1), false), ::testing::IsEmpty());
  }
  // Long enough for the slowest of them.
  const double late = scenario.at_seconds + 420;
  const server::conditions::JobWindow window = fleet.At(late);
  EXPECT_THAT(Wrong(scenario, window, true), ::testing::IsEmpty());
  EXPECT_THAT(Wrong(scenario, fleet.At(scenario.duration_seconds), true), ::testing::IsEmpty());
  for (const Detector& detector : DefaultDetectors()) {
    if (detector.name != scenario.condition) continue;
    const Finding finding = detector.detect(window);
    ASSERT_TRUE(finding.present) << finding.judged;
    EXPECT_NE(finding.reason, "");
    EXPECT_NE(finding.message, "");
    EXPECT_THAT(finding.figures, ::testing::Not(::testing::IsEmpty()));
    if (!scenario.host.has_value()) continue;
    ASSERT_FALSE(finding.culprits.empty());
    EXPECT_EQ(finding.culprits[0].host, *scenario.host) << finding.message;
    if (scenario.task.has_value()) {
      EXPECT_EQ(finding.culprits[0].task, scenario.task);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seed7, ProgressScenarioTest, ::testing::ValuesIn(ProgressScenarios(7)),
                         [](const ::testing::TestParamInfo<Scenario>& param) {
                           std::string name = param.param.condition + "_" + param.param.name;
                           for (char& c : name) {
                             if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace tacho::testing
