#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "server/query/range/pieces.h"
#include "server/query/range/range_query.h"
#include "server/query/read/message_packing.h"
#include "tests/server/memory_store.h"

namespace tacho::server::query {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class QueryRangeTest : public testing::Test {
 protected:
  explicit QueryRangeTest(uint32_t frame_rows = 3) : store_(frame_rows) {
    request_.mutable_selector()->set_job("j");
  }

  storage::SeriesPtr Task(uint32_t task, std::vector<TestSample> samples,
                          const std::string& metric = "loss") {
    auto series = store_.AddSeries("j", MetricNamed(metric, storage::MetricType::kGauge, "1"), task,
                                   "h" + std::to_string(task), {{"chip", "c"}});
    store_.AddSamples(series, std::move(samples));
    return series;
  }

  absl::StatusOr<std::vector<v1::RangeResponse>> Run() { return Run(control_); }
  absl::StatusOr<std::vector<v1::RangeResponse>> Run(const QueryControl& control) {
    auto query = RangeQuery::Create(store_, request_, limits_, control);
    if (!query.ok()) return query.status();
    std::vector<v1::RangeResponse> pieces;
    for (;;) {
      v1::RangeResponse piece;
      absl::StatusOr<bool> more = (*query)->Next(&piece);
      if (!more.ok()) return more.status();
      if (!*more) return pieces;
      pieces.push_back(std::move(piece));
    }
  }
  std::vector<v1::RangeResponse> MustRun() {
    auto pieces = Run();
    EXPECT_TRUE(pieces.ok()) << pieces.status();
    return pieces.ok() ? *std::move(pieces) : std::vector<v1::RangeResponse>();
  }
  absl::Status Failure() { return Run().status(); }
  void AddMatcher(const std::string& label, v1::Matcher::Op op, const std::string& value) {
    v1::Matcher* matcher = request_.mutable_selector()->add_matchers();
    matcher->set_label(label);
    matcher->set_op(op);
    matcher->set_value(value);
  }

  MemoryStore store_;
  QueryControl control_;
  RangeLimits limits_;
  v1::RangeRequest request_;
};

std::vector<double> Values(const std::vector<v1::RangeResponse>& pieces) {
  std::vector<double> values;
  for (const auto& piece : pieces) {
    values.insert(values.end(), piece.points().values().begin(), piece.points().values().end());
  }
  return values;
}

TEST_F(QueryRangeTest, ReturnsRawSamplesSeriesBySeriesInPieces) {
  Task(1, {{10, 1, 0, 0.1}, {20, 2, 0, 0.2}, {30, 3, 0, 0.3}, {40, 4, 0, 0.4}});
  Task(0, {{10, 1, 0, 1.1}});
  const auto pieces = MustRun();
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].series().task(), 0u);
  EXPECT_EQ(pieces[0].series().metric().unit(), "1");
  EXPECT_EQ(pieces[0].series().labels(0).name(), "chip");
  EXPECT_EQ(pieces[1].series_index(), 1u);
  EXPECT_EQ(pieces[1].series().task(), 1u);
  EXPECT_THAT(pieces[1].points().times_unix_ns(), ElementsAre(10, 20, 30));
  EXPECT_THAT(pieces[1].points().steps(), ElementsAre(1, 2, 3));
  EXPECT_THAT(pieces[1].points().attempts(), IsEmpty());
  EXPECT_EQ(pieces[2].series_index(), 1u);
  EXPECT_FALSE(pieces[2].has_series());
  EXPECT_THAT(pieces[2].points().values(), ElementsAre(0.4));
}

TEST_F(QueryRangeTest, KeepsEveryBitOfANan) {
  const double payload = std::bit_cast<double>(uint64_t{0xfff0000000012345});
  Task(0, {{1, storage::kNoStep, 3, payload}});
  const auto pieces = MustRun();
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(std::bit_cast<uint64_t>(pieces[0].points().values(0)), 0xfff0000000012345u);
  EXPECT_THAT(pieces[0].points().steps(), IsEmpty());
  EXPECT_THAT(pieces[0].points().attempts(), ElementsAre(3));
}

