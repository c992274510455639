// Which limit holds for which series, what a series meets that breaks one, and that budgets are
// what the index holds: after a restart, after an expiry, and however much was refused.
#include "storage/index/series_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class SeriesLimitsTest : public StoreFixture {
 protected:
  void SetLimits() { store_->SetLimits(*LimitPolicy::Create(limits_)); }

  // One column for each set of labels, of the metric "loss".
  static LayoutDefinition Labelled(const std::vector<Labels>& label_sets, std::string job = "job") {
    LayoutDefinition definition = Definition(std::move(job), {});
    for (const Labels& labels : label_sets) {
      definition.series.push_back({{"loss", MetricType::kGauge, "1", "help"}, labels});
    }
    return definition;
  }
  static std::vector<Labels> Values(const std::string& name, int first, int end) {
    std::vector<Labels> sets;
    for (int i = first; i < end; ++i) sets.push_back({{name, absl::StrCat("v", i)}});
    return sets;
  }
  Registration Offer(const LayoutDefinition& definition) {
    auto registration = store_->RegisterLayout(definition);
    EXPECT_TRUE(registration.ok()) << registration.status();
    return registration.ok() ? *std::move(registration) : Registration();
  }
  std::vector<std::string> LabelsOf(const Registration& registration) {
    std::vector<std::string> out;
    for (const Series* series : registration.layout->series) {
      std::string text;
      for (const auto& [name, value] : *series->labels)
        absl::StrAppend(&text, name, "=", value, ",");
      out.push_back(text);
    }
    return out;
  }

  LimitPolicy::Options limits_;
};

TEST_F(SeriesLimitsTest, EachLimitRefusesOnlyTheColumnThatBreaksIt) {
  limits_.series.series_per_metric = 3;
  limits_.series.values_per_label = 2;
  limits_.series.labels_per_series = 2;
  limits_.series.label_name_bytes = 6;
  limits_.series.label_value_bytes = 5;
  limits_.series.metric_name_bytes = 6;
  limits_.series.allowed_labels = {"chip", "longer_name", "device", "axis"};
  SetLimits();
  LayoutDefinition definition = Labelled({
      {{"chip", "0"}},
      {{"chip", "1"}},
      {{"chip", "2"}},                                  // A third value.
      {{"axis", "x"}, {"chip", "0"}, {"device", "d"}},  // A third label.
      {{"longer_name", "x"}},
      {{"chip", "123456"}},
      {{"host_name", "x"}},  // Not allowed, and too long: the first in order counts.
      {{"foo", "x"}},
      {},
      {{"device", "d"}},  // The metric's fourth series.
  });
  definition.series.push_back({{"too_long", MetricType::kGauge, "", ""}, {}});
  const auto offered = Offer(definition);
  EXPECT_THAT(offered.columns, ElementsAre(0, 1, 8));
  std::vector<std::pair<uint32_t, Limit>> found;
  for (const Breach& breach : offered.breaches) {
    EXPECT_EQ(breach.action, LimitAction::kReject);
    found.emplace_back(breach.column, breach.limit);
  }
  EXPECT_THAT(found,
              UnorderedElementsAre(
                  std::pair(2u, Limit::kLabelValues), std::pair(3u, Limit::kLabels),
                  std::pair(4u, Limit::kLabelNameBytes), std::pair(5u, Limit::kLabelValueBytes),
                  std::pair(6u, Limit::kLabelNameBytes), std::pair(7u, Limit::kAllowedLabels),
                  std::pair(9u, Limit::kMetricSeries), std::pair(10u, Limit::kMetricNameBytes)));
}

TEST_F(SeriesLimitsTest, ExistingSeriesPassWhateverTheLimitsSayNow) {
  const auto sets = Values("chip", 0, 4);
  Offer(Labelled(sets));
  limits_.series = {.series_per_job = 1,
                    .series_per_metric = 1,
                    .values_per_label = 1,
                    .labels_per_series = 0,
                    .metric_name_bytes = 1,
                    .label_name_bytes = 1,
                    .label_value_bytes = 1,
                    .allowed_labels = {"other"}};
  limits_.totals = {.jobs = 0, .series = 0, .stored_series = 0, .text_bytes = 0};
  SetLimits();
  EXPECT_THAT(Offer(Labelled(sets)).breaches, IsEmpty());
  Reopen();
  SetLimits();
  EXPECT_THAT(Offer(Labelled(sets)).columns, SizeIs(4));
}

