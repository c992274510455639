#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/collectives.h"
#include "tests/server/conditions/settings.h"
#include "tests/support/synthetic_noise.h"
#include "tests/support/synthetic_window.h"

namespace tacho::server::conditions {
namespace {

using testing::FaultKind;
using testing::FleetOptions;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::SyntheticFleet;

constexpr int kSteps = 200;
constexpr double kStepSeconds = 1;

// Each task records a step of one second, and what `value` says of its metrics.
class Job {
 public:
  explicit Job(uint32_t tasks) {
    window_.job = "job";
    window_.now_ns = int64_t{kSteps} * 1'000'000'000;
    for (uint32_t task = 0; task < tasks; ++task) {
      TaskWindow& made = window_.tasks.emplace_back();
      made.task = task;
      made.host = absl::StrCat("h", task);
      Add(task, Signal::kStepTime, "step_time_seconds", [](int) { return kStepSeconds; });
    }
  }

  void Add(uint32_t task, Signal signal, const std::string& metric,
           const std::function<double(int)>& value) {
    Track track = {.metric = metric, .points = {}};
    for (int step = 0; step < kSteps; ++step) {
      track.points.push_back(
          {.time_ns = int64_t{step + 1} * 1'000'000'000, .step = step, .value = value(step)});
    }
    window_.tasks[task].tracks[signal].push_back(std::move(track));
  }
  // The same on all tasks, with another one arriving last each time.
  void AddToAll(const std::string& name, const std::function<double(int)>& seconds) {
    const auto tasks = static_cast<int>(window_.tasks.size());
    for (int task = 0; task < tasks; ++task) {
      Add(static_cast<uint32_t>(task), Signal::kCollective,
          absl::StrCat("collective_", name, "_seconds"),
          [&, task](int step) { return seconds(step) + (step % tasks == task ? 0 : 0.3); });
    }
  }
  void AddBytes(const std::string& name, const std::function<double(int)>& bytes) {
    for (uint32_t task = 0; task < window_.tasks.size(); ++task) {
      Add(task, Signal::kCollectiveBytes, absl::StrCat("collective_", name, "_bytes"), bytes);
    }
  }
  // Both ends of a link.
  void AddLink(uint32_t a, uint32_t b, const std::function<double(int)>& seconds) {
    Add(a, Signal::kCollective, absl::StrCat("collective_pp_send_peer_", b, "_seconds"), seconds);
    // It waits for the other.
    Add(b, Signal::kCollective, absl::StrCat("collective_pp_recv_peer_", a, "_seconds"),
        [&](int step) { return seconds(step) + 0.4; });
  }

  Finding Detect(const std::string& yaml = "") const {
    return DetectSlowCollective(window_, With(yaml));
  }
  JobWindow& window() { return window_; }

 private:
  JobWindow window_;
};

double Noisy(double seconds, int step) {
  return seconds * (1 + 0.05 * testing::SyntheticGauss(1, testing::NoiseStream::kComm, 0,
                                                       static_cast<uint64_t>(step)));
}
// Twice as slow in the newest steps.
double SlowsDown(int step) { return Noisy(step < 160 ? 0.1 : 0.25, step); }
double Steady(int step) { return Noisy(0.1, step); }

TEST(SlowCollectiveTest, SaysWhichOneHowMuchAndSinceWhen) {
  Job job(4);
  job.AddToAll("dp_allreduce", SlowsDown);
  job.AddToAll("tp_allgather", Steady);
  job.AddBytes("dp_allreduce", [](int) { return 1e9; });
  const Finding finding = job.Detect();
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "SlowCollective");
  EXPECT_THAT(finding.message, HasSubstr("the collective dp_allreduce takes"));
  EXPECT_THAT(finding.culprits, IsEmpty()) << "all members see it alike";
  ASSERT_TRUE(finding.step.has_value());
  EXPECT_NEAR(static_cast<double>(*finding.step), 160, 5);
  EXPECT_NEAR(Seconds(finding.since_ns), 161, 5);
  EXPECT_EQ(finding.figures[0].name, "seconds");
  EXPECT_NEAR(finding.figures[0].value, 0.25, 0.02);
  EXPECT_NEAR(finding.figures[2].value, 2.5, 0.2);
  EXPECT_EQ(finding.figures.back().name, "bandwidth");
  EXPECT_NEAR(finding.figures.back().value, 4e9, 3e8);
}

TEST(SlowCollectiveTest, NoiseLateTasksAndShortSpellsAreNot) {
  Job steady(4);
  steady.AddToAll("a", Steady);
  const Finding finding = steady.Detect();
  EXPECT_TRUE(finding.judged);
  EXPECT_FALSE(finding.present) << finding.message;
  Job wild(4);
  wild.AddToAll("a", [](int step) { return step % 3 == 0 ? 0.3 : 0.05; });
  EXPECT_FALSE(wild.Detect().present);
  Job spell(4);
  spell.AddToAll("a", [](int step) { return step > 185 && step < 192 ? 1.0 : Steady(step); });
  EXPECT_FALSE(spell.Detect().present);
  Job small(4);  // Ten times as slow, and nothing of a step.
  small.AddToAll("a", [](int step) { return step < 160 ? 0.002 : 0.02; });
  EXPECT_FALSE(small.Detect().present);
  EXPECT_TRUE(small.Detect("min_share: 0").present);
}

TEST(SlowCollectiveTest, ALateTaskMakesOthersWaitAndIsNotThis) {
  Job job(4);
  for (uint32_t task = 0; task < 4; ++task) {
    job.Add(task, Signal::kCollective, "collective_a_seconds",
            [=](int step) { return Steady(step) + (task != 2 && step >= 150 ? 0.8 : 0); });
  }
  EXPECT_FALSE(job.Detect().present);
  // The same fleet as of Straggling.
  const SyntheticFleet fleet(
      {.collectives = true},
      {{.kind = FaultKind::kSlowHost, .host = 5, .at_seconds = 300, .amount = 0.6}});
  const JobWindow window = fleet.At(500);
  EXPECT_TRUE(DetectStraggling(window, Defaults()).present);
  EXPECT_FALSE(DetectSlowCollective(window, Defaults()).present);
}

TEST(SlowCollectiveTest, MoreBytesMayTakeLongerAndFewerNeedNotBeFaster) {
  Job more(4);
  more.AddToAll("a", SlowsDown);
  more.AddBytes("a", [](int step) { return step < 160 ? 1e9 : 2.5e9; });
  EXPECT_FALSE(more.Detect().present);
  Job fewer(4);
  fewer.AddToAll("a", Steady);
  fewer.AddBytes("a", [](int step) { return step < 160 ? 1e9 : 1e8; });
  EXPECT_FALSE(fewer.Detect().present);
  Job both(4);
  both.AddToAll("a", [](int step) { return Noisy(step < 160 ? 0.1 : 0.6, step); });
  both.AddBytes("a", [](int step) { return step < 160 ? 1e9 : 2e9; });
  EXPECT_TRUE(both.Detect().present);
}

TEST(SlowCollectiveTest, OneThatWasHiddenAndComesToLightIsTold) {
  Job job(4);
  for (uint32_t task = 0; task < 4; ++task) {
    job.Add(task, Signal::kCollective, "collective_a_seconds",
            [](int step) { return step < 160 ? 0.0 : 0.2; });
  }
  EXPECT_TRUE(job.Detect().present);
}

TEST(SlowCollectiveTest, ASlowLinkNamesItsEnds) {
  Job job(6);
  for (uint32_t task = 0; task < 5; ++task) {
    job.AddLink(task, task + 1,
                [=](int step) { return task == 3 ? SlowsDown(step) : Steady(step); });
  }
  const Finding finding = job.Detect();
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "SlowLink");
  EXPECT_THAT(finding.message, HasSubstr("the link between h3 (task 3) and h4 (task 4)"));
  ASSERT_THAT(finding.culprits, SizeIs(2));
  EXPECT_EQ(finding.culprits[0].host, "h3");
  EXPECT_EQ(finding.culprits[1].host, "h4");
  EXPECT_NEAR(finding.culprits[0].score, 2.5, 0.2);
  EXPECT_EQ(finding.culprits[0].metric, "collective_pp_send_peer_4_seconds");
}

TEST(SlowCollectiveTest, AHostWithSlowLinksToBothSidesComesFirst) {
  Job job(8);
  for (uint32_t task = 0; task < 7; ++task) {
    job.AddLink(task, task + 1,
                [=](int step) { return task == 3 || task == 4 ? SlowsDown(step) : Steady(step); });
  }
  const Finding finding = job.Detect();
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "SlowLink");
  ASSERT_THAT(finding.culprits, SizeIs(3));
  EXPECT_EQ(finding.culprits[0].host, "h4");
}

TEST(SlowCollectiveTest, IfMostLinksAreSlowNoneIsNamed) {
  Job job(6);
  for (uint32_t task = 0; task < 5; ++task) job.AddLink(task, task + 1, SlowsDown);
  const Finding finding = job.Detect();
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "SlowExchanges");
  EXPECT_THAT(finding.culprits, IsEmpty());
}