TEST_F(QueryRangeTest, LeavesOutSeriesWithoutASampleInTheRange) {
  Task(0, {});
  Task(1, {{5, 1, 0, 1}});
  Task(2, {{50, 1, 0, 2}});
  request_.mutable_time()->set_begin_unix_ns(10);
  const auto pieces = MustRun();
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].series_index(), 0u);
  EXPECT_EQ(pieces[0].series().task(), 2u);
}

class QueryRangeInHugeBlocksTest : public QueryRangeTest {
 protected:
  QueryRangeInHugeBlocksTest() : QueryRangeTest(100'000) {}
};

TEST_F(QueryRangeInHugeBlocksTest, CutsThemIntoPiecesThatFitAMessage) {
  std::vector<TestSample> samples(50'000);
  for (int i = 0; i < 50'000; ++i) samples[i] = {i, i, 1, 1};
  Task(0, samples);
  const auto pieces = MustRun();
  ASSERT_EQ(pieces.size(), 4u);
  for (const auto& piece : pieces) EXPECT_LT(piece.ByteSizeLong(), 1u << 20);
  EXPECT_EQ(Values(pieces).size(), 50'000u);
}

TEST_F(QueryRangeTest, OrdersByStepWhereAskedAndDropsRowsWithoutOne) {
  Task(0, {{10, 4, 0, 4}, {20, 5, 0, 5}, {25, storage::kNoStep, 0, 99}, {30, 4, 1, 44}});
  request_.set_axis(v1::AXIS_STEP);
  const auto pieces = MustRun();
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_THAT(pieces[0].points().steps(), ElementsAre(4, 4, 5));
  EXPECT_THAT(pieces[0].points().values(), ElementsAre(4, 44, 5));
  EXPECT_THAT(pieces[0].points().attempts(), ElementsAre(0, 1, 0));
}

TEST_F(QueryRangeTest, FiltersRowsByAttemptWithAnyOperator) {
  Task(0, {{10, 1, 0, 0}, {20, 1, 1, 1}, {30, 1, 2, 2}, {40, 1, 10, 10}});
  AddMatcher("attempt", v1::Matcher::OP_EQUAL, "1");
  EXPECT_THAT(Values(MustRun()), ElementsAre(1));
  request_.mutable_selector()->clear_matchers();
  AddMatcher("attempt", v1::Matcher::OP_NOT_EQUAL, "1");
  EXPECT_THAT(Values(MustRun()), ElementsAre(0, 2, 10));
  request_.mutable_selector()->clear_matchers();
  AddMatcher("attempt", v1::Matcher::OP_MATCHES, "1.*");
  EXPECT_THAT(Values(MustRun()), ElementsAre(1, 10));
  AddMatcher("attempt", v1::Matcher::OP_NOT_MATCHES, "10");
  EXPECT_THAT(Values(MustRun()), ElementsAre(1));
  request_.mutable_selector()->clear_matchers();
  AddMatcher("attempt", v1::Matcher::OP_EQUAL, "01");
  EXPECT_EQ(Failure().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(QueryRangeTest, ReducesEachSeriesOverItsOwnExtent) {
  std::vector<TestSample> samples;
  for (int i = 0; i < 1000; ++i) samples.push_back({i, i, 0, i == 500 ? 1e6 : 1.0});
  Task(0, samples);
  Task(1, {{5'000'000, 7, 0, 2}});
  request_.set_max_points(10);
  const auto pieces = MustRun();
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].buckets().counts_size(), 10);
  EXPECT_EQ(pieces[0].buckets().max(5), 1e6);
  EXPECT_EQ(pieces[0].buckets().first_steps(9), 900);
  EXPECT_THAT(pieces[1].buckets().avg(), ElementsAre(2));
}

TEST_F(QueryRangeTest, BucketsHaveTheValuesThatWereAskedFor) {
  Task(0, {{0, 1, 0, 4}, {50, 2, 0, std::numeric_limits<double>::infinity()}, {99, 3, 0, -1}});
  request_.set_max_points(2);
  request_.add_bucket_values(v1::BUCKET_VALUE_MAX);
  request_.add_bucket_values(v1::BUCKET_VALUE_LAST);
  const auto pieces = MustRun();
  ASSERT_EQ(pieces.size(), 1u);
  const v1::Buckets& buckets = pieces[0].buckets();
  EXPECT_THAT(buckets.max(), ElementsAre(4, -1));
  EXPECT_THAT(buckets.last(), ElementsAre(4, -1));
  EXPECT_THAT(buckets.min(), IsEmpty());
  EXPECT_THAT(buckets.first(), IsEmpty());
  EXPECT_THAT(buckets.avg(), IsEmpty());
  EXPECT_THAT(buckets.sum(), IsEmpty());
  EXPECT_THAT(buckets.counts(), ElementsAre(1, 2));
  EXPECT_THAT(buckets.non_finite(), ElementsAre(0, 1));
  EXPECT_THAT(buckets.first_times_unix_ns(), ElementsAre(0, 50));
  EXPECT_THAT(buckets.first_steps(), ElementsAre(1, 2));
}

TEST_F(QueryRangeTest, RefusesBucketValuesWithoutBucketsOrUnknown) {
  Task(0, {{0, 1, 0, 4}});
  request_.add_bucket_values(v1::BUCKET_VALUE_MAX);
  EXPECT_THAT(Failure().message(), HasSubstr("bucket_values: goes with max_points"));
  request_.set_max_points(2);
  request_.add_bucket_values(v1::BUCKET_VALUE_UNSPECIFIED);
  EXPECT_THAT(Failure().message(), HasSubstr("bucket_values: has a value that is not known"));
}

TEST(MessagePackingTest, PiecesShareMessagesInTheirOrder) {
  for (const bool packed : {false, true}) {
    SCOPED_TRACE(packed);
    std::vector<v1::RangeResponse> messages;
    const auto write = [&messages](v1::RangeResponse message) {
      messages.push_back(std::move(message));
      return absl::OkStatus();
    };
    MessagePacking<v1::RangeResponse> packing(packed, write);
    constexpr uint32_t kPieces = 1000;
    for (uint32_t i = 0; i < kPieces; ++i) {
      v1::RangeResponse piece;
      piece.set_series_index(i);
      // Now and then one that is larger than a message need be.
      piece.mutable_points()->mutable_values()->Resize(i % 100 == 99 ? 50'000 : 40, 0.5);
      ASSERT_TRUE(packing.Add(std::move(piece)).ok());
    }
    ASSERT_TRUE(packing.Flush().ok());
    ASSERT_TRUE(packing.Flush().ok()) << "nothing is left";
    uint32_t next = 0;
    for (const v1::RangeResponse& message : messages) {
      EXPECT_EQ(message.series_index(), next++);
      for (const v1::RangeResponse& more : message.more()) EXPECT_EQ(more.series_index(), next++);
      EXPECT_LT(message.ByteSizeLong(), 600'000);
    }
    EXPECT_EQ(next, kPieces);
    if (packed) {
      EXPECT_LT(messages.size(), 30);
    } else {
      EXPECT_EQ(messages.size(), kPieces);
    }
  }
}

TEST_F(QueryRangeTest, SplitsManyBucketsIntoPieces) {
  std::vector<TestSample> samples(10'000);
  for (int i = 0; i < 10'000; ++i) samples[i] = {i, storage::kNoStep, 0, 1};
  Task(0, samples);
  request_.set_max_points(100'000);
  const auto pieces = MustRun();
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].buckets().counts_size(), static_cast<int>(kBucketsPerPiece));
  EXPECT_THAT(pieces[0].buckets().first_steps(), IsEmpty());
}

TEST_F(QueryRangeTest, FoldsTasksAtEqualSteps) {
  Task(0, {{10, 1, 0, 1}, {20, 2, 0, 2}});
  Task(1, {{11, 1, 0, 3}, {21, 2, 0, 4}, {31, 3, 0, 5}});
  request_.set_axis(v1::AXIS_STEP);
  request_.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_AVG);
  const auto pieces = MustRun();
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_FALSE(pieces[0].series().has_task());
  EXPECT_THAT(pieces[0].series().labels(), IsEmpty());
  EXPECT_EQ(pieces[0].series().host(), "");
  EXPECT_EQ(pieces[0].series().job(), "j");
  EXPECT_THAT(pieces[0].points().steps(), ElementsAre(1, 2, 3));
  EXPECT_THAT(pieces[0].points().values(), ElementsAre(2, 3, 5));
  EXPECT_THAT(pieces[0].points().times_unix_ns(), ElementsAre(11, 21, 31));
}

TEST_F(QueryRangeTest, OfARepeatedStepOnlyTheNewestAttemptIsFolded) {
  Task(0, {{10, 1, 0, 100}, {20, 2, 0, 100}, {50, 1, 1, 1}, {60, 1, 1, 2}});
  Task(1, {{10, 1, 0, 3}});
  request_.set_axis(v1::AXIS_STEP);
  request_.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_SUM);
  EXPECT_THAT(Values(MustRun()), ElementsAre(5, 100));
}

TEST_F(QueryRangeTest, KeepsTheLabelsOfByApart) {
  Task(0, {{10, 1, 0, 1}, {20, 1, 1, 10}});
  Task(1, {{10, 1, 0, 2}});
  Task(10, {{10, 1, 0, 3}});
  Task(0, {{10, 1, 0, 7}}, "accuracy");
  request_.set_axis(v1::AXIS_STEP);
  request_.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_SUM);
  request_.mutable_aggregation()->add_by("task");
  request_.mutable_aggregation()->add_by("attempt");
  const auto pieces = MustRun();
  EXPECT_THAT(Values(pieces), ElementsAre(7, 1, 10, 2, 3));
  ASSERT_EQ(pieces.size(), 5u);
  EXPECT_EQ(pieces[0].series().metric().name(), "accuracy");
  EXPECT_EQ(pieces[4].series().task(), 10u) << "in the order of numbers";
  EXPECT_EQ(pieces[2].series().labels(0).name(), "attempt");
  EXPECT_EQ(pieces[2].series().labels(0).value(), "1");
  EXPECT_EQ(pieces[4].series_index(), 4u);
}

TEST_F(QueryRangeTest, FoldsAlongTimeInSharedBuckets) {
  Task(0, {{0, 1, 0, 1}, {1, 1, 0, 3}, {99, 1, 0, 5}});
  Task(1, {{2, 1, 0, 10}, {50, 1, 0, 7}});
  request_.set_max_points(2);
  request_.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_SUM);
  auto pieces = MustRun();
  ASSERT_EQ(pieces.size(), 1u);
  const v1::Buckets& buckets = pieces[0].buckets();
  EXPECT_THAT(buckets.avg(), ElementsAre(12, 12)) << "averages of the series are added";
  EXPECT_THAT(buckets.counts(), ElementsAre(3, 2));
  EXPECT_THAT(buckets.first_times_unix_ns(), ElementsAre(0, 50));
  EXPECT_THAT(buckets.last_times_unix_ns(), ElementsAre(2, 99));
  request_.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_MAX);
  pieces = MustRun();
  EXPECT_THAT(pieces[0].buckets().max(), ElementsAre(10, 7));
}

TEST_F(QueryRangeTest, SumOfABucketWithNanIsNan) {
  Task(0, {{0, 1, 0, 1}, {1, 1, 0, std::nan("")}});
  request_.set_max_points(1);
  request_.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_SUM);
  const auto pieces = MustRun();
  EXPECT_TRUE(std::isnan(pieces[0].buckets().avg(0)));
  EXPECT_THAT(pieces[0].buckets().non_finite(), ElementsAre(1));
}

TEST_F(QueryRangeTest, StopsAtMaxSamplesAndSaysHowToNarrow) {
  Task(0, {{1, 1, 0, 1}, {2, 2, 0, 1}, {3, 3, 0, 1}});
  request_.set_max_samples(3);
  EXPECT_TRUE(Run().ok());
  request_.set_max_samples(2);
  EXPECT_EQ(Failure().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Failure().message()), HasSubstr("max_samples = 2"));
  limits_.max_samples = 1;
  EXPECT_THAT(std::string(Failure().message()), HasSubstr("max_samples = 1"))
      << "the collector's limit holds whatever is asked for";
}

