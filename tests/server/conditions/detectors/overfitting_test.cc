
#include "gtest/gtest.h"
#include "server/conditions/detectors/detectors.h"
#include "tests/server/conditions/detectors/curve_windows.h"
#include "tests/server/conditions/settings.h"

namespace tacho::server::conditions {
namespace {

std::vector<double> Falling(size_t count) {
  return Noisy(Curved(count, [](double i) { return 4 * std::exp(-i / 500); }), 0.02);
}

// Evaluation losses, the best of them at evaluation 10.
std::vector<double> ThenRising(size_t count) {
  return Noisy(Curved(count, [](double i) { return 1 + 0.05 * std::abs(i - 10); }), 0.01);
}

Finding Detect(const std::vector<double>& train, const std::vector<double>& eval) {
  WindowOf window;
  window.Add(0, Signal::kLoss, train).Add(0, Signal::kEvalLoss, eval, 100);
  return DetectOverfitting(window, Defaults());
}

TEST(OverfittingTest, EvaluationLossRisesWhileTrainingLossFalls) {
  const Finding finding = Detect(Falling(2000), ThenRising(20));
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "EvalLossRises");
  EXPECT_NEAR(static_cast<double>(*finding.step), 1000, 100) << "whose checkpoint is best";
  EXPECT_EQ(finding.culprits.at(0).metric, "eval_loss");
}

TEST(OverfittingTest, WaitsForSomeEvaluations) {
  EXPECT_FALSE(Detect(Falling(1300), ThenRising(13)).present);
  EXPECT_FALSE(Detect(Falling(500), ThenRising(5)).judged);
}

TEST(OverfittingTest, IsNoneIfTrainingGetsWorseToo) {
  EXPECT_FALSE(
      Detect(Curved(2000, [](double i) { return 1 + 1e-3 * std::abs(i - 1000); }), ThenRising(20))
          .present);
}

TEST(OverfittingTest, NoisyAndFallingEvaluationsAreNone) {
  EXPECT_FALSE(Detect(Falling(2000), Curved(20, [](double i) { return 4 - i / 10; })).present);
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const std::vector<double> noisy = Noisy(std::vector<double>(20, 1), 0.2, seed);
    EXPECT_FALSE(Detect(Falling(2000), noisy).present) << seed;
  }
}

TEST(OverfittingTest, OfSeveralSetsTheWorstIsNamed) {
  WindowOf window;
  window.Add(0, Signal::kLoss, Falling(2000));
  window.AddTrack(0, Signal::kEvalLoss,
                  TrackOf("eval_a_loss", Curved(20, [](double i) { return 4 - i / 10; }), 100));
  window.AddTrack(0, Signal::kEvalLoss, TrackOf("eval_b_loss", ThenRising(20), 100));
  const Finding finding = DetectOverfitting(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.culprits.at(0).metric, "eval_b_loss");
}

TEST(OverfittingTest, JudgesAccuraciesWhereThereAreNoLosses) {
  WindowOf window;
  window.Add(0, Signal::kAccuracy, Curved(2000, [](double i) { return 0.5 + i / 5000; }));
  window.Add(0, Signal::kEvalAccuracy,
             Curved(20, [](double i) { return 0.8 - 0.02 * std::abs(i - 10); }), 100);
  const Finding finding = DetectOverfitting(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "EvalAccuracyFalls");
  EXPECT_NEAR(finding.figures.at(0).value, 0.8, 0.025);
}

TEST(OverfittingTest, AnAccuracyAboveOneIsNone) {
  WindowOf window;
  window.Add(0, Signal::kAccuracy, Curved(2000, [](double i) { return 5 - i / 1000; }));
  window.Add(0, Signal::kEvalAccuracy, Curved(20, [](double i) { return 5 - i / 10; }), 100);
  EXPECT_FALSE(DetectOverfitting(window, Defaults()).judged);
}

TEST(OverfittingTest, NeedsBoth) {
  EXPECT_FALSE(
      DetectOverfitting(WindowOf().Add(0, Signal::kEvalLoss, ThenRising(20)), Defaults()).judged);
}

}  // namespace
}  // namespace tacho::server::conditions
