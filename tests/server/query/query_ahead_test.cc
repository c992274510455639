// A second thread that decodes ahead does not change an answer.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/query/range/range_query.h"
#include "tests/server/query/query_store_fixture.h"

namespace tacho::server::query {
namespace {

constexpr uint32_t kTasks = 100;
constexpr int kColumns = 20;  // In each series.
constexpr int kRows = 32;     // In each column.

class QueryAheadTest : public QueryStoreFixture {
 protected:
  QueryAheadTest() {
    std::vector<storage::LayoutPtr> layouts;
    for (uint32_t task = 0; task < kTasks; ++task) {
      layouts.push_back(Register("j", task, 0, {"loss"}));
    }
    int64_t step = 0;
    for (int column = 0; column < kColumns; ++column, step += kRows) {
      for (const storage::LayoutPtr& layout : layouts) {
        std::vector<int64_t> times, steps;
        std::vector<double> values;
        for (int row = 0; row < kRows; ++row) {
          times.push_back(kTestBase + (step + row) * kTestSecond);
          steps.push_back(step + row);
          values.push_back(RandomValue(0));
        }
        Append(layout, times, steps, values);
      }
      EXPECT_TRUE(store_->Seal().ok());
    }
    request_.mutable_selector()->set_job("j");
  }
  ~QueryAheadTest() override {
    for (std::thread& thread : threads_) thread.join();
  }

  SpareThread OnAThread() {
    return [this](std::function<void()> work) {
      threads_.emplace_back(std::move(work));
      return true;
    };
  }
  std::unique_ptr<RangeQuery> Begin(SpareThread spare) {
    auto query = RangeQuery::Create(*store_, request_, {}, control_, std::move(spare));
    EXPECT_TRUE(query.ok()) << query.status();
    return *std::move(query);
  }
  std::string Answer(SpareThread spare) {
    const auto query = Begin(std::move(spare));
    std::string all;
    for (v1::RangeResponse piece;;) {
      const absl::StatusOr<bool> more = query->Next(&piece);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) return all;
      all += piece.SerializeAsString();
    }
  }

  QueryControl control_;
  v1::RangeRequest request_;
  std::vector<std::thread> threads_;
};

// A request, and how often a thread is wanted for it.
struct Kind {
  const char* name;
  uint32_t max_points;
  v1::Axis axis;
  size_t threads;
};

class QueryAheadKindTest : public QueryAheadTest, public testing::WithParamInterface<Kind> {};

TEST_P(QueryAheadKindTest, AnswersAreTheSame) {
  request_.set_max_points(GetParam().max_points);
  request_.set_axis(GetParam().axis);
  const std::string first = Answer(OnAThread());
  EXPECT_EQ(threads_.size(), GetParam().threads);
  EXPECT_GT(first.size(), kTasks * 10u);
  EXPECT_TRUE(Answer(OnAThread()) == first);
  EXPECT_EQ(threads_.size(), GetParam().threads) << "everything is known by now";
  EXPECT_TRUE(Answer(nullptr) == first);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, QueryAheadKindTest,
    testing::Values(Kind{"Raw", 0, v1::AXIS_TIME, 1}, Kind{"Reduced", 30, v1::AXIS_TIME, 1},
                    Kind{"BySteps", 0, v1::AXIS_STEP, 1},
                    Kind{"ReducedBySteps", 30, v1::AXIS_STEP, 1},
                    // All columns of a series lie in one bucket: none is decoded.
                    Kind{"InOneBucket", 1, v1::AXIS_TIME, 0}),
    [](const auto& kind) { return std::string(kind.param.name); });

TEST_F(QueryAheadTest, WhereNoThreadIsFreeTheQueryGoesOn) {
  int asked = 0;
  const std::string refused = Answer([&asked](const auto&) {
    ++asked;
    return false;
  });
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(Answer(nullptr) == refused);
}

TEST_F(QueryAheadTest, FewColumnsAreNotWorthAThread) {
  request_.mutable_time()->set_begin_unix_ns(kTestBase);
  request_.mutable_time()->set_end_unix_ns(kTestBase + kRows * kTestSecond);
  Answer(OnAThread());
  EXPECT_TRUE(threads_.empty());
}

TEST_F(QueryAheadTest, TheThreadEndsWithTheQuery) {
  request_.set_max_points(30);  // A piece a series.
  {
    const auto query = Begin(OnAThread());
    v1::RangeResponse piece;
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(*query->Next(&piece));
    ASSERT_EQ(threads_.size(), 1u);
    absl::SleepFor(absl::Milliseconds(300));  // By now it waits for the query to come nearer.
  }
  threads_[0].join();
  threads_.clear();
}

TEST_F(QueryAheadTest, AThreadThatComesTooLateDoesNothing) {
  std::function<void()> late;
  {
    const auto query = Begin([&late](std::function<void()> work) {
      late = std::move(work);
      return true;
    });
    v1::RangeResponse piece;
    while (*query->Next(&piece)) {
    }
  }
  ASSERT_TRUE(late);
  late();
  Answer(OnAThread());
  EXPECT_TRUE(threads_.empty()) << "the query has decoded everything itself";
}

}  // namespace
}  // namespace tacho::server::query
