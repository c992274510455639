#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/goodput/device_peak.h"
#include "server/goodput/step_figures.h"

namespace tacho::server::goodput {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

std::deque<StepSample> Samples(const std::vector<double>& seconds) {
  std::deque<StepSample> samples;
  int64_t time_ns = 0;
  for (size_t i = 0; i < seconds.size(); ++i) {
    time_ns += static_cast<int64_t>(seconds[i] * 1e9);
    samples.push_back({time_ns, static_cast<int64_t>(100 + i), seconds[i], kAbsent});
  }
  return samples;
}

TEST(StepFiguresTest, QuantilesAreValuesThatWereThere) {
  const StepFigures figures = FiguresOf(Samples({0.4, 0.1, 0.2, 0.3, 10}), {}, false);
  EXPECT_EQ(figures.sampled, 5u);
  EXPECT_EQ(figures.median, 0.3);
  EXPECT_EQ(figures.p90, 10);
  EXPECT_EQ(figures.p99, 10);
  EXPECT_DOUBLE_EQ(*figures.mean, 2.2);
  EXPECT_DOUBLE_EQ(*figures.mad, 0.1);
}

TEST(StepFiguresTest, IdealLeavesOutWhatIsFarAboveAndNothingThatIsShort) {
  // Sub-second steps are steps.
  EXPECT_DOUBLE_EQ(*FiguresOf(Samples({0.1, 0.2, 0.3, 10}), {}, false).ideal, 0.2);
  EXPECT_EQ(FiguresOf(Samples({}), {}, false).ideal, std::nullopt);
}

TEST(StepFiguresTest, MfuIsModelFlopsThroughWhatTheDevicesCouldDo) {
  const auto samples = Samples({2, 2, 2});
  const AttemptAttributes own = {
      {"flops_per_step", "4e15"}, {"device_count", "8"}, {"device_peak_flops", "5e14"}};
  EXPECT_DOUBLE_EQ(*FiguresOf(samples, own, false).mfu, 0.5);
  EXPECT_EQ(FiguresOf(samples, own, false).peak_source, "device_peak_flops");
  const AttemptAttributes kind = {
      {"flops_per_step", "3.15168e15"}, {"device_count", "16"}, {"device_kind", "TPU v5 lite"}};
  EXPECT_DOUBLE_EQ(*FiguresOf(samples, kind, false).mfu, 0.499949238578680);
  EXPECT_EQ(FiguresOf(samples, kind, false).peak_source, "TPU v5 lite");
}

TEST(StepFiguresTest, AnUnknownDeviceHasNoMfu) {
  const AttemptAttributes attributes = {
      {"flops_per_step", "1e15"}, {"device_count", "8"}, {"device_kind", "TPU v99"}};
  EXPECT_EQ(FiguresOf(Samples({1}), attributes, false).mfu, std::nullopt);
  const AttemptAttributes odd = {
      {"flops_per_step", "many"}, {"device_count", "0"}, {"device_kind", "TPU v4"}};
  EXPECT_EQ(FiguresOf(Samples({1}), odd, false).mfu, std::nullopt);
}

TEST(StepFiguresTest, TokensAreCountedOrElseComputed) {
  auto samples = Samples({1, 1, 1, 1});
  EXPECT_EQ(FiguresOf(samples, {}, false).tokens_per_second, std::nullopt);
  EXPECT_DOUBLE_EQ(*FiguresOf(samples, {{"tokens_per_step", "512"}}, false).tokens_per_second, 512);
  for (size_t i = 0; i < samples.size(); ++i) samples[i].tokens = 1000.0 * static_cast<double>(i);
  EXPECT_DOUBLE_EQ(*FiguresOf(samples, {{"tokens_per_step", "512"}}, false).tokens_per_second,
                   1000);
  samples[3].tokens = 700;  // It began again.
  EXPECT_DOUBLE_EQ(*FiguresOf(samples, {}, false).tokens_per_second, 900);
}

TEST(StepFiguresTest, TimeLeftHasThePausesInIt) {
  std::deque<StepSample> samples = Samples({1, 1, 1});
  samples.back().time_ns += 8 * kSecond;  // 10 s for the last two steps.
  const StepFigures figures = FiguresOf(samples, {{"planned_steps", "202"}}, false);
  EXPECT_EQ(figures.last_step, 102);
  EXPECT_EQ(figures.planned_steps, 202);
  EXPECT_DOUBLE_EQ(*figures.progress, 102.0 / 202);
  EXPECT_DOUBLE_EQ(*figures.remaining_seconds, 500);
  EXPECT_EQ(FiguresOf(samples, {{"planned_steps", "50"}}, false).progress, 1);
}

// A job that counts from 0 is done after the step before the planned number; tachoctl status says
// the same.
TEST(StepFiguresTest, ProgressCountsStepsFromWhereTheJobDoes) {
  const std::deque<StepSample> samples = Samples({1, 1, 1});  // The last step is 102.
  const auto progress = [&](const char* planned, bool from_zero) {
    return *FiguresOf(samples, {{"planned_steps", planned}}, from_zero).progress;
  };
  EXPECT_EQ(progress("103", true), 1);
  EXPECT_EQ(progress("102", false), 1);
  EXPECT_DOUBLE_EQ(progress("103", false), 102.0 / 103);
  EXPECT_DOUBLE_EQ(progress("206", true), 0.5);
  EXPECT_EQ(*FiguresOf(samples, {{"planned_steps", "103"}}, true).remaining_seconds, 0);
}

TEST(DevicePeakTest, FindsByName) {
  const auto flops = [](const char* kind) {
    const DevicePeak* peak = FindDevicePeak(kind);
    return peak == nullptr ? 0 : peak->flops / 1e12;
  };
  EXPECT_EQ(flops("TPU v5p"), 459);
  EXPECT_EQ(flops("tpu V4"), 275);
  EXPECT_EQ(flops("TPU v3"), 70);  // Half a chip.
  EXPECT_EQ(flops("NVIDIA H100 80GB HBM3"), 989);
  EXPECT_EQ(flops("NVIDIA H100 PCIe"), 756);
  EXPECT_EQ(flops("NVIDIA H200"), 989);
  EXPECT_EQ(flops("NVIDIA H20"), 148);
  EXPECT_EQ(flops("NVIDIA GB200"), 2500);
  EXPECT_EQ(flops("NVIDIA A100-SXM4-80GB"), 312);
  EXPECT_EQ(flops("NVIDIA RTX A1000"), 0);
  EXPECT_EQ(flops("TPU v4 something"), 0);
  EXPECT_EQ(flops(""), 0);
}

}  // namespace
}  // namespace tacho::server::goodput