TEST(SlowCollectiveTest, ALinkThatWasAlwaysSlowIsFoundAmongTheOthers) {
  Job job(7);
  for (uint32_t task = 0; task < 6; ++task) {
    job.AddLink(task, task + 1, [=](int step) { return Noisy(task == 2 ? 0.35 : 0.1, step); });
  }
  const Finding finding = job.Detect();
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "SlowLink");
  EXPECT_THAT(finding.message, HasSubstr("of the other links"));
  ASSERT_THAT(finding.culprits, SizeIs(2));
  EXPECT_EQ(finding.culprits[0].host, "h2");
  Job pipeline(9);  // Stages in the middle wait longer at both ends.
  for (uint32_t task = 0; task < 8; ++task) {
    const double bubble = 0.05 * std::min(task + 1, 8 - task);
    pipeline.AddLink(task, task + 1, [=](int step) { return Noisy(bubble, step); });
  }
  EXPECT_FALSE(pipeline.Detect().present);
}

TEST(SlowCollectiveTest, LinksWithMoreBytesAreNoSlowLinks) {
  Job job(7);
  for (uint32_t task = 0; task < 6; ++task) {
    job.AddLink(task, task + 1, [=](int step) { return Noisy(task == 2 ? 0.4 : 0.1, step); });
    job.Add(task, Signal::kCollectiveBytes,
            absl::StrCat("collective_pp_send_peer_", task + 1, "_bytes"),
            [=](int) { return task == 2 ? 4e8 : 1e8; });
  }
  EXPECT_FALSE(job.Detect().present);
}

