// Steps as a series, made of what stored series have.
#include "server/promread/step_series.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/promread/explore_answer.h"
#include "server/promread/read_answer.h"
#include "tests/server/memory_store.h"

namespace tacho::server::promread {
namespace {

using storage::kNoStep;
using storage::Matcher;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kDay = int64_t{86'400'000} * kMs;

Matcher Name(Matcher::Op op, const char* value) { return *Matcher::Create("__name__", op, value); }
Matcher Equal(const char* label, const char* value) {
  return *Matcher::Create(label, Matcher::Op::kEqual, value);
}

TEST(AsksForStepsTest, OnlyASelectorThatNamesThemDoes) {
  using Op = Matcher::Op;
  EXPECT_TRUE(AsksForSteps({Name(Op::kEqual, "tacho_step")}));
  EXPECT_TRUE(AsksForSteps({Name(Op::kMatches, "loss|tacho_step")}));
  EXPECT_TRUE(AsksForSteps({Name(Op::kMatches, "tacho_.*"), Name(Op::kNotEqual, "loss")}));
  EXPECT_FALSE(AsksForSteps({}));
  EXPECT_FALSE(AsksForSteps({Equal("job", "x")}));
  EXPECT_FALSE(AsksForSteps({Name(Op::kMatches, ".+")}));
  EXPECT_FALSE(AsksForSteps({Name(Op::kNotEqual, "tacho_job")}));
  EXPECT_FALSE(AsksForSteps({Name(Op::kMatches, "tacho_.*"), Name(Op::kNotEqual, "tacho_step")}));
}

class StepSeriesTest : public testing::Test {
 protected:
  using Points = std::vector<std::pair<int64_t, int64_t>>;  // Time in ns, step.

  SelectionWorld World() { return {*store_.get(), *rights_, control_, 100}; }

  // (labels, points) of each series of steps that a query selects.
  std::vector<std::pair<std::string, Points>> Steps(std::vector<Matcher> more, int64_t begin_ms = 0,
                                                    int64_t end_ms = INT64_MAX) {
    std::vector<Matcher> matchers = {Name(Matcher::Op::kEqual, "tacho_step")};
    for (Matcher& one : more) matchers.push_back(std::move(one));
    const ReadQuery query = {begin_ms, end_ms, matchers};
    std::vector<std::pair<std::string, Points>> found;
    const auto selected = SelectSeries(World(), query);
    EXPECT_TRUE(selected.ok()) << selected.status();
    for (const SelectedSeries& one : *selected) {
      std::string labels;
      for (const auto& [name, value] : one.labels) labels += name + "=" + value + " ";
      Points points;
      EXPECT_TRUE(
          VisitSteps(World(), one, TimeSpanOf(query), 1000, [&](int64_t time_ns, int64_t step) {
            points.emplace_back(time_ns, step);
            return absl::OkStatus();
          }).ok());
      found.emplace_back(labels, points);
    }
    return found;
  }

