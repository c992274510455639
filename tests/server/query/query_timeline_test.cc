#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "server/query/read/attempts.h"
#include "server/query/read/selection.h"
#include "server/query/read/timeline.h"
#include "tests/server/memory_store.h"

namespace tacho::server::query {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
constexpr int64_t kLowest = storage::kNoStep + 1;

std::vector<StepInterval> Superseded(const Timeline& timeline, uint32_t attempt) {
  const auto steps = timeline.SupersededOf(attempt);
  return {steps.begin(), steps.end()};
}

TEST(Timeline, TakesEachStepFromTheLatestAttemptThatReachedIt) {
  const Timeline timeline({{0, {0, 100}}, {1, {60, 90}}});
  EXPECT_THAT(timeline.spans(), ElementsAre(AttemptSteps{0, {0, 59}}, AttemptSteps{1, {60, 90}},
                                            AttemptSteps{0, {91, 100}}));
  EXPECT_THAT(Superseded(timeline, 0), ElementsAre(StepInterval{60, 90}));
  EXPECT_THAT(Superseded(timeline, 1), IsEmpty());
  EXPECT_THAT(Superseded(timeline, 7), IsEmpty());
}

TEST(Timeline, JoinsWhatAdjoinsAndKeepsWhatDoesNot) {
  const Timeline timeline({{0, {0, 20}}, {1, {3, 4}}, {2, {5, 6}}, {3, {9, 9}}});
  EXPECT_THAT(Superseded(timeline, 0), ElementsAre(StepInterval{3, 6}, StepInterval{9, 9}));
  EXPECT_EQ(timeline.spans().size(), 6u);
}

TEST(Timeline, HoldsAtTheEndsOfTheNumbers) {
  const Timeline timeline({{0, {kLowest, kHighest}}, {1, {kHighest, kHighest}}, {2, {kLowest, 0}}});
  EXPECT_THAT(timeline.spans(),
              ElementsAre(AttemptSteps{2, {kLowest, 0}}, AttemptSteps{0, {1, kHighest - 1}},
                          AttemptSteps{1, {kHighest, kHighest}}));
  EXPECT_THAT(Superseded(timeline, 0),
              ElementsAre(StepInterval{kLowest, 0}, StepInterval{kHighest, kHighest}));
}

TEST(Timeline, OfOneAttemptSupersedesNothing) {
  EXPECT_THAT(Timeline().spans(), IsEmpty());
  EXPECT_THAT(Timeline({AttemptSteps{5, {7, 7}}}).spans(), ElementsAre(AttemptSteps{5, {7, 7}}));
}

// Finds the attempt of a step by looking at all of them.
std::optional<uint32_t> OwnerOf(int64_t step, const std::vector<AttemptSteps>& attempts) {
  std::optional<uint32_t> owner;
  for (const AttemptSteps& attempt : attempts) {
    if (step < attempt.steps.first || step > attempt.steps.last) continue;
    owner = std::max(owner.value_or(0), attempt.attempt);
  }
  return owner;
}

class RandomTimeline : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr int64_t kSteps = 60;

  RandomTimeline() : random_(GetParam()) {
    const int count = Below(9);
    for (int i = 0; i < count; ++i) {
      const int64_t first = Below(kSteps), last = std::min<int64_t>(kSteps - 1, first + Below(25));
      attempts_.push_back({static_cast<uint32_t>(i * 3 + Below(3)), {first, last}});
    }
    std::shuffle(attempts_.begin(), attempts_.end(), random_);
  }
  int Below(int64_t end) { return static_cast<int>(random_() % static_cast<uint32_t>(end)); }

  std::mt19937 random_;
  std::vector<AttemptSteps> attempts_;
};

TEST_P(RandomTimeline, AgreesWithALookAtEveryAttempt) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  const Timeline timeline(attempts_);
  std::map<int64_t, uint32_t> by_spans;
  int64_t end = -1;
  for (const AttemptSteps& span : timeline.spans()) {
    EXPECT_GT(span.steps.first, end);
    end = span.steps.last;
    for (int64_t step = span.steps.first; step <= end; ++step) by_spans[step] = span.attempt;
  }
  for (int64_t step = -1; step <= kSteps; ++step) {
    const auto owner = OwnerOf(step, attempts_);
    EXPECT_EQ(by_spans.contains(step), owner.has_value()) << "step " << step;
    if (owner.has_value()) {
      EXPECT_EQ(by_spans[step], *owner) << "step " << step;
    }
  }
}

