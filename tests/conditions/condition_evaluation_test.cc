// A slice of the evaluation, so that a change of a detector that makes it worse is seen: floors on
// what is found, ceilings on what is found where nothing is. The figures in full:
// docs/conditions.md.
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "proto/config/yaml_config.h"
#include "server/conditions/detectors/detectors.h"
#include "tests/conditions/planted.h"
#include "tests/conditions/recorded_job.h"
#include "tests/conditions/synthetic.h"

namespace tacho::conditions {
namespace {

constexpr SyntheticOptions kSlice = {.trials = 1, .tasks = 4, .healthy_seconds = 1800};

std::string SharedData() {
  const char* directory = std::getenv("TACHO_SHARED_DATA");
  return directory == nullptr ? TACHO_SHARED_DATA : directory;
}

std::vector<server::conditions::Detector> Detectors() {
  config::v1::ConditionsCurves config;
  EXPECT_TRUE(config::ParseYaml("", "defaults", &config).ok());
  return server::conditions::DetectorsOf(config);
}

TEST(ConditionEvaluationTest, EveryFaultOfASyntheticFleetIsFoundAndItsTaskNamed) {
  const std::vector<SyntheticScore> scores = ScoreFaults(Detectors(), kSlice);
  ASSERT_GE(scores.size(), 9u);
  for (const SyntheticScore& score : scores) {
    EXPECT_EQ(score.found, score.trials) << score.condition << ": " << score.fault;
    EXPECT_EQ(score.right_culprit, score.targeted) << score.condition << ": " << score.fault;
  }
}

TEST(ConditionEvaluationTest, AHealthySyntheticFleetHasNoCondition) {
  const std::vector<server::conditions::Detector> detectors = Detectors();
  const HealthyScore score = ScoreHealthy(detectors, kSlice);
  for (size_t i = 0; i < detectors.size(); ++i) {
    EXPECT_EQ(score.present[i], 0u) << detectors[i].name;
  }
}

class RecordedCurvesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto jobs = LoadRecordedJobs(SharedData());
    if (!jobs.ok()) GTEST_SKIP() << "no recorded curves: " << jobs.status().message();
    jobs_ = *std::move(jobs);
  }

  std::vector<RecordedJob> jobs_;
};

TEST_F(RecordedCurvesTest, FewAreSaidToHaveAConditionAtTheirEnd) {
  std::map<std::string, size_t> found;
  for (const RecordedJob& job : jobs_) {
    for (const server::conditions::Detector& detector : Detectors()) {
      const auto window = WindowAt(job, job.last_time_ns());
      found[detector.name] += detector.detect(window).present ? 1 : 0;
    }
  }
  // Seven recordings end with NaN, a few have really stopped improving or overfit.
  EXPECT_LE(found["Diverged"], 7u);
  EXPECT_LE(found["LossSpike"], 1u);
  EXPECT_LE(found["Oscillating"], 1u);
  EXPECT_LE(found["GradientExploding"], 0u);
  EXPECT_LE(found["GradientVanished"], 0u);
  EXPECT_LE(found["Plateau"], 6u);
  EXPECT_LE(found["Overfitting"], 6u);
}

TEST_F(RecordedCurvesTest, MostPlantedFaultsAreFound) {
  const std::map<Plant, double> floors = {{Plant::kNan, 1.0},    {Plant::kRunAway, 0.9},
                                          {Plant::kSpike, 0.5},  {Plant::kExplode, 0.9},
                                          {Plant::kVanish, 0.9}, {Plant::kOverfit, 0.8}};
  const std::vector<server::conditions::Detector> detectors = Detectors();
  for (const auto& [plant, floor] : floors) {
    size_t trials = 0;
    size_t found = 0;
    for (size_t k = 0; k < jobs_.size(); ++k) {
      std::mt19937_64 random(k);
      const auto planted = PlantInto(jobs_[k], plant, &random);
      if (!planted) continue;
      const size_t n = planted->times_ns.size();
      const size_t last = LimitOf(plant) == 0 ? n : std::min(n, LimitOf(plant));
      bool present = false;
      for (size_t i = 0; i < last && !present; i += 1 + i / 5) {
        for (const server::conditions::Detector& detector : detectors) {
          if (detector.name != ConditionOf(plant)) continue;
          present = detector.detect(WindowAt(planted->job, planted->times_ns[i])).present;
        }
      }
      ++trials;
      found += present ? 1 : 0;
    }
    ASSERT_GT(trials, 0u) << PlantName(plant);
    EXPECT_GE(static_cast<double>(found) / static_cast<double>(trials), floor)
        << PlantName(plant) << ": " << found << " of " << trials;
  }
}

}  // namespace
}  // namespace tacho::conditions
