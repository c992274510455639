
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