TEST_P(RandomTimeline, SaysOfEachAttemptWhatWasSuperseded) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  const auto timeline = std::make_shared<const Timeline>(attempts_);
  AttemptCondition effective;
  effective.LeaveOutSuperseded(timeline);
  for (const AttemptSteps& attempt : attempts_) {
    int64_t end = -2;
    for (const StepInterval& steps : timeline->SupersededOf(attempt.attempt)) {
      EXPECT_GT(steps.first, end + 1) << "joined and ascending";
      end = steps.last;
    }
    for (int64_t step = attempt.steps.first; step <= attempt.steps.last; ++step) {
      const bool kept = OwnerOf(step, attempts_) == attempt.attempt;
      EXPECT_EQ(effective.AllowsRow(attempt.attempt, step), kept)
          << "attempt " << attempt.attempt << " step " << step;
      const int64_t last = std::min(attempt.steps.last, step + Below(5));
      bool any = false;
      for (int64_t s = step; s <= last; ++s) {
        any = any || OwnerOf(s, attempts_) != attempt.attempt;
      }
      EXPECT_EQ(Overlaps(timeline->SupersededOf(attempt.attempt), step, last), any);
    }
    EXPECT_TRUE(effective.AllowsRow(attempt.attempt, storage::kNoStep));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTimeline, testing::Range(0u, 300u));

class ChooseAttemptsTest : public testing::Test {
 protected:
  ChooseAttemptsTest() {
    const auto series = store_.AddSeries("j", MetricNamed("loss"), 0, "h");
    for (int64_t step = 0; step <= 10; ++step) store_.AddSamples(series, {{step, step, 0, 0}});
    for (int64_t step = 6; step <= 12; ++step) store_.AddSamples(series, {{step + 90, step, 2, 0}});
    selection_.selector.job = "j";
  }
  void Choose(v1::Attempts choice) {
    ASSERT_TRUE(ChooseAttempts(store_, choice, &selection_).ok());
  }
  void Match(storage::Matcher::Op op, const char* value) {
    ASSERT_TRUE(selection_.attempts.Add(*storage::Matcher::Create("attempt", op, value)).ok());
  }
  bool Allows(uint32_t attempt, int64_t step) {
    return selection_.attempts.AllowsRow(attempt, step);
  }

  MemoryStore store_;
  Selection selection_;
};

TEST_F(ChooseAttemptsTest, AllIsNoCondition) {
  Choose(v1::ATTEMPTS_UNSPECIFIED);
  Choose(v1::ATTEMPTS_ALL);
  EXPECT_TRUE(selection_.attempts.any());
}

TEST_F(ChooseAttemptsTest, EffectiveLeavesOutWhatWasSuperseded) {
  Choose(v1::ATTEMPTS_EFFECTIVE);
  EXPECT_FALSE(selection_.attempts.any());
  EXPECT_TRUE(Allows(0, 5));
  EXPECT_FALSE(Allows(0, 6));
  EXPECT_TRUE(Allows(0, storage::kNoStep));
  EXPECT_TRUE(Allows(2, 6));
}

TEST_F(ChooseAttemptsTest, LatestIsTheHighestNumber) {
  Choose(v1::ATTEMPTS_LATEST);
  EXPECT_EQ(selection_.attempts.only(), 2u);
  EXPECT_FALSE(Allows(0, 5));
  EXPECT_TRUE(Allows(2, 6));
}

TEST_F(ChooseAttemptsTest, MatchersHoldBesides) {
  Match(storage::Matcher::Op::kEqual, "0");
  Choose(v1::ATTEMPTS_EFFECTIVE);
  EXPECT_TRUE(Allows(0, 5));
  EXPECT_FALSE(Allows(0, 6));
  EXPECT_FALSE(Allows(2, 6));
  Choose(v1::ATTEMPTS_LATEST);
  EXPECT_FALSE(Allows(0, 5)) << "not the latest";
  EXPECT_FALSE(Allows(2, 6)) << "not 0";
}

TEST_F(ChooseAttemptsTest, OfAJobWithoutAttemptsTheLatestIsNone) {
  store_.AddSeries("empty", MetricNamed("loss"), 0, "h");
  selection_.selector.job = "empty";
  Choose(v1::ATTEMPTS_LATEST);
  EXPECT_FALSE(Allows(0, 5));
  EXPECT_FALSE(selection_.attempts.any());
}

TEST_F(ChooseAttemptsTest, RefusesWhatIsNoChoice) {
  const absl::Status status = ChooseAttempts(store_, static_cast<v1::Attempts>(9), &selection_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("attempts"));
}

TEST_F(ChooseAttemptsTest, KeepsOfABlockWhatIsEffective) {
  Choose(v1::ATTEMPTS_EFFECTIVE);
  storage::Chunk chunk;
  *chunk.block() = {
      {1, 2, 3, 4, 5}, {4, 7, storage::kNoStep, 7, 9}, {0, 0, 0, 2, 0}, {10, 20, 30, 40, 50}};
  chunk.ShowBlock();
  EXPECT_TRUE(selection_.attempts.Filter(&chunk));
  const storage::SampleBlock& block = *chunk.block();
  EXPECT_EQ(chunk.samples().size(), block.size());
  EXPECT_THAT(block.times, ElementsAre(1, 3, 4));
  EXPECT_THAT(block.steps, ElementsAre(4, storage::kNoStep, 7));
  EXPECT_THAT(block.attempts, ElementsAre(0, 0, 2));
  EXPECT_THAT(block.values, ElementsAre(10, 30, 40));
}

}  // namespace
}  // namespace tacho::server::query