TEST_F(SeriesLimitsTest, RefusedSeriesLeaveNothingBehind) {
  limits_.series.values_per_label = 2;
  limits_.totals.jobs = 1;
  SetLimits();
  Offer(Labelled(Values("id", 0, 2)));
  const StoreStats before = store_->Stats();
  for (int round = 0; round < 50; ++round) {
    const int first = 2 + round * 1000;
    const auto offered = Offer(Labelled(Values("id", first, first + 1000)));
    EXPECT_EQ(offered.layout, nullptr);
    EXPECT_THAT(offered.breaches, SizeIs(1000));
    EXPECT_THAT(Offer(Labelled({{}}, absl::StrCat("job-", round))).breaches, SizeIs(1));
  }
  const StoreStats after = store_->Stats();
  EXPECT_EQ(after.series, before.series);
  EXPECT_EQ(after.jobs, before.jobs);
  EXPECT_EQ(after.layouts, before.layouts);
  EXPECT_EQ(after.text_bytes_in_memory, before.text_bytes_in_memory);
  EXPECT_EQ(after.log_bytes_written, before.log_bytes_written);
}

TEST_F(SeriesLimitsTest, BudgetsAreTheSameAfterReopening) {
  limits_.series.values_per_label = 3;
  limits_.series.series_per_metric = 4;
  SetLimits();
  Offer(Labelled(Values("chip", 0, 3)));
  Reopen();
  SetLimits();
  const auto offered = Offer(Labelled({{{"chip", "v3"}}, {{"axis", "x"}}, {{"axis", "y"}}}));
  EXPECT_THAT(offered.columns, ElementsAre(1));
  EXPECT_EQ(offered.breaches[0].limit, Limit::kLabelValues);
  EXPECT_EQ(offered.breaches[1].limit, Limit::kMetricSeries);
}

