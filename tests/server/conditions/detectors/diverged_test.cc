
#include "gtest/gtest.h"
#include "server/conditions/detectors/detectors.h"
#include "tests/server/conditions/detectors/curve_windows.h"
#include "tests/server/conditions/settings.h"

namespace tacho::server::conditions {
namespace {

std::vector<double> With(std::vector<double> values, size_t at, double value) {
  values[at] = value;
  return values;
}

TEST(DivergedTest, IsNotJudgedWithoutTrainingSignals) {
  EXPECT_FALSE(DetectDiverged(WindowOf(), Defaults()).judged);
  EXPECT_FALSE(DetectDiverged(WindowOf().Add(0, Signal::kAccuracy, {kNan}), Defaults()).judged);
}

TEST(DivergedTest, ANewestLossThatIsNanIsTold) {
  std::vector<double> loss = LanguageLoss(100);
  loss.push_back(kNan);
  const Finding finding = DetectDiverged(WindowOf().Add(0, Signal::kLoss, loss), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "NonFiniteLoss");
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_EQ(finding.step, 100);
  EXPECT_EQ(finding.since_ns, 100'000'000'000);
  EXPECT_EQ(finding.culprits.at(0).task, 0u);
  EXPECT_EQ(finding.culprits.at(0).metric, "loss");
}

TEST(DivergedTest, WhereAllTurnedNanAtOneStepNoneWasTheFirst) {
  WindowOf window;
  for (uint32_t task = 0; task < 4; ++task) {
    std::vector<double> loss = LanguageLoss(60);
    loss.push_back(kNan);
    window.Add(task, Signal::kLoss, loss);
  }
  const Finding finding = DetectDiverged(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.message,
            "loss became nan on all 4 tasks at step 60; none of them was the first");
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_FALSE(finding.culprits[0].task.has_value());
  EXPECT_EQ(finding.culprits[0].metric, "loss");
}

TEST(DivergedTest, OneBatchWithoutALossIsOverWithTheNext) {
  const std::vector<double> loss = With(LanguageLoss(100), 98, kNan);
  const Finding finding = DetectDiverged(WindowOf().Add(0, Signal::kLoss, loss), Defaults());
  EXPECT_TRUE(finding.judged);
  EXPECT_FALSE(finding.present);
}

TEST(DivergedTest, LossesThatAreNanAgainAndAgainAreTold) {
  std::vector<double> loss = LanguageLoss(100);
  for (const size_t at : {85, 90, 95}) loss[at] = kInf;
  EXPECT_TRUE(DetectDiverged(WindowOf().Add(0, Signal::kLoss, loss), Defaults()).present);
}

TEST(DivergedTest, NamesTheFirstTaskMetricAndStepAndTheSpread) {
  WindowOf window;
  for (uint32_t task = 0; task < 4; ++task) {
    std::vector<double> loss = LanguageLoss(60);
    std::vector<double> norm(60, 1.0);
    for (size_t i = 50; i < 60; ++i) {
      if (task == 2 || i >= 53) loss[i] = kNan;
      if ((task == 2 && i >= 49) || i >= 52) norm[i] = kInf;
    }
    if (task == 2) norm[49] = kInf;
    window.Add(task, Signal::kLoss, loss).Add(task, Signal::kGradNorm, norm);
  }
  const Finding finding = DetectDiverged(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.step, 49);
  EXPECT_EQ(finding.culprits.at(0).task, 2u);
  EXPECT_EQ(finding.culprits.at(0).host, "h2");
  EXPECT_EQ(finding.culprits.at(0).metric, "grad_norm");
  EXPECT_EQ(finding.culprits.at(1).metric, "loss");
  EXPECT_EQ(finding.culprits.at(1).step, 50);
  EXPECT_EQ(finding.figures.at(0).value, 4) << "all tasks by now";
  EXPECT_EQ(finding.figures.at(3).value, 4) << "seconds from step 49 to 53";
}

TEST(DivergedTest, WaitsForRowsOfTasksThatMayHaveBeenFirst) {
  WindowOf window;
  std::vector<double> loss = LanguageLoss(60);
  window.Add(1, Signal::kLoss, {loss.begin(), loss.begin() + 57}).Reported(1, 56);
  loss[58] = loss[59] = kNan;
  window.Add(0, Signal::kLoss, loss).Reported(0, 59).Now(60);
  EXPECT_TRUE(DetectDiverged(window, Defaults()).judged);
  EXPECT_FALSE(DetectDiverged(window, Defaults()).present) << "step 57 of task 1 is still to come";
  EXPECT_TRUE(DetectDiverged(window.Now(69), Defaults()).present) << "it is not awaited for ever";
  EXPECT_TRUE(DetectDiverged(window.Now(60).Reported(1, 58), Defaults()).present)
      << "it was not the first";
}

TEST(DivergedTest, SkippedStepsOfALossScalerAreNormal) {
  std::vector<double> norm(300, 1.0);
  for (size_t i = 0; i < norm.size(); i += 40) norm[i] = kInf;
  norm.back() = kInf;
  WindowOf window;
  window.Add(0, Signal::kLoss, LanguageLoss(300)).Add(0, Signal::kGradNorm, norm);
  EXPECT_FALSE(DetectDiverged(window, Defaults()).present);
}

TEST(DivergedTest, ALossScalerLooksForItsScaleAtTheStart) {
  WindowOf window;
  window.Add(0, Signal::kGradNorm, std::vector<double>(30, kInf));
  EXPECT_FALSE(DetectDiverged(window, Defaults()).present);
  WindowOf hopeless;
  hopeless.Add(0, Signal::kGradNorm, std::vector<double>(64, kInf));
  EXPECT_EQ(DetectDiverged(hopeless, Defaults()).reason, "NonFiniteGradient");
}

TEST(DivergedTest, GradientsThatStayInfiniteAreTold) {
  std::vector<double> norm(100, 1.0);
  for (size_t i = 95; i < 100; ++i) norm[i] = kInf;
  EXPECT_TRUE(DetectDiverged(WindowOf().Add(0, Signal::kGradNorm, norm), Defaults()).present);
}

TEST(DivergedTest, StagesWithoutALossAreLeftOut) {
  WindowOf window;
  window.Add(0, Signal::kLoss, std::vector<double>(50, kNan));
  window.Add(1, Signal::kLoss, LanguageLoss(50));
  EXPECT_FALSE(DetectDiverged(window, Defaults()).present);
}

TEST(DivergedTest, ALossThatWasNeverFiniteIsTold) {
  EXPECT_TRUE(DetectDiverged(WindowOf().Add(0, Signal::kLoss, {kNan, kNan}), Defaults()).present);
}

TEST(DivergedTest, OneEvaluationWithoutALossIsNoDivergence) {
  EXPECT_FALSE(
      DetectDiverged(WindowOf().Add(0, Signal::kEvalLoss, {2, 1.5, kNan}), Defaults()).present);
  EXPECT_EQ(
      DetectDiverged(WindowOf().Add(0, Signal::kEvalLoss, {2, 1.5, kNan, kNan}), Defaults()).reason,
      "NonFiniteEvalLoss");
  EXPECT_FALSE(
      DetectDiverged(WindowOf().Add(0, Signal::kEvalLoss, {kNan, kNan}), Defaults()).present)
      << "an evaluation that never had one";
}

TEST(DivergedTest, WeightsThatAreNanAreToldAtOnce) {
  EXPECT_EQ(
      DetectDiverged(WindowOf().Add(0, Signal::kParamNorm, {10, 10.1, kNan}), Defaults()).reason,
      "NonFiniteWeights");
}

TEST(DivergedTest, ALossThatRunsAwayIsTold) {
  std::vector<double> loss = LanguageLoss(400);
  for (size_t i = 300; i < 400; ++i) loss[i] += 0.2 * static_cast<double>(i - 300);
  const Finding finding = DetectDiverged(WindowOf().Add(0, Signal::kLoss, loss), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "LossRanAway");
  EXPECT_NEAR(static_cast<double>(*finding.step), 295, 30);
}

TEST(DivergedTest, ASpikeThatComesDownAgainHasNotRunAway) {
  std::vector<double> loss = LanguageLoss(400);
  for (size_t i = 300; i < 330; ++i) loss[i] += 15;
  for (size_t i = 330; i < 400; ++i) loss[i] += 15 * std::exp(-(static_cast<double>(i) - 330) / 10);
  EXPECT_FALSE(DetectDiverged(WindowOf().Add(0, Signal::kLoss, loss), Defaults()).present);
}

TEST(DivergedTest, NoisyAdversarialLossesDoNotRunAway) {
  const std::vector<double> loss = Noisy(std::vector<double>(500, 0), 1);
  EXPECT_FALSE(DetectDiverged(WindowOf().Add(0, Signal::kLoss, loss), Defaults()).present);
}

}  // namespace
}  // namespace tacho::server::conditions