TEST_F(QueryRangeTest, RefusesMoreSeriesThanMaxSeries) {
  Task(0, {{1, 1, 0, 1}});
  Task(1, {{1, 1, 0, 1}});
  request_.set_max_series(2);
  EXPECT_TRUE(Run().ok());
  request_.set_max_series(1);
  EXPECT_EQ(Failure().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Failure().message()), HasSubstr("max_series = 1"));
}

TEST_F(QueryRangeTest, NamesTheNearestJobs) {
  store_.AddSeries("resnet-50", MetricNamed("loss"), 0, "h");
  store_.AddSeries("bert", MetricNamed("loss"), 0, "h");
  request_.mutable_selector()->set_job("resnt-50");
  EXPECT_EQ(Failure().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Failure().message()), HasSubstr("did you mean \"resnet-50\""));
}

TEST_F(QueryRangeTest, IsEmptyWhereTheJobExistsAndNothingMatches) {
  Task(0, {{1, 1, 0, 1}});
  request_.mutable_selector()->add_metrics("los");
  EXPECT_THAT(MustRun(), IsEmpty());
}

TEST_F(QueryRangeTest, ReportsDamageFromTheStore) {
  Task(0, {{1, 1, 0, 1}, {2, 1, 0, 1}, {3, 1, 0, 1}, {4, 1, 0, 1}});
  store_.Reopen();
  store_.env.DamageReads(true);
  EXPECT_EQ(Failure().code(), absl::StatusCode::kDataLoss);
  request_.set_max_points(5);
  EXPECT_EQ(Failure().code(), absl::StatusCode::kDataLoss);
  request_.set_axis(v1::AXIS_STEP);
  request_.set_max_points(0);
  EXPECT_EQ(Failure().code(), absl::StatusCode::kDataLoss);
}