  MemoryStore store_;
  security::RightsPtr rights_ = security::Rights::Everything();
  query::QueryControl control_;
};

TEST_F(StepSeriesTest, HasEachRowOfTheTaskOnceInWhicheverSeriesItIs) {
  store_.AddSamples(store_.AddSeries("x", MetricNamed("eval"), 3, "h1"),
                    {{10 * kMs, 100, 0, 1}, {20 * kMs, 200, 0, 2}});
  store_.AddSamples(store_.AddSeries("x", MetricNamed("loss"), 3, "h1"),
                    {{5 * kMs, 50, 0, 1},
                     {10 * kMs, 100, 0, 2},
                     {15 * kMs, 150, 0, 3},
                     {30 * kMs, kNoStep, 0, 4}});
  EXPECT_THAT(
      Steps({}),
      ElementsAre(Pair("__name__=tacho_step attempt=0 host=h1 job=x task=3 ",
                       Points{{5 * kMs, 50}, {10 * kMs, 100}, {15 * kMs, 150}, {20 * kMs, 200}})));
  EXPECT_THAT(Steps({}, 6, 15)[0].second, ElementsAre(Pair(10 * kMs, 100), Pair(15 * kMs, 150)));
}

TEST_F(StepSeriesTest, EveryAttemptAndTaskHasItsOwn) {
  for (const uint32_t task : {0u, 1u}) {
    store_.AddSamples(store_.AddSeries("x", MetricNamed("loss"), task, "h"),
                      {{1 * kMs, 7 + task, 0, 1}, {9 * kMs, 3 + task, 1, 1}});
  }
  const auto all = Steps({});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_THAT(all[1], Pair("__name__=tacho_step attempt=0 host=h job=x task=1 ", Points{{kMs, 8}}));
  EXPECT_THAT(all[2],
              Pair("__name__=tacho_step attempt=1 host=h job=x task=0 ", Points{{9 * kMs, 3}}));
  EXPECT_EQ(Steps({Equal("task", "1")}).size(), 2u);
  EXPECT_EQ(Steps({Equal("task", "1"), Equal("attempt", "0")}).size(), 1u);
  EXPECT_THAT(Steps({Equal("chip", "0")}), IsEmpty());
  EXPECT_THAT(Steps({Equal("job", "y")}), IsEmpty());
}

TEST_F(StepSeriesTest, DaysFollowEachOther) {
  std::vector<TestSample> samples;
  Points expected;
  for (int i = 0; i < 40; ++i) {
    samples.push_back({i * kDay / 4 + 1, i, 0, 1});
    expected.emplace_back(i * kDay / 4 + 1, i);
  }
  store_.AddSamples(store_.AddSeries("x", MetricNamed("loss"), 0, "h"), samples);
  EXPECT_EQ(Steps({})[0].second, expected);
}

TEST_F(StepSeriesTest, ATaskWithoutStepsHasNone) {
  store_.AddSamples(store_.AddSeries("x", MetricNamed("power"), {}, "h"), {{kMs, kNoStep, 0, 1}});
  EXPECT_THAT(Steps({}), IsEmpty());
  EXPECT_FALSE(HasSteps(*store_.get(), "x"));
  EXPECT_FALSE(HasSteps(*store_.get(), "none"));
}

TEST_F(StepSeriesTest, AStoredSeriesOfItsLabelsComesBeforeIt) {
  store_.AddSamples(store_.AddSeries("x", MetricNamed("tacho_step"), 0, "h"), {{kMs, 5, 0, 0.5}});
  const ReadQuery query = {0, 100, {Name(Matcher::Op::kEqual, "tacho_step")}};
  const auto selected = SelectSeries(World(), query);
  ASSERT_TRUE(selected.ok());
  ASSERT_EQ(selected->size(), 1u);
  EXPECT_NE(selected->front().series, nullptr);
}

TEST_F(StepSeriesTest, LimitsSayWhatToAskFor) {
  store_.AddSamples(store_.AddSeries("x", MetricNamed("loss"), 0, "h"),
                    {{1 * kMs, 1, 0, 1}, {2 * kMs, 2, 0, 1}});
  const ReadQuery query = {0, 100, {Name(Matcher::Op::kEqual, "tacho_step")}};
  const auto selected = SelectSeries(World(), query);
  const auto visit = [](int64_t, int64_t) { return absl::OkStatus(); };
  EXPECT_TRUE(VisitSteps(World(), selected->front(), TimeSpanOf(query), 2, visit).ok());
  const absl::Status status = VisitSteps(World(), selected->front(), TimeSpanOf(query), 1, visit);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("query.max_samples = 1"));
}

TEST_F(StepSeriesTest, NamesAreListed) {
  store_.AddSamples(store_.AddSeries("x", MetricNamed("loss"), 0, "h"), {{kMs, 1, 0, 1}});
  ListQuestion question;
  question.request.everything = {0, 100, {}};
  const auto data = [&](ListKind kind, const std::string& label = "") {
    question.kind = kind;
    question.label = label;
    const auto found = FindEntries(World(), question);
    return found.ok() ? AnswerOf(question, *found).data : found.status().ToString();
  };
  EXPECT_EQ(data(ListKind::kLabelValues, "__name__"), "[\"loss\",\"tacho_step\"]");
  EXPECT_THAT(data(ListKind::kMetadata), HasSubstr("\"tacho_step\":[{\"type\":\"gauge\""));
  question.request.selectors = {{0, 100, {Name(Matcher::Op::kEqual, "tacho_step")}}};
  EXPECT_THAT(data(ListKind::kSeries), HasSubstr("\"__name__\":\"tacho_step\""));
}

}  // namespace
}  // namespace tacho::server::promread