TEST_F(SeriesLimitsTest, BudgetsOfAJobThatLeftMemoryAreStillItsOwn) {
  limits_.series.values_per_label = 3;
  limits_.totals.series = 3;
  options_.limits = *LimitPolicy::Create(limits_);
  options_.job_idle = absl::Hours(1);
  Reopen();
  ASSERT_TRUE(
      Append(Offer(Labelled(Values("chip", 0, 3), "old")).layout, {1}, {1}, {1, 2, 3}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  EXPECT_EQ(Offer(Labelled({{}}, "new")).breaches[0].limit, Limit::kSeries);
  now_ += absl::Hours(2);
  ASSERT_TRUE(store_->UnloadIdleJobs().ok());
  ASSERT_EQ(store_->Stats().series_in_memory, 0u);
  EXPECT_EQ(store_->Stats().text_bytes_in_memory, 0u);
  EXPECT_EQ(Offer(Labelled({{{"chip", "v9"}}}, "old")).breaches[0].limit, Limit::kLabelValues);
}

// Each order of the same series is a layout of its own, in memory and on disk.
TEST_F(SeriesLimitsTest, SeriesThatExistArePutTogetherInSoManyWaysAndNoMore) {
  limits_.totals.layout_columns_per_job = 7;
  SetLimits();
  auto sets = Values("chip", 0, 3);
  const auto first = Offer(Labelled(sets));
  std::reverse(sets.begin(), sets.end());
  const auto second = Offer(Labelled(sets));
  ASSERT_NE(second.layout, nullptr);
  std::swap(sets[0], sets[1]);
  const auto refused = Offer(Labelled(sets));
  EXPECT_EQ(refused.layout, nullptr);
  EXPECT_THAT(refused.columns, IsEmpty());
  ASSERT_THAT(refused.breaches, SizeIs(3));
  EXPECT_EQ(refused.breaches[2].column, 2u);
  EXPECT_EQ(refused.breaches[2].limit, Limit::kLayoutColumns);
  EXPECT_EQ(refused.breaches[2].action, LimitAction::kReject);
  EXPECT_EQ(store_->Stats().layouts, 2u);
  EXPECT_EQ(Offer(Labelled(Values("chip", 0, 3))).layout->id, first.layout->id)
      << "one that exists";
  EXPECT_THAT(Offer(Labelled(Values("axis", 0, 2))).breaches, SizeIs(2)) << "of new series too";
  EXPECT_EQ(store_->Stats().series, 3u);
  EXPECT_THAT(Offer(Labelled(Values("axis", 0, 1))).breaches, IsEmpty()) << "there is room for one";
  EXPECT_THAT(Offer(Labelled(sets, "other")).breaches, IsEmpty());
  Reopen();
  SetLimits();
  EXPECT_EQ(Offer(Labelled(sets)).layout, nullptr) << "and after a restart";
  limits_.totals.action = LimitAction::kObserve;
  SetLimits();
  const auto observed = Offer(Labelled(sets));
  EXPECT_NE(observed.layout, nullptr);
  EXPECT_EQ(observed.breaches[0].action, LimitAction::kObserve);
}

TEST_F(SeriesLimitsTest, AnExpiredJobGivesItsBudgetsBack) {
  limits_.totals = {.jobs = 1, .stored_series = 2};
  options_.limits = *LimitPolicy::Create(limits_);
  options_.retention = absl::Hours(24);
  Reopen();
  const int64_t now_ns = absl::ToUnixNanos(now_);
  ASSERT_TRUE(Append(Offer(Labelled(Values("chip", 0, 2))).layout, {now_ns}, {1}, {1, 2}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  EXPECT_EQ(Offer(Labelled(Values("chip", 2, 3))).breaches[0].limit, Limit::kStoredSeries);
  EXPECT_EQ(Offer(Labelled({{}}, "new")).breaches[0].limit, Limit::kJobs);
  EXPECT_TRUE(store_->HasRoomForJob("job"));
  EXPECT_FALSE(store_->HasRoomForJob("new"));
  now_ += absl::Hours(72);
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_THAT(Offer(Labelled({{}}, "new")).breaches, IsEmpty());
}

TEST_F(SeriesLimitsTest, TheFirstRuleThatMatchesJobAndMetricCounts) {
  limits_.rules = {{.job = "vision.*", .metric = "debug/.*", .limits = {.series_per_metric = 1}},
                   {.job = "", .metric = "debug/.*", .limits = {.series_per_metric = 2}},
                   {.job = "vision.*", .metric = "", .limits = {.series_per_metric = 3}}};
  limits_.series.series_per_metric = 4;
  SetLimits();
  const auto taken = [&](const std::string& job, const std::string& metric) {
    LayoutDefinition definition = Labelled(Values("i", 0, 9), job);
    for (auto& series : definition.series) series.metric.name = metric;
    return Offer(definition).columns.size();
  };
  EXPECT_EQ(taken("vision-1", "debug/x"), 1u);
  EXPECT_EQ(taken("language", "debug/x"), 2u);
  EXPECT_EQ(taken("vision-1", "loss"), 3u);
  EXPECT_EQ(taken("language", "loss"), 4u);
  EXPECT_EQ(taken("my-vision", "loss"), 4u) << "the whole name must match";
}

TEST_F(SeriesLimitsTest, ABrokenExpressionIsNamed) {
  limits_.rules = {{.job = "a", .metric = "(", .limits = {}}};
  const auto policy = LimitPolicy::Create(limits_);
  EXPECT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(policy.status().message()), testing::HasSubstr("rules[0].metric"));
}

TEST_F(SeriesLimitsTest, ObservingCountsAndTakes) {
  limits_.series = {.series_per_metric = 1, .action = LimitAction::kObserve};
  limits_.totals.series = 3;
  SetLimits();
  const auto offered = Offer(Labelled(Values("chip", 0, 4)));
  EXPECT_THAT(offered.columns, ElementsAre(0, 1, 2));
  ASSERT_THAT(offered.breaches, SizeIs(3));
  EXPECT_EQ(offered.breaches[0].column, 1u);
  EXPECT_EQ(offered.breaches[0].limit, Limit::kMetricSeries);
  EXPECT_EQ(offered.breaches[0].action, LimitAction::kObserve);
  EXPECT_EQ(offered.breaches[2].limit, Limit::kSeries) << "what is only observed hides nothing";
  EXPECT_EQ(offered.breaches[2].action, LimitAction::kReject);
  limits_.totals = {.jobs = 0, .series = 0, .action = LimitAction::kObserve};
  SetLimits();
  const auto job = Offer(Labelled({{}}, "another"));
  EXPECT_THAT(job.columns, SizeIs(1));
  EXPECT_EQ(std::count_if(job.breaches.begin(), job.breaches.end(),
                          [](const Breach& b) { return b.limit == Limit::kJobs; }),
            1);
}

TEST_F(SeriesLimitsTest, FoldingDropsTheLabelAtFaultAndKeepsTheOthers) {
  limits_.series = {.values_per_label = 2, .action = LimitAction::kFold};
  SetLimits();
  const auto offered = Offer(Labelled({{{"chip", "0"}, {"request", "a"}},
                                       {{"chip", "0"}, {"request", "b"}},
                                       {{"chip", "0"}, {"request", "c"}},
                                       {{"chip", "1"}, {"request", "d"}},
                                       {{"chip", "1"}, {"request", "e"}}}));
  EXPECT_THAT(offered.columns, ElementsAre(0, 1));
  EXPECT_THAT(LabelsOf(offered), ElementsAre("chip=0,request=a,", "chip=0,request=b,",
                                             "chip=0,overflow=true,", "chip=1,overflow=true,"));
  EXPECT_THAT(offered.folded, ElementsAre(ElementsAre(2), ElementsAre(3, 4)));
  ASSERT_THAT(offered.breaches, SizeIs(3));
  EXPECT_EQ(offered.breaches[0].action, LimitAction::kFold);
  EXPECT_EQ(offered.breaches[0].label, 1);
  // Once more, and after a restart: the same series and the same layout.
  const LayoutId id = offered.layout->id;
  Reopen();
  SetLimits();
  const auto again = Offer(Labelled({{{"chip", "0"}, {"request", "a"}},
                                     {{"chip", "0"}, {"request", "b"}},
                                     {{"chip", "0"}, {"request", "x"}},
                                     {{"chip", "1"}, {"request", "y"}}}));
  EXPECT_EQ(again.layout->id, id);
  EXPECT_EQ(store_->Stats().series, 4u);
}

TEST_F(SeriesLimitsTest, FoldingASeriesTooManyDropsAllLabels) {
  limits_.series = {.series_per_job = 3, .series_per_metric = 2, .action = LimitAction::kFold};
  SetLimits();
  LayoutDefinition definition = Labelled(Values("chip", 0, 4));
  definition.series.push_back({{"lr", MetricType::kGauge, "", ""}, {{"group", "a"}}});
  definition.series.push_back({{"lr", MetricType::kGauge, "", ""}, {{"group", "b"}}});
  const auto offered = Offer(definition);
  EXPECT_THAT(offered.columns, ElementsAre(0, 1, 4));
  EXPECT_THAT(offered.folded, ElementsAre(ElementsAre(2, 3), ElementsAre(5)));
  EXPECT_THAT(LabelsOf(offered),
              ElementsAre("chip=v0,", "chip=v1,", "group=a,", "overflow=true,", "overflow=true,"));
}

TEST_F(SeriesLimitsTest, FoldingHasABudgetAndKeepsHalfOfItForWhatStandsForAll) {
  limits_.series = {
      .values_per_label = 6, .overflow_series_per_job = 4, .action = LimitAction::kFold};
  SetLimits();
  std::vector<Labels> sets;
  for (int i = 0; i < 6; ++i) sets.push_back({{"chip", absl::StrCat(i)}, {"id", absl::StrCat(i)}});
  Offer(Labelled(sets));
  for (Labels& set : sets) set[1].second += "x";
  const auto offered = Offer(Labelled(sets));
  EXPECT_THAT(LabelsOf(offered),
              ElementsAre("chip=0,overflow=true,", "chip=1,overflow=true,", "overflow=true,"));
  EXPECT_THAT(offered.folded, ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2, 3, 4, 5)));
  LayoutDefinition more = Labelled({});
  for (int i = 0; i < 3; ++i) {
    more.series.push_back({{absl::StrCat("m", i), MetricType::kGauge, "", ""}, {{"id", "z"}}});
  }
  const auto last = Offer(more);
  EXPECT_THAT(last.folded, SizeIs(1)) << "the budget's fourth";
  EXPECT_EQ(last.breaches[2].action, LimitAction::kReject);
}

TEST_F(SeriesLimitsTest, PastATotalOnlyExistingOverflowSeriesTakeMore) {
  limits_.series = {.series_per_metric = 1, .action = LimitAction::kFold};
  limits_.totals.action = LimitAction::kFold;
  SetLimits();
  Offer(Labelled(Values("chip", 0, 2)));
  limits_.totals.series = 2;
  SetLimits();
  const auto offered = Offer(Labelled(Values("chip", 2, 3)));
  EXPECT_THAT(offered.folded, ElementsAre(ElementsAre(0)));
  LayoutDefinition other = Labelled(Values("chip", 0, 1));
  other.series[0].metric.name = "other";
  EXPECT_EQ(Offer(other).breaches[0].action, LimitAction::kReject);
}

TEST_F(SeriesLimitsTest, BucketsOfAHistogramAreNeverAddedUp) {
  limits_.series = {.values_per_label = 1, .action = LimitAction::kFold};
  SetLimits();
  LayoutDefinition definition = Labelled(
      {{{"id", "a"}, {"le", "1"}}, {{"id", "b"}, {"le", "1"}}, {{"id", "a"}, {"le", "2"}}});
  for (auto& series : definition.series) series.metric.type = MetricType::kHistogram;
  const auto offered = Offer(definition);
  EXPECT_THAT(LabelsOf(offered), ElementsAre("id=a,le=1,", "le=1,overflow=true,"));
  EXPECT_EQ(offered.breaches[1].action, LimitAction::kReject) << "its bucket is what is too many";
}

TEST_F(SeriesLimitsTest, NobodyElseMayUseTheLabelOfOverflowSeries) {
  limits_.series = {.series_per_metric = 1, .action = LimitAction::kFold};
  SetLimits();
  Offer(Labelled(Values("chip", 0, 2)));
  const auto offered = Offer(Labelled({{{"chip", "v5"}}, {{"overflow", "true"}}}));
  EXPECT_THAT(offered.folded, ElementsAre(ElementsAre(0)));
  EXPECT_THAT(offered.columns, IsEmpty());
  EXPECT_EQ(offered.breaches[1].action, LimitAction::kReject);
}

TEST_F(SeriesLimitsTest, CardinalityNamesTheLargest) {
  limits_.series.series_per_metric = 7;
  limits_.rules = {{.job = "", .metric = "lr", .limits = {.series_per_metric = 5}}};
  SetLimits();
  LayoutDefinition definition = Labelled(Values("chip", 0, 3));
  definition.series.push_back({{"lr", MetricType::kGauge, "", ""}, {{"group", "a"}}});
  Offer(definition);
  Offer(Labelled({{}}, "small"));
  const auto all = store_->Cardinality("", 10);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->totals[0].used, 5u);
  ASSERT_THAT(all->jobs, SizeIs(2));
  EXPECT_EQ(all->jobs[0].name, "job");
  ASSERT_THAT(all->metrics, SizeIs(3));
  EXPECT_EQ(all->metrics[0].metric, "loss");
  EXPECT_EQ(all->metrics[0].series, 3u);
  EXPECT_EQ(all->metrics[0].bound, 7u);
  EXPECT_EQ(all->labels[0].name, "chip");
  EXPECT_EQ(all->labels[0].values, 3u);
  const auto top = store_->Cardinality("job", 1);
  ASSERT_THAT(top->metrics, SizeIs(1));
  EXPECT_EQ(store_->Cardinality("job", 2)->metrics[1].bound, 5u);
  EXPECT_EQ(store_->Cardinality("none", 1).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tacho::storage
