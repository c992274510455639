#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

#include "tests/server/aggregate/aggregate_fixture.h"

namespace tacho::server::aggregate {
namespace {

using storage::MetricType;
using testing::HasSubstr;
using testing::Not;

constexpr char kTokens[] = "tacho_job_tokens_total{job=\"j\",stat=\"sum\",metric=\"tokens\"}";

class AggregateCountersTest : public AggregateFixture {
 protected:
  storage::SeriesPtr Tokens(uint32_t task) {
    return Series("j", "tokens", task, "h" + std::to_string(task), MetricType::kCounter);
  }
  void Second() {
    time_ns_ += 1'000'000'000;
    now_ += absl::Seconds(1);
  }
  int64_t time_ns_ = 100;
};

TEST_F(AggregateCountersTest, ASumDoesNotFallWhenATaskRestarts) {
  const auto first = Tokens(0), second = Tokens(1);
  Row({first}, {100}, 1);
  Row({second}, {1000}, 1);
  EXPECT_EQ(Line(kTokens), 1100);
  Row({first}, {10}, 2, absl::ZeroDuration(), /*attempt=*/1);
  Row({second}, {1005}, 2);
  EXPECT_EQ(Line(kTokens), 1115) << "10 since the restart, 5 of the other";
  Row({first}, {300}, 3, absl::ZeroDuration(), /*attempt=*/2);
  EXPECT_EQ(Line(kTokens), 1415) << "a new attempt counts from 0 although it is ahead";
  EXPECT_EQ(Line("tacho_job_tokens_total{job=\"j\",stat=\"max\",metric=\"tokens\"}"), 1005);
}

// The tokens are the second counter of one layout and the first of the other, in the same column.
TEST_F(AggregateCountersTest, TasksOfTheSameColumnsMayHaveOtherCountersBesides) {
  AddRule("dropped|free")->set_keep(false);
  Row({Series("j", "dropped", 0, "h0", MetricType::kCounter), Tokens(0)}, {5, 100}, 1);
  Row({Series("j", "free", 1, "h1"), Tokens(1)}, {7, 1000}, 1);
  EXPECT_EQ(Line(kTokens), 1100);
}

TEST_F(AggregateCountersTest, ASumDoesNotFallWhenATaskLeavesAndComesBack) {
  const auto first = Tokens(0), second = Tokens(1);
  Row({first}, {100}, 1);
  Row({second}, {1000}, 1);
  EXPECT_EQ(Line(kTokens), 1100);
  now_ += absl::Hours(2);
  Row({first}, {120}, 2);
  EXPECT_EQ(Line(kTokens), 1120) << "the other is silent";
  Row({second}, {1001}, 3);
  EXPECT_EQ(Line(kTokens), 1121) << "and goes on where it was";
}

TEST_F(AggregateCountersTest, WhatWasThereBeforeTheCollectorIsNoGrowth) {
  Row({Tokens(0)}, {100}, 1);
  aggregator_.reset();  // The next one finds the series in the store.
  EXPECT_EQ(Line(kTokens), 0);
  const auto host = Series("hosts", "bytes_total", std::nullopt, "h", MetricType::kCounter);
  Row({host}, {1e12}, 1);
  const char* const bytes = "tacho_job_bytes_total{job=\"hosts\",stat=\"sum\"}";
  EXPECT_EQ(Line(bytes), 0) << "a host's counters began long before anybody saw them";
  Row({host}, {1e12 + 7}, 2);
  EXPECT_EQ(Line(bytes), 7);
}

TEST_F(AggregateCountersTest, AJobThatComesBackDoesNotCountTwice) {
  const auto tokens = Tokens(0);
  Row({tokens}, {100}, 1);
  EXPECT_EQ(Line(kTokens), 100);
  store_.RemoveLatestRows("j");
  Page();
  Row({tokens}, {130}, 2);
  EXPECT_EQ(Line(kTokens), 0) << "begun anew, as after a restart of the collector";
  Row({tokens}, {135}, 3);
  EXPECT_EQ(Line(kTokens), 5);
}

TEST_F(AggregateCountersTest, ARowThatIsOlderThanWhatWasSeenIsNoReset) {
  const auto tokens = Tokens(0);
  Row({tokens}, {100}, 5, absl::ZeroDuration(), /*attempt=*/1);
  EXPECT_EQ(Line(kTokens), 100);
  Row({tokens}, {9000}, 4, absl::ZeroDuration(), /*attempt=*/0);
  EXPECT_EQ(Line(kTokens), 100) << "of the attempt before, still on its way";
}

// Against a plain reference: what every task counted, summed up by the tasks themselves.
TEST_F(AggregateCountersTest, TheSumIsWhatAllTasksEverCounted) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const std::string job = "j" + std::to_string(seed);
    struct Task {
      storage::SeriesPtr series;
      uint32_t attempt = 0;
      double counted = 0;
    };
    std::vector<Task> tasks;
    double expected = 0;
    for (uint32_t i = 0; i < 6; ++i) {
      tasks.push_back({Series(job, "n_total", i, "h" + std::to_string(i), MetricType::kCounter)});
    }
    double shown = 0;
    for (int round = 0; round < 60; ++round) {
      Second();
      for (Task& task : tasks) {
        if (random() % 3 == 0) continue;  // Silent in this round.
        if (random() % 10 == 0) {
          task.counted = 0;
          ++task.attempt;
        }
        const auto grown = static_cast<double>(random() % 100);
        task.counted += grown;
        expected += grown;
        Row({task.series}, {task.counted}, time_ns_, absl::ZeroDuration(), task.attempt);
      }
      if (random() % 8 == 0) now_ += absl::Minutes(6);  // All fall silent, and most come back.
      const double sum = Line("tacho_job_n_total{job=\"" + job + "\",stat=\"sum\"}");
      if (std::isnan(sum)) continue;  // Nobody reports.
      EXPECT_GE(sum, shown);
      shown = sum;
    }
    for (Task& task : tasks) {  // A silent task reports again.
      Second();
      Row({task.series}, {task.counted}, time_ns_, absl::ZeroDuration(), task.attempt);
    }
    // A restart that nobody heard of before the next one is not counted: rows that no scrape saw
    // are all there is to lose.
    const double sum = Line("tacho_job_n_total{job=\"" + job + "\",stat=\"sum\"}");
    EXPECT_LE(sum, expected);
    EXPECT_GE(sum, shown);
    store_.RemoveLatestRows(job);
  }
}

