#include "gtest/gtest.h"
#include "server/conditions/detectors/detectors.h"
#include "tests/server/conditions/detectors/curve_windows.h"
#include "tests/server/conditions/settings.h"

namespace tacho::server::conditions {
namespace {

// Norms around 1, scattered as products are, falling in the warm-up.
std::vector<double> Norms(size_t count, uint64_t seed = 1) {
  std::vector<double> norms = Noisy(std::vector<double>(count, 0), 0.3, seed);
  for (size_t i = 0; i < count; ++i) {
    norms[i] = std::exp(norms[i]) * (1 + 50 * std::exp(-static_cast<double>(i) / 10));
  }
  return norms;
}

Finding Exploding(const std::vector<double>& norms,
                  const Curves::GradientExploding& settings = Defaults()) {
  return DetectGradientExploding(WindowOf().Add(0, Signal::kGradNorm, norms), settings);
}
Finding Vanished(const std::vector<double>& norms) {
  return DetectGradientVanished(WindowOf().Add(0, Signal::kGradNorm, norms), Defaults());
}

TEST(GradientExplodingTest, SeesNormsThatGrowOutOfProportion) {
  std::vector<double> norms = Norms(200);
  for (size_t i = 190; i < 200; ++i) norms[i] = 40;
  const Finding finding = Exploding(norms);
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "GradientNormGrew");
  EXPECT_EQ(finding.step, 190);
  EXPECT_NEAR(finding.culprits.at(0).score, 40, 10);
}

TEST(GradientExplodingTest, ScatterWarmUpAndSingleNormsAreNormal) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::vector<double> norms = Norms(300, seed);
    norms[298] = 1e9;
    EXPECT_FALSE(Exploding(norms).present) << seed;
  }
  std::vector<double> skipped = Norms(100);
  for (size_t i = 95; i < 100; ++i) skipped[i] = kInf;
  EXPECT_FALSE(Exploding(skipped).present) << "Diverged's";
}

TEST(GradientExplodingTest, ALimitCountsWithoutAPast) {
  EXPECT_FALSE(Exploding(std::vector<double>(10, 70)).judged);
  EXPECT_EQ(Exploding(std::vector<double>(10, 70), With("limit: 50")).reason,
            "GradientNormAboveLimit");
}

TEST(GradientVanishedTest, SeesNormsFall) {
  std::vector<double> norms = Norms(200);
  for (size_t i = 180; i < 200; ++i) norms[i] *= 1e-5;
  const Finding finding = Vanished(norms);
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "GradientVanished");
  EXPECT_EQ(finding.step, 180);
}

TEST(GradientVanishedTest, StaysTrueForLong) {
  std::vector<double> norms = Norms(1000);
  for (size_t i = 300; i < 1000; ++i) norms[i] *= 1e-5;
  EXPECT_TRUE(Vanished(norms).present);
}

TEST(GradientVanishedTest, SeesZerosFromTheStartAndNotSingleOnes) {
  EXPECT_EQ(Vanished(std::vector<double>(20, 0)).reason, "GradientZero");
  std::vector<double> norms = Norms(200);
  for (size_t i = 0; i < 200; i += 3) norms[i] = 0;
  EXPECT_FALSE(Vanished(norms).present);
  EXPECT_FALSE(Vanished(Norms(200)).present) << "a tenth of the first norms is normal";
  EXPECT_FALSE(Vanished({1, 1}).judged);
}

TEST(WeightsFrozenTest, SeesUpdatesOfZeroAndNamesTheTask) {
  WindowOf window;
  for (uint32_t task = 0; task < 3; ++task) {
    std::vector<double> updates(100, 0.1);
    for (size_t i = 60; task == 1 && i < 100; ++i) updates[i] = 0;
    window.Add(task, Signal::kUpdateNorm, updates);
    window.Add(task, Signal::kLearningRate, std::vector<double>(100, 1e-3));
  }
  const Finding finding = DetectWeightsFrozen(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "UpdatesZero");
  EXPECT_EQ(finding.step, 60);
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_EQ(finding.culprits[0].task, 1u);
}

TEST(WeightsFrozenTest, SeesUpdatesBelowRounding) {
  WindowOf window;
  window.Add(0, Signal::kUpdateNorm, std::vector<double>(50, 1e-9));
  window.Add(0, Signal::kParamNorm, std::vector<double>(50, 100.0));
  EXPECT_EQ(DetectWeightsFrozen(window, Defaults()).reason, "UpdatesTooSmall");
}

TEST(WeightsFrozenTest, SeesANormOfTheWeightsThatStandsStill) {
  WindowOf window;
  window.Add(0, Signal::kParamNorm, Curved(100, [](double i) { return std::min(i, 70.0); }));
  const Finding finding = DetectWeightsFrozen(window, Defaults());
  EXPECT_EQ(finding.reason, "ParameterNormConstant");
  EXPECT_EQ(finding.step, 70);
}

TEST(WeightsFrozenTest, ALearningRateOfNothingExplainsIt) {
  WindowOf window;
  window.Add(0, Signal::kParamNorm, std::vector<double>(100, 5));
  window.Add(0, Signal::kLearningRate, Curved(100, [](double i) { return i < 60 ? 1e-3 : 1e-7; }));
  EXPECT_FALSE(DetectWeightsFrozen(window, Defaults()).present);
}

TEST(WeightsFrozenTest, IsNotJudgedWithoutNorms) {
  EXPECT_FALSE(DetectWeightsFrozen(WindowOf().Add(0, Signal::kLoss, {1, 1, 1}), Defaults()).judged);
}

TEST(WeightsFrozenTest, NormsThatMoveAreFine) {
  WindowOf window;
  window.Add(0, Signal::kParamNorm, Curved(100, [](double i) { return 5 + 1e-6 * i; }));
  EXPECT_FALSE(DetectWeightsFrozen(window, Defaults()).present);
}

}  // namespace
}  // namespace tacho::server::conditions
