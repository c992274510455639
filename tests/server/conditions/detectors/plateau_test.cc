
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conditions/detectors/detectors.h"
#include "tests/server/conditions/detectors/curve_windows.h"
#include "tests/server/conditions/settings.h"

namespace tacho::server::conditions {
namespace {

std::vector<double> Flat(size_t count, double noise = 0.03) {
  return Noisy(Curved(count, [](double i) { return i < 200 ? 5 - i / 100 : 3; }), noise);
}

TEST(PlateauTest, IsNotJudgedEarly) {
  EXPECT_FALSE(DetectPlateau(WindowOf(), Defaults()).judged);
  EXPECT_FALSE(DetectPlateau(WindowOf().Add(0, Signal::kLoss, Flat(90)), Defaults()).judged);
  EXPECT_FALSE(DetectPlateau(WindowOf().Add(0, Signal::kLoss, Flat(140)), Defaults()).judged);
}

TEST(PlateauTest, AFlatLossIsOneWithItsExtrapolation) {
  WindowOf window;
  window.Add(0, Signal::kLoss, Flat(2000)).Attribute("planned_steps", "10000");
  const Finding finding = DetectPlateau(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "NoImprovementExpected");
  EXPECT_EQ(finding.severity, Severity::kInfo);
  EXPECT_NEAR(finding.figures.at(0).value, 3, 0.05);
  EXPECT_LT(finding.figures.at(2).value, finding.figures.at(1).value);
  EXPECT_GT(finding.figures.at(3).value, finding.figures.at(1).value);
  EXPECT_EQ(finding.figures.at(5).value, 10000);
}

TEST(PlateauTest, ALossThatStillFallsIsNone) {
  WindowOf window;
  window.Add(0, Signal::kLoss, LanguageLoss(2000)).Attribute("planned_steps", "20000");
  const Finding finding = DetectPlateau(window, Defaults());
  EXPECT_TRUE(finding.judged);
  EXPECT_FALSE(finding.present);
}

TEST(PlateauTest, ExtrapolatesAPowerLawToWithinItsInterval) {
  // Slow enough for the condition, with a known value at the horizon.
  const auto loss = [](double i) { return 3 - 0.004 * std::log(1 + i); };
  const double truth = loss(3999) - loss(8000);
  int covered = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    WindowOf window;
    window.Add(0, Signal::kLoss, Noisy(Curved(4000, loss), 0.01, seed))
        .Attribute("planned_steps", "8000");
    const Finding finding = DetectPlateau(window, Defaults());
    ASSERT_TRUE(finding.present);
    const bool within = finding.figures.at(2).value < truth && truth < finding.figures.at(3).value;
    covered += within ? 1 : 0;
  }
  EXPECT_GE(covered, 88);
}

TEST(PlateauTest, TooMuchNoiseToSayIsNone) {
  WindowOf window;
  window.Add(0, Signal::kLoss, Flat(1000, 1.5)).Attribute("planned_steps", "100000");
  EXPECT_FALSE(DetectPlateau(window, Defaults()).present);
}

TEST(PlateauTest, WarmUpAndTheEndOfTheScheduleExplainIt) {
  WindowOf warm_up;
  warm_up.Add(0, Signal::kLoss, Flat(1000));
  warm_up.Add(0, Signal::kLearningRate, Curved(1000, [](double i) { return i * 1e-6; }));
  EXPECT_FALSE(DetectPlateau(warm_up, Defaults()).present);
  WindowOf decayed;
  decayed.Add(0, Signal::kLoss, Flat(1000));
  decayed.Add(0, Signal::kLearningRate, Curved(1000, [](double i) { return i < 300 ? 1 : 0.01; }));
  EXPECT_FALSE(DetectPlateau(decayed, Defaults()).present);
  WindowOf last;
  last.Add(0, Signal::kLoss, Flat(1000)).Attribute("planned_steps", "1050");
  EXPECT_FALSE(DetectPlateau(last, Defaults()).present);
}

// 2^63 does not fit in a step.
TEST(PlateauTest, AHorizonBeyondAllStepsIsTheLast) {
  Track track = TrackOf("loss", Noisy(std::vector<double>(150, 2.5), 0.02));
  for (Point& point : track.points) point.step *= 50'000'000'000'000'000;
  WindowOf window;
  window.AddTrack(0, Signal::kLoss, std::move(track));
  const Finding finding = DetectPlateau(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_THAT(finding.message, ::testing::HasSubstr("by step 9223372036854775807"));
}

TEST(PlateauTest, SeesItInLossesOfEveryHundredthStep) {
  WindowOf window;
  window.Add(0, Signal::kLoss, Noisy(std::vector<double>(150, 2.5), 0.02), 100);
  EXPECT_TRUE(DetectPlateau(window, Defaults()).present);
}

TEST(OscillatingTest, SeesALossThatSwings) {
  for (const double period : {2.0, 5.0, 16.0}) {
    const std::vector<double> loss = Noisy(
        Curved(200, [&](double i) { return 2 + 0.4 * std::cos(2 * M_PI * i / period); }), 0.05);
    const Finding finding = DetectOscillating(WindowOf().Add(0, Signal::kLoss, loss), Defaults());
    ASSERT_TRUE(finding.present) << period;
    EXPECT_EQ(static_cast<int>(finding.figures.at(3).value) % static_cast<int>(period), 0);
  }
}

TEST(OscillatingTest, SeesLongPeriodsToo) {
  for (const double period : {40.0, 80.0, 200.0}) {
    const std::vector<double> loss = Noisy(
        Curved(1600, [&](double i) { return 3 + 0.6 * std::sin(2 * M_PI * i / period); }), 0.05);
    const Finding finding = DetectOscillating(WindowOf().Add(0, Signal::kLoss, loss), Defaults());
    ASSERT_TRUE(finding.present) << period;
    EXPECT_NEAR(finding.figures[3].value, period, 16) << finding.message;
  }
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<double> falling = LanguageLoss(1700, 0.3, seed);
    EXPECT_FALSE(DetectOscillating(WindowOf().Add(0, Signal::kLoss, falling), Defaults()).present)
        << seed;
  }
}

TEST(OscillatingTest, NoiseDriftAndSingleSpikesAreNone) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const std::vector<double> white = Noisy(std::vector<double>(96, 1), 0.3, seed);
    EXPECT_FALSE(DetectOscillating(WindowOf().Add(0, Signal::kLoss, white), Defaults()).present)
        << seed;
    std::vector<double> drift = Noisy(std::vector<double>(96, 0), 0.3, seed);
    for (size_t i = 1; i < drift.size(); ++i) drift[i] += drift[i - 1];
    for (double& value : drift) value += 20;
    EXPECT_FALSE(DetectOscillating(WindowOf().Add(0, Signal::kLoss, drift), Defaults()).present)
        << seed;
  }
  std::vector<double> spiky(96, 1.0);
  for (size_t i = 0; i < 96; i += 10) spiky[i] = 3;
  EXPECT_FALSE(DetectOscillating(WindowOf().Add(0, Signal::kLoss, spiky), Defaults()).present);
}

TEST(OscillatingTest, FollowsACyclicLearningRateInSilence) {
  const auto wave = [](double i) { return 2 + std::cos(2 * M_PI * i / 16); };
  WindowOf window;
  window.Add(0, Signal::kLoss, Curved(200, wave)).Add(0, Signal::kLearningRate, Curved(200, wave));
  EXPECT_FALSE(DetectOscillating(window, Defaults()).present);
}

TEST(OscillatingTest, NeedsLosses) {
  EXPECT_FALSE(DetectOscillating(WindowOf(), Defaults()).judged);
  EXPECT_FALSE(
      DetectOscillating(WindowOf().Add(0, Signal::kLoss, LanguageLoss(50)), Defaults()).judged);
}

}  // namespace
}  // namespace tacho::server::conditions