TEST(SlowCollectiveTest, LabelsOfOtherRecordersSayTheSame) {
  Job job(2);
  job.Add(0, Signal::kCollective, "collective_seconds{collective=pp-send,peer=1}", SlowsDown);
  job.Add(1, Signal::kCollective, "collective_seconds{collective=pp-recv,peer=0}", SlowsDown);
  const Finding finding = job.Detect();
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "SlowLink");
  const std::vector<CollectiveTimes> all = MeasureCollectives(job.window(), 20);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].name, "pp_send");
}

TEST(SlowCollectiveTest, WhatOneTaskOrOneEndRecordsIsNotJudged) {
  Job one(4);
  one.Add(0, Signal::kCollective, "collective_a_seconds", SlowsDown);
  EXPECT_FALSE(one.Detect().judged);
  one.Add(0, Signal::kCollective, "collective_send_peer_1_seconds", SlowsDown);
  EXPECT_FALSE(one.Detect().judged);
  Job none(4);
  EXPECT_FALSE(none.Detect().judged);
  Job young(4);
  young.AddToAll("a", Steady);
  for (TaskWindow& task : young.window().tasks) {
    for (auto& [signal, tracks] : task.tracks) {
      for (Track& track : tracks) track.points.resize(30);
    }
  }
  EXPECT_FALSE(young.Detect().judged);
}

TEST(SlowCollectiveTest, AJobThatHasEndedIsNotSlow) {
  Job job(4);
  job.AddToAll("a", SlowsDown);
  job.window().ended = true;
  EXPECT_FALSE(job.Detect().present);
}

}  // namespace
}  // namespace tacho::server::conditions