TEST_F(QueryRangeTest, StopsBetweenBlocksWhenCancelled) {
  std::vector<TestSample> samples(100);
  for (int i = 0; i < 100; ++i) samples[i] = {i, i, 0, 1};
  Task(0, samples);
  int looks = 0;
  QueryControl control(
      absl::Hours(1),
      [&] {
        if (++looks == 5) control.Cancel();
        return absl::UnixEpoch();
      },
      nullptr);
  request_.set_max_points(5);
  EXPECT_EQ(Run(control).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(looks, 5);
}

TEST_F(QueryRangeTest, RefusesWhatMakesNoSense) {
  Task(0, {{1, 1, 0, 1}});
  const auto refused = [&](const char* field, auto change) {
    const v1::RangeRequest good = request_;
    change(&request_);
    const absl::Status status = Failure();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
    request_ = good;
  };
  refused("selector.job", [](auto* r) { r->mutable_selector()->clear_job(); });
  refused("selector.matchers.op",
          [](auto* r) { r->mutable_selector()->add_matchers()->set_label("task"); });
  refused("selector.matchers.value", [](auto* r) {
    auto* matcher = r->mutable_selector()->add_matchers();
    matcher->set_label("task");
    matcher->set_op(v1::Matcher::OP_MATCHES);
    matcher->set_value("(");
  });
  refused("time.end_unix_ns", [](auto* r) {
    r->mutable_time()->set_begin_unix_ns(5);
    r->mutable_time()->set_end_unix_ns(5);
  });
  refused("steps.end", [](auto* r) {
    r->mutable_steps()->set_begin(5);
    r->mutable_steps()->set_end(4);
  });
  refused("axis", [](auto* r) { r->set_axis(static_cast<v1::Axis>(9)); });
  refused("max_points", [](auto* r) { r->set_max_points(kMaxPoints + 1); });
  refused("max_points",
          [](auto* r) { r->mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_SUM); });
  refused("aggregation.function", [](auto* r) { r->mutable_aggregation()->add_by("task"); });
  refused("attempts", [](auto* r) { r->set_attempts(static_cast<v1::Attempts>(7)); });
  refused("counter", [](auto* r) { r->set_counter(static_cast<v1::CounterFunction>(7)); });
  refused("counter", [](auto* r) {
    r->set_counter(v1::COUNTER_FUNCTION_RATE);
    r->set_axis(v1::AXIS_STEP);
  });
  for (const double quantile : {-0.1, 1.1, std::nan("")}) {
    refused("aggregation.quantile", [&](auto* r) {
      r->mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_QUANTILE);
      r->mutable_aggregation()->set_quantile(quantile);
    });
  }
  refused("aggregation.quantile", [](auto* r) {
    r->mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_P90);
    r->mutable_aggregation()->set_quantile(0.5);
  });
  refused("aggregation.function", [](auto* r) {
    r->mutable_aggregation()->set_function(static_cast<v1::AggregateFunction>(77));
  });
  refused("grid", [](auto* r) { r->mutable_grid()->set_last_unix_ns(1); });
  refused("grid.last_unix_ns", [](auto* r) {
    r->mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_SUM);
    r->set_max_points(3);
    r->mutable_grid()->set_first_unix_ns(2);
    r->mutable_grid()->set_last_unix_ns(1);
  });
  for (const auto& part : {std::pair(0, 0), std::pair(2, 2), std::pair(0, 1001)}) {
    refused("selector.part", [&](auto* r) {
      r->mutable_selector()->mutable_part()->set_part(static_cast<uint32_t>(part.first));
      r->mutable_selector()->mutable_part()->set_parts(static_cast<uint32_t>(part.second));
    });
  }
}

