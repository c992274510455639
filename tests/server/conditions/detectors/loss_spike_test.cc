
#include "gtest/gtest.h"
#include "server/conditions/detectors/detectors.h"
#include "tests/server/conditions/detectors/curve_windows.h"
#include "tests/server/conditions/settings.h"

namespace tacho::server::conditions {
namespace {

Finding Detect(const std::vector<double>& loss) {
  return DetectLossSpike(WindowOf().Add(0, Signal::kLoss, loss), Defaults());
}

// The loss, but `height` higher for `count` values from `at` on.
std::vector<double> Raised(std::vector<double> loss, size_t at, size_t count, double height) {
  for (size_t i = at; i < at + count && i < loss.size(); ++i) loss[i] += height;
  return loss;
}

TEST(LossSpikeTest, IsNotJudgedWithoutAPast) {
  EXPECT_FALSE(DetectLossSpike(WindowOf(), Defaults()).judged);
  EXPECT_FALSE(Detect(LanguageLoss(20)).judged);
}

TEST(LossSpikeTest, AFallingLossHasNone) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<double> loss = LanguageLoss(1000, 0.05, seed);
    for (size_t n = 100; n <= 1000; n += 100) {
      EXPECT_FALSE(Detect({loss.begin(), loss.begin() + static_cast<int64_t>(n)}).present)
          << "seed " << seed << ", " << n << " values";
    }
  }
}

TEST(LossSpikeTest, ThreeHighLossesAreOne) {
  const Finding finding = Detect(Raised(LanguageLoss(503), 500, 3, 1.5));
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "LossSpike");
  EXPECT_EQ(finding.severity, Severity::kInfo) << "it may end by itself";
  EXPECT_EQ(finding.step, 500);
  EXPECT_GT(finding.culprits.at(0).score, 6);
}

TEST(LossSpikeTest, OneHugeValueIsABadBatch) {
  EXPECT_FALSE(Detect(Raised(LanguageLoss(503), 500, 1, 1e6)).present);
  EXPECT_FALSE(Detect(Raised(LanguageLoss(501), 500, 1, 1e6)).present);
}

TEST(LossSpikeTest, IsOverWhenTheLossIsBack) {
  const std::vector<double> loss = Raised(LanguageLoss(600), 500, 20, 2);
  const auto until = [&](int64_t n) { return Detect({loss.begin(), loss.begin() + n}).present; };
  EXPECT_TRUE(until(510));
  EXPECT_TRUE(until(520));
  EXPECT_FALSE(until(525));
  EXPECT_FALSE(until(600));
}

TEST(LossSpikeTest, SaysThatTheLossDoesNotRecover) {
  const Finding finding = Detect(Raised(LanguageLoss(600), 500, 100, 2));
  EXPECT_EQ(finding.reason, "LossSpikeNotRecovered");
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_FALSE(Detect(Raised(LanguageLoss(1000), 500, 500, 2)).present) << "the new level";
}

TEST(LossSpikeTest, ARestartOfTheLearningRateExplainsAJump) {
  const std::vector<double> loss = Raised(LanguageLoss(520), 500, 20, 2);
  std::vector<double> rate = Curved(520, [](double i) { return i < 498 ? 1e-5 : 1e-3; });
  WindowOf window;
  window.Add(0, Signal::kLoss, loss).Add(0, Signal::kLearningRate, rate);
  EXPECT_FALSE(DetectLossSpike(window, Defaults()).present);
}

TEST(LossSpikeTest, ARateThatIsRecordedALittleLaterExplainsItToo) {
  const std::vector<double> loss = Raised(LanguageLoss(520), 500, 20, 2);
  std::vector<double> rate = Curved(52, [](double i) { return i < 51 ? 1e-5 : 1e-3; });
  WindowOf window;
  window.Add(0, Signal::kLoss, loss).Add(0, Signal::kLearningRate, rate, /*every=*/10);
  EXPECT_FALSE(DetectLossSpike(window, Defaults()).present);
}

TEST(LossSpikeTest, JumpsAtRegularDistancesAreSwings) {
  std::vector<double> loss = LanguageLoss(1000);
  for (size_t at = 500; at < 1000; at += 80) loss = Raised(loss, at, 15, 2);
  const auto until = [&](int64_t n) { return Detect({loss.begin(), loss.begin() + n}).present; };
  EXPECT_TRUE(until(510));
  EXPECT_TRUE(until(590));
  EXPECT_FALSE(until(750)) << "the fourth";
  EXPECT_FALSE(until(830));
  // One that comes out of turn is none of them.
  std::vector<double> other = LanguageLoss(1000);
  for (const size_t at : {400, 480, 560, 900}) other = Raised(other, at, 15, 2);
  EXPECT_TRUE(Detect({other.begin(), other.begin() + 910}).present);
}

TEST(LossSpikeTest, SeesSpikesOfNegativeLosses) {
  std::vector<double> loss = Noisy(std::vector<double>(300, -2.0), 0.05);
  EXPECT_FALSE(Detect(loss).present);
  EXPECT_TRUE(Detect(Raised(loss, 290, 10, 1)).present);
}

TEST(LossSpikeTest, AConstantLossHasNone) {
  EXPECT_FALSE(Detect(std::vector<double>(300, 0.0)).present);
  EXPECT_FALSE(Detect(std::vector<double>(300, 1.0)).present);
}

}  // namespace
}  // namespace tacho::server::conditions
