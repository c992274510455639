#include "server/conditions/detectors_curves.h"

#include "gtest/gtest.h"
#include "proto/config/yaml_config.h"
#include "server/conditions/settings_curves.h"
#include "tests/server/conditions/detectors/curve_windows.h"

namespace tacho::server::conditions {
namespace {

config::v1::ConditionsCurves Parsed(const char* yaml) {
  config::v1::ConditionsCurves config;
  const absl::Status status = config::ParseYaml(yaml, "test.yaml", &config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

TEST(DetectorsCurvesTest, DefaultsOfTheFileAreThoseOfTheCode) {
  const config::v1::ConditionsCurves config = Parsed("");
  EXPECT_EQ(SettingsOf(config.diverged()), DivergedSettings());
  EXPECT_EQ(SettingsOf(config.loss_spike()), LossSpikeSettings());
  EXPECT_EQ(SettingsOf(config.plateau()), PlateauSettings());
  EXPECT_EQ(SettingsOf(config.oscillating()), OscillatingSettings());
  EXPECT_EQ(SettingsOf(config.gradient_exploding()), GradientExplodingSettings());
  EXPECT_EQ(SettingsOf(config.gradient_vanished()), GradientVanishedSettings());
  EXPECT_EQ(SettingsOf(config.weights_frozen()), WeightsFrozenSettings());
  EXPECT_EQ(SettingsOf(config.overfitting()), OverfittingSettings());
  EXPECT_EQ(SettingsOf(config.replica_disagreement()), ReplicaDisagreementSettings());
}

TEST(DetectorsCurvesTest, EveryConditionIsARowOfItsName) {
  std::vector<std::string> names;
  for (const Detector& detector : CurvesDetectors(Parsed(""))) {
    EXPECT_TRUE(detector.enabled);
    EXPECT_FALSE(detector.severity.has_value());
    EXPECT_FALSE(detector.detect(JobWindow()).judged) << detector.name << " of nothing";
    names.push_back(detector.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "Diverged", "LossSpike", "Plateau", "Oscillating", "GradientExploding",
                       "GradientVanished", "WeightsFrozen", "Overfitting", "ReplicaDisagreement"}));
}

TEST(DetectorsCurvesTest, RowsHaveWhatTheFileSays) {
  const std::vector<Detector> detectors = CurvesDetectors(
      Parsed("gradient_exploding: {limit: 50, for: 7s, clear_after: 9s, severity: critical}\n"
             "plateau: {enabled: false}\n"));
  EXPECT_FALSE(detectors[2].enabled);
  EXPECT_EQ(detectors[4].hold_for, absl::Seconds(7));
  EXPECT_EQ(detectors[4].clear_after, absl::Seconds(9));
  EXPECT_EQ(detectors[4].severity, Severity::kCritical);
  const std::vector<double> norms(10, 70);
  EXPECT_TRUE(detectors[4].detect(WindowOf().Add(0, Signal::kGradNorm, norms)).present);
}

}  // namespace
}  // namespace tacho::server::conditions
