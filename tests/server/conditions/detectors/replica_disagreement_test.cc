
#include <bit>

#include "gtest/gtest.h"
#include "server/conditions/detectors/detectors.h"
#include "tests/server/conditions/detectors/curve_windows.h"
#include "tests/server/conditions/settings.h"

namespace tacho::server::conditions {
namespace {

// `tasks` tasks with the same checksums, of which some differ.
WindowOf Fleet(uint32_t tasks, const std::function<double(uint32_t task, double step)>& off) {
  WindowOf window;
  for (uint32_t task = 0; task < tasks; ++task) {
    window.Add(task, Signal::kReplicaScalar,
               Curved(50, [&](double i) { return 1000 + std::sin(i) + off(task, i); }));
  }
  return window;
}

TEST(ReplicaDisagreementTest, EqualReplicasAgree) {
  const Finding finding =
      DetectReplicaDisagreement(Fleet(8, [](uint32_t, double) { return 0; }), Defaults());
  EXPECT_TRUE(finding.judged);
  EXPECT_FALSE(finding.present);
}

TEST(ReplicaDisagreementTest, NamesTheMinority) {
  const Finding finding = DetectReplicaDisagreement(
      Fleet(8, [](uint32_t task, double i) { return task == 5 && i >= 45 ? 1e-9 : 0; }),
      Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "ReplicasDiffer");
  EXPECT_EQ(finding.step, 45);
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_EQ(finding.culprits[0].task, 5u);
  EXPECT_EQ(finding.culprits[0].host, "h5");
  EXPECT_EQ(finding.culprits[0].score, 5);
}

TEST(ReplicaDisagreementTest, ItsTextShowsWhatDiffers) {
  const Finding finding = DetectReplicaDisagreement(
      Fleet(8, [](uint32_t task, double i) { return task == 5 && i >= 45 ? 1e-9 : 0; }),
      Defaults());
  const std::string& text = finding.message;
  const size_t is = text.find(" is ") + 4;
  const size_t have = text.find(" tasks have ") + 12;
  EXPECT_NE(text.substr(is, text.find(' ', is) - is),
            text.substr(have, text.find(';', have) - have))
      << text;
}

// Losses that are averaged over the replicas, but for one from a step on.
WindowOf Losses(uint32_t tasks, const std::function<double(uint32_t task, double step)>& off) {
  WindowOf window;
  for (uint32_t task = 0; task < tasks; ++task) {
    window.Add(task, Signal::kLoss,
               Curved(60, [&](double i) { return 3 + 1 / (1 + i) + off(task, i); }));
  }
  return window;
}

TEST(ReplicaDisagreementTest, LossesThatWereEqualAndAreNoMoreDisagree) {
  const auto one = [](uint32_t odd) {
    return Losses(8, [odd](uint32_t task, double i) { return task == odd && i >= 40 ? 1e-9 : 0; });
  };
  for (const uint32_t odd : {0u, 3u}) {
    const Finding finding = DetectReplicaDisagreement(one(odd), Defaults());
    ASSERT_TRUE(finding.present) << odd;
    EXPECT_EQ(finding.reason, "LossesDiffer");
    EXPECT_EQ(finding.severity, Severity::kWarning);
    EXPECT_EQ(finding.step, 40);
    ASSERT_EQ(finding.culprits.size(), 1u) << finding.message;
    EXPECT_EQ(finding.culprits[0].task, odd);
  }
  EXPECT_FALSE(
      DetectReplicaDisagreement(Losses(8, [](uint32_t, double) { return 0; }), Defaults()).present);
  EXPECT_FALSE(DetectReplicaDisagreement(
                   Losses(8, [](uint32_t task, double i) { return task * i * 1e-3; }), Defaults())
                   .present)
      << "each task has its own loss";
  EXPECT_FALSE(
      DetectReplicaDisagreement(
          Losses(8, [](uint32_t task, double i) { return task == 1 && i == 40; }), Defaults())
          .present)
      << "they agree again";
}

TEST(ReplicaDisagreementTest, TwoTasksHaveNoMajority) {
  const Finding finding = DetectReplicaDisagreement(
      Fleet(2, [](uint32_t task, double) { return task == 1 ? 1 : 0; }), Defaults());
  EXPECT_EQ(finding.reason, "ReplicasDifferNoMajority");
}

TEST(ReplicaDisagreementTest, ToleranceForgivesTheLastBits) {
  const WindowOf window = Fleet(4, [](uint32_t task, double) { return task * 1e-7; });
  EXPECT_TRUE(DetectReplicaDisagreement(window, Defaults()).present);
  EXPECT_FALSE(DetectReplicaDisagreement(window, With("tolerance: 1e-6")).present);
}

TEST(ReplicaDisagreementTest, NanEqualsNanOfAnyPayload) {
  WindowOf window;
  window.Add(0, Signal::kReplicaScalar, {kNan});
  window.Add(1, Signal::kReplicaScalar, {std::bit_cast<double>(0x7ff8000000000123)});
  EXPECT_FALSE(DetectReplicaDisagreement(window, Defaults()).present);
  window.Add(2, Signal::kReplicaScalar, {1});
  EXPECT_EQ(DetectReplicaDisagreement(window, Defaults()).culprits.at(0).task, 2u);
}

TEST(ReplicaDisagreementTest, ATaskThatIsBehindDoesNotDisagree) {
  WindowOf window;
  window.Add(0, Signal::kReplicaScalar, Curved(50, [](double i) { return i; }));
  window.Add(1, Signal::kReplicaScalar, Curved(40, [](double i) { return i; }));
  EXPECT_TRUE(DetectReplicaDisagreement(window, Defaults()).judged);
  EXPECT_FALSE(DetectReplicaDisagreement(window, Defaults()).present);
}

TEST(ReplicaDisagreementTest, OneTaskCannotDisagree) {
  EXPECT_FALSE(
      DetectReplicaDisagreement(Fleet(1, [](uint32_t, double) { return 0; }), Defaults()).judged);
}

}  // namespace
}  // namespace tacho::server::conditions