// The same with one scrape a row: then the reference is exact. A reset within an attempt to where
// the counter was, or above, cannot be told from growth.
TEST_F(AggregateCountersTest, NothingIsLostWhereEveryRowIsScraped) {
  std::mt19937_64 random(7);
  const auto series = Tokens(0);
  double expected = 0, counted = 0;
  uint32_t attempt = 0;
  for (int round = 0; round < 300; ++round) {
    Second();
    const auto grown = static_cast<double>(1 + random() % 100);
    const bool restarted = random() % 10 == 0;
    const bool told = restarted && random() % 2 == 0;
    if (told) ++attempt;
    expected += restarted && !told && grown >= counted ? grown - counted : grown;
    counted = restarted ? grown : counted + grown;
    Row({series}, {counted}, time_ns_, absl::ZeroDuration(), attempt);
    ASSERT_EQ(Line(kTokens), expected) << round;
  }
}

TEST_F(AggregateCountersTest, ARateIsThatOfTheLastHalfMinute) {
  auto* rule = AddRule("tokens");
  rule->add_functions("sum");
  rule->add_functions("rate");
  const auto tokens = Tokens(0);
  double counted = 0;
  const auto pass = [&](int seconds, double rate) {
    for (int i = 0; i < seconds; i += 10) {
      counted += 10 * rate;
      time_ns_ += 10'000'000'000;
      now_ += absl::Seconds(10);
      Row({tokens}, {counted}, time_ns_);
      Page();
    }
  };
  pass(90, 5);
  const char* const rate = "tacho_job_tokens_per_second_value{job=\"j\",metric=\"tokens\"}";
  EXPECT_EQ(Line(rate), 5);
  pass(70, 20);
  EXPECT_EQ(Line(rate), 20);
  EXPECT_THAT(Page(), HasSubstr("# TYPE tacho_job_tokens_per_second_value gauge\n"));
}

class AggregateHistogramsTest : public AggregateCountersTest {
 protected:
  std::vector<storage::SeriesPtr> Buckets(uint32_t task, const std::vector<std::string>& bounds) {
    std::vector<storage::SeriesPtr> series;
    for (const std::string& bound : bounds) {
      series.push_back(
          Series("j", "lag", task, "h", MetricType::kHistogram, {{"le", bound}, {"queue", "q"}}));
    }
    return series;
  }
};

TEST_F(AggregateHistogramsTest, BucketsAreSummedOverTasks) {
  Row(Buckets(0, {"0.1", "1", "+Inf"}), {1, 3, 4}, 1);
  Row(Buckets(1, {"0.1", "1", "+Inf"}), {10, 20, 20}, 1);
  EXPECT_THAT(Page(), HasSubstr("# TYPE tacho_job_lag histogram\n"
                                "tacho_job_lag_bucket{job=\"j\",le=\"0.1\"} 11\n"
                                "tacho_job_lag_bucket{job=\"j\",le=\"1\"} 23\n"
                                "tacho_job_lag_bucket{job=\"j\",le=\"+Inf\"} 24\n"
                                "tacho_job_lag_count{job=\"j\"} 24\n"));
}

TEST_F(AggregateHistogramsTest, OtherBoundsKeepTheSumOfBucketsAscending) {
  Row(Buckets(0, {"0.1", "1", "+Inf"}), {1, 3, 4}, 1);
  Row(Buckets(1, {"0.5", "+Inf"}), {10, 20}, 1);
  EXPECT_THAT(Page(), HasSubstr("tacho_job_lag_bucket{job=\"j\",le=\"0.1\"} 1\n"
                                "tacho_job_lag_bucket{job=\"j\",le=\"0.5\"} 11\n"
                                "tacho_job_lag_bucket{job=\"j\",le=\"1\"} 13\n"
                                "tacho_job_lag_bucket{job=\"j\",le=\"+Inf\"} 24\n"));
}

TEST_F(AggregateHistogramsTest, TheyGoOnOverARestart) {
  const auto buckets = Buckets(0, {"1", "+Inf"});
  Row(buckets, {3, 4}, 1);
  Page();
  Row(buckets, {1, 2}, 2, absl::ZeroDuration(), /*attempt=*/1);
  EXPECT_THAT(Page(), HasSubstr("tacho_job_lag_bucket{job=\"j\",le=\"1\"} 4\n"
                                "tacho_job_lag_bucket{job=\"j\",le=\"+Inf\"} 6\n"));
}

TEST_F(AggregateHistogramsTest, ABoundThatIsNoNumberIsLeftOut) {
  Row(Buckets(0, {"1", "nan", "wide"}), {3, 9, 9}, 1);
  EXPECT_THAT(Page(), HasSubstr("tacho_job_lag_count{job=\"j\"} 3\n"));
  EXPECT_THAT(Page(), Not(HasSubstr("wide")));
}

}  // namespace
}  // namespace tacho::server::aggregate