TEST_F(QueryRangeTest, CountersGrowAndBeginAgainFromZero) {
  constexpr int64_t kSecond = 1'000'000'000;
  Task(0, {{0, 1, 0, 5},
           {1 * kSecond, 2, 0, 8},
           {2 * kSecond, 3, 0, 7},
           {2 * kSecond, 4, 0, 2},  // The last of equal times, though a block ends between them.
           {4 * kSecond, 1, 1, 4}});
  request_.set_counter(v1::COUNTER_FUNCTION_INCREASE);
  const auto pieces = MustRun();
  EXPECT_THAT(Values(pieces), ElementsAre(3, 2, 4));
  ASSERT_EQ(pieces.size(), 3u) << "one is held back at the end of each block";
  EXPECT_THAT(pieces[1].points().times_unix_ns(), ElementsAre(2 * kSecond));
  EXPECT_THAT(pieces[1].points().steps(), ElementsAre(4)) << "those of the later sample";
  request_.set_counter(v1::COUNTER_FUNCTION_RATE);
  EXPECT_THAT(Values(MustRun()), ElementsAre(3, 2, 2));
}

TEST_F(QueryRangeTest, AnIncreaseEntersAnAggregateWithItsSum) {
  Task(0, {{0, 1, 0, 0}, {1, 1, 0, 1}, {2, 1, 0, 3}, {10, 1, 0, 6}});
  Task(1, {{0, 1, 0, 0}, {3, 1, 0, 10}, {9, 1, 0, 30}});
  request_.set_counter(v1::COUNTER_FUNCTION_INCREASE);
  request_.set_max_points(2);
  request_.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_MAX);
  auto pieces = MustRun();
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_THAT(pieces[0].buckets().sum(), ElementsAre(10, 20));
  request_.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_SUM);
  pieces = MustRun();
  EXPECT_THAT(pieces[0].buckets().sum(), ElementsAre(13, 23));
}

TEST_F(QueryRangeTest, TakesAStepRangeWithBothEndsIncluded) {
  Task(0, {{1, 1, 0, 1}, {2, 2, 0, 2}, {3, 3, 0, 3}, {4, storage::kNoStep, 0, 4}});
  request_.mutable_steps()->set_begin(2);
  request_.mutable_steps()->set_end(3);
  EXPECT_THAT(Values(MustRun()), ElementsAre(2, 3));
  request_.mutable_steps()->Clear();
  EXPECT_THAT(Values(MustRun()), ElementsAre(1, 2, 3)) << "a range of steps, without ends";
  request_.clear_steps();
  EXPECT_THAT(Values(MustRun()), ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace tacho::server::query
