// What the index finds, refuses and remembers, seen through the store.
#include "storage/index/series_index.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class SeriesIndexTest : public StoreFixture {};

TEST_F(SeriesIndexTest, TheSameDefinitionIsTheSameLayoutAndSeriesAfterReopening) {
  const LayoutDefinition definition = Definition("job", {"loss", "lr"});
  const LayoutPtr before = Register(definition);
  EXPECT_EQ(Register(definition)->id, before->id);
  Reopen();
  const LayoutPtr after = Register(definition);
  EXPECT_EQ(after->id, before->id);
  EXPECT_EQ(after->series[1]->id, before->series[1]->id);
  EXPECT_EQ(store_->Stats().series, 2u);
}

// One that defines very many series must not keep others waiting until all of them are there.
TEST_F(SeriesIndexTest, OthersRegisterBetweenTheSlicesOfALargeLayout) {
  std::vector<std::string> metrics;
  for (int i = 0; i < 5000; ++i) metrics.push_back("metric_" + std::to_string(i));
  const LayoutDefinition large = Definition("job", metrics);
  std::vector<LayoutPtr> others;
  const auto between = [&] {
    const auto slice = std::to_string(others.size());
    // The last series of the large one are found by it when it comes to them.
    others.push_back(Register(
        Definition("job", {"metric_" + std::to_string(4990 + others.size()), "own_" + slice})));
    Register(Definition("other-" + slice, {"loss"}));
  };
  const auto registered = store_->RegisterLayout(large, between);
  ASSERT_TRUE(registered.ok()) << registered.status();
  ASSERT_THAT(others, SizeIs(4));
  ASSERT_THAT(registered->layout->series, SizeIs(5000));
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(registered->layout->series[4990 + i], others[i]->series[0]);
  }
  EXPECT_EQ(store_->Stats().series, 5000u + 4 + 4);
  std::vector<SeriesId> ids;
  for (const Series* series : registered->layout->series) ids.push_back(series->id);
  const LayoutId layout = registered->layout->id;
  Reopen();
  const LayoutPtr after = Register(large);
  EXPECT_EQ(after->id, layout);
  for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(after->series[i]->id, ids[i]);
  EXPECT_EQ(store_->Stats().series, 5000u + 4 + 4);
}

TEST_F(SeriesIndexTest, AnotherAttemptIsAnotherLayoutOfTheSameSeries) {
  const LayoutPtr first = Register(Definition("job", {"loss"}, 0, 0));
  const LayoutPtr second = Register(Definition("job", {"loss"}, 0, 1));
  EXPECT_NE(first->id, second->id);
  EXPECT_EQ(first->series[0]->id, second->series[0]->id);
}

TEST_F(SeriesIndexTest, MatchersAndMetricsSelect) {
  for (uint32_t task = 0; task < 12; ++task) Register(Definition("job", {"loss", "lr"}, task));
  const auto count = [&](std::vector<std::string> metrics, std::vector<Matcher> matchers) {
    return store_->FindSeries({"job", std::move(metrics), std::move(matchers)}, 100)->size();
  };
  EXPECT_EQ(count({}, {}), 24u);
  EXPECT_EQ(count({"loss"}, {}), 12u);
  EXPECT_EQ(count({"loss", "loss"}, {}), 12u) << "named twice, found once";
  EXPECT_EQ(count({"loss"}, {*Matcher::Create("task", Matcher::Op::kMatches, "1.*")}), 3u);
  EXPECT_EQ(count({"loss"}, {*Matcher::Create("host", Matcher::Op::kEqual, "host-3")}), 1u);
  EXPECT_EQ(count({"nothing"}, {}), 0u);
  const auto sorted = store_->FindSeries({"job", {"loss"}, {}}, 100);
  EXPECT_EQ((*sorted)[2]->source->task, 2u) << "by number, not by text";
  EXPECT_EQ(store_->FindSeries({.job = "job"}, 23).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(*store_->FindSeries({.job = "job"}, 24), SizeIs(24));
}

TEST_F(SeriesIndexTest, LimitsRefuseNewSeriesOnlyAndSayWhich) {
  LimitPolicy::Options limits;
  limits.totals.series = 4;
  limits.series.series_per_job = 3;
  options_.limits = *LimitPolicy::Create(limits);
  Reopen();
  Register(Definition("job", {"a", "b"}));
  const auto over = store_->RegisterLayout(Definition("job", {"b", "c", "d", "e"}));
  ASSERT_TRUE(over.ok());
  EXPECT_THAT(over->columns, ElementsAre(0, 1)) << "b exists, c is the job's third";
  ASSERT_THAT(over->breaches, SizeIs(2));
  EXPECT_EQ(over->breaches[0].limit, Limit::kJobSeries);
  EXPECT_THAT(over->layout->series, SizeIs(2));
  const auto total = store_->RegisterLayout(Definition("other", {"x", "y"}));
  ASSERT_TRUE(total.ok());
  EXPECT_THAT(total->columns, ElementsAre(0));
  EXPECT_EQ(total->breaches[0].limit, Limit::kSeries);
  const auto nothing = store_->RegisterLayout(Definition("third", {"x"}));
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(nothing->layout, nullptr);
}

TEST_F(SeriesIndexTest, AnEmptyLayoutAndASeriesTwiceAreRefused) {
  EXPECT_EQ(store_->RegisterLayout(Definition("job", {})).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto twice = store_->RegisterLayout(Definition("job", {"new", "new"}));
  EXPECT_EQ(twice.status().code(), absl::StatusCode::kInvalidArgument);
  // What the refused definition brought into the index is on disk too.
  const LayoutPtr layout = Register(Definition("job", {"new"}));
  ASSERT_TRUE(Append(layout, {1}, {1}, {1}).ok());
  Reopen();
  EXPECT_THAT(ReadAll(Find("job", "new")).values, ElementsAre(1));
}

TEST_F(SeriesIndexTest, TheFirstDefinitionOfAMetricStays) {
  Register(Definition("job", {"loss"}));
  LayoutDefinition other = Definition("job", {"loss"}, 1);
  other.series[0].metric.unit = "nats";
  Register(other);
  EXPECT_EQ(store_->FindJob("job")->metrics[0].unit, "1");
}

}  // namespace
}  // namespace tacho::storage
