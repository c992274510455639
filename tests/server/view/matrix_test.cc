// Matrix by small examples, each of which shows one promise.
#include "server/view/matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"
#include "tests/server/view/matrix_fixture.h"

namespace tacho::server::view {
namespace {

class MatrixTest : public MatrixFixture {};

TEST_F(MatrixTest, EachStepHasAColumnAndEachTaskARow) {
  RecordTask(10, {5, 6, 7, 8}, {1, 2, 3, 4});
  RecordTask(2, {5, 6, 8}, {2, 2, 8});
  const MatrixAnswer answer = Get(Request(v1::AXIS_STEP));
  EXPECT_EQ(answer.head.metric().name(), "wait");
  EXPECT_EQ(answer.head.metric().unit(), "s");
  EXPECT_EQ(answer.head.first_position(), 5);
  EXPECT_EQ(answer.head.width(), 1);
  EXPECT_EQ(answer.head.columns(), 4);
  EXPECT_EQ(answer.head.rows_total(), 2);
  EXPECT_EQ(answer.head.samples(), 7);
  ASSERT_EQ(answer.rows.size(), 2);
  EXPECT_EQ(answer.rows[0].task(), 2);
  EXPECT_EQ(answer.rows[0].host(), "host-2");
  EXPECT_EQ(answer.rows[1].task(), 10);
  EXPECT_EQ(answer.rows[0].holes(), 1);
  EXPECT_EQ(answer.rows[0].first_column(), 0);
  EXPECT_EQ(answer.rows[0].last_column(), 3);
  EXPECT_TRUE(std::isnan(answer.values[0][2]));
  EXPECT_EQ(answer.values[1], (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(std::vector<float>(answer.head.median().begin(), answer.head.median().end()),
            (std::vector<float>{1.5, 2, 3, 6}));
  EXPECT_EQ(answer.head.low(3), 4);
  EXPECT_EQ(answer.head.high(3), 8);
  EXPECT_NEAR(answer.rows[0].score(), (2 / 1.5 + 1 + 8.0 / 6) / 3, 1e-6);
  EXPECT_NEAR(answer.rows[1].score(), (1 / 1.5 + 1 + 1 + 4.0 / 6) / 4, 1e-6);
}

TEST_F(MatrixTest, StepsThatAreFarApartLeaveNoColumnsBetween) {
  std::vector<int64_t> steps;
  std::vector<double> values;
  for (int64_t i = 0; i < 300; ++i) {  // Sealed columns and open rows.
    steps.push_back(7 + i * 1000);
    values.push_back(static_cast<double>(i));
  }
  RecordTask(0, steps, values);
  v1::MatrixRequest request = Request(v1::AXIS_STEP);
  request.set_max_columns(300);
  MatrixAnswer answer = Get(request);
  EXPECT_EQ(answer.head.width(), 1000);
  EXPECT_EQ(answer.head.columns(), 300);
  EXPECT_EQ(answer.rows[0].holes(), 0);
  request.set_max_columns(299);  // Too few for a column each: but each of them has a step.
  answer = Get(request);
  EXPECT_EQ(answer.head.width(), 1001);
  EXPECT_EQ(answer.rows[0].holes(), 0);
  request.set_max_columns(1);
  answer = Get(request);
  EXPECT_EQ(answer.head.columns(), 1);
  EXPECT_EQ(answer.head.width(), 299'001);
  EXPECT_EQ(answer.values[0], (std::vector<float>{299}));
}

TEST_F(MatrixTest, SealedColumnsAndOpenRowsLieInOneGrid) {
  RecordTask(0, {40, 41, 42}, {1, 2, 3});
  std::vector<int64_t> steps(200);
  std::iota(steps.begin(), steps.end(), 10);
  std::vector<double> values(steps.begin(), steps.end());
  RecordTask(1, steps, values);
  ASSERT_TRUE(store_->Seal().ok());
  RecordTask(2, {50, 51}, {4, 5});
  const MatrixAnswer answer = Get(Request(v1::AXIS_STEP));
  EXPECT_EQ(answer.head.first_position(), 10);
  EXPECT_EQ(answer.head.columns(), 200);
  EXPECT_EQ(answer.values[1], std::vector<float>(values.begin(), values.end()));
  EXPECT_EQ(answer.rows[2].first_column(), 40);
}

TEST_F(MatrixTest, ATaskThatMovedIsOneRowOnItsNewestHost) {
  Record(Define(0, 0, "b", {""}), {kTestBase, kTestBase + 1}, {0, 1}, {1, 2});
  Record(Define(0, 1, "a", {""}), {kTestBase + 2, kTestBase + 3}, {2, 3}, {3, 4});
  const MatrixAnswer answer = Get(Request(v1::AXIS_STEP));
  ASSERT_EQ(answer.rows.size(), 1);
  EXPECT_EQ(answer.rows[0].host(), "a");
  EXPECT_EQ(answer.values[0], (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(MatrixTest, SamplesThatAreFartherApartThanColumnsMakeNoHoles) {
  std::vector<int64_t> times, steps;
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) {
    if (i >= 40 && i < 60) continue;
    times.push_back(kTestBase + i * 10 * kTestSecond + int64_t{Below(1000)} * 3'000'000);
    steps.push_back(storage::kNoStep);
    values.push_back(i);
  }
  Record(Define(std::nullopt, 0, "host", {""}), times, steps, values);
  v1::MatrixRequest request = Request(v1::AXIS_TIME);
  request.set_max_columns(2000);
  const MatrixAnswer answer = Get(request);
  ASSERT_EQ(answer.rows.size(), 1);
  EXPECT_FALSE(answer.rows[0].has_task());
  EXPECT_GT(answer.head.columns(), 50);
  EXPECT_LT(answer.head.columns(), 80);
  // The twenty that are missing are holes; nothing else is.
  EXPECT_NEAR(answer.rows[0].holes(), 20 / 1.5, 1);
}

TEST_F(MatrixTest, TheRangeOfTimeThatIsAskedForIsTheGrid) {
  RecordTask(0, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7});
  v1::MatrixRequest request = Request(v1::AXIS_TIME);
  request.set_max_columns(4);
  request.mutable_time()->set_begin_unix_ns(kTestBase - 4 * kTestSecond);
  request.mutable_time()->set_end_unix_ns(kTestBase + 4 * kTestSecond);
  const MatrixAnswer answer = Get(request);
  EXPECT_EQ(answer.head.first_position(), kTestBase - 4 * kTestSecond);
  EXPECT_EQ(answer.head.width(), 2 * kTestSecond);
  EXPECT_EQ(answer.head.columns(), 4);
  EXPECT_EQ(answer.rows[0].first_column(), 2);
  EXPECT_EQ(answer.values[0][2], 1);
  EXPECT_EQ(answer.values[0][3], 3);
  EXPECT_TRUE(std::isnan(answer.head.median(0)));
}

TEST_F(MatrixTest, NaNAndInfinityAreMarkedAndNeverAValue) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  RecordTask(0, {0, 0, 1, 2, 3}, {nan, 5, infinity, 1e300, StaleMarker()});
  RecordTask(1, {0, 1, 2, 3}, {1, 1, -1e300, nan});
  const MatrixAnswer answer = Get(Request(v1::AXIS_STEP));
  ASSERT_EQ(answer.rows.size(), 2);
  EXPECT_EQ(answer.non_finite[0], (std::set<uint32_t>{0, 1}));
  EXPECT_EQ(answer.non_finite[1], (std::set<uint32_t>{3}));
  EXPECT_EQ(answer.rows[0].non_finite(), 2);
  EXPECT_EQ(answer.rows[0].last_column(), 2);
  EXPECT_EQ(answer.rows[1].holes(), 0) << "a NaN is a sample";
  EXPECT_EQ(answer.values[0][0], 5) << "the finite one of the cell";
  EXPECT_TRUE(std::isnan(answer.values[0][1]));
  EXPECT_EQ(answer.values[0][2], std::numeric_limits<float>::max());
  EXPECT_EQ(answer.values[1][2], -std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isnan(answer.head.median(3)));
}

TEST_F(MatrixTest, ChipsHostsAndLabelsMakeRowsInTheOrderOfNumbers) {
  Record(Define(7, 0, "b", {"10", "9"}), {kTestBase}, {0}, {1, 2});
  Record(Define(8, 0, "a", {"0"}), {kTestBase}, {0}, {4});
  Record(Define(9, 0, "a", {"0", ""}), {kTestBase}, {0}, {6, 3});
  v1::MatrixRequest request = Request(v1::AXIS_STEP);
  const auto names = [&](const char* rows) {
    request.set_rows(rows);
    const MatrixAnswer answer = Get(request);
    std::string found;
    for (size_t i = 0; i < answer.rows.size(); ++i) {
      const v1::MatrixRow& row = answer.rows[i];
      absl::StrAppend(&found, row.has_task() ? absl::StrCat(row.task()) : "-", "/", row.host(), "/",
                      row.chip(), "/", row.label(), "=", answer.values[i][0], " ");
    }
    return found;
  };
  EXPECT_EQ(names("task"), "7/b//=2 8/a//=4 9/a//=6 ");
  EXPECT_EQ(names("host"), "-/a//=6 -/b//=2 ");
  EXPECT_EQ(names("chip"), "-/a//=3 -/a/0/=6 -/b/9/=2 -/b/10/=1 ");
  request.set_value(v1::BUCKET_VALUE_AVG);
  EXPECT_EQ(names("host"), "-/a//=4.33333 -/b//=1.5 ");
  EXPECT_EQ(names("colour"), "-/a//=3.2 ") << "no series has the label";
}

TEST_F(MatrixTest, WorstRowsComeFirstAndScoresAreOverAllRows) {
  for (uint32_t task = 0; task < 8; ++task) {
    const double value = task == 5 ? 3 : task == 2 ? 2 : 1;
    RecordTask(task, {0, 1, 2}, {value, value, value});
  }
  v1::MatrixRequest request = Request(v1::AXIS_STEP);
  request.set_worst(3);
  const MatrixAnswer answer = Get(request);
  ASSERT_EQ(answer.rows.size(), 3);
  EXPECT_EQ(answer.rows[0].task(), 5);
  EXPECT_EQ(answer.rows[0].score(), 3);
  EXPECT_EQ(answer.rows[1].task(), 2);
  EXPECT_EQ(answer.rows[2].task(), 0) << "equal ones in the order of rows";
  EXPECT_EQ(answer.head.rows_total(), 8);
  EXPECT_EQ(answer.values[0], (std::vector<float>{3, 3, 3}));
}

TEST_F(MatrixTest, ColumnsWithoutAMedianAreInNoScore) {
  RecordTask(0, {0, 1}, {0, 4});
  RecordTask(1, {0, 1}, {0, 2});
  MatrixAnswer answer = Get(Request(v1::AXIS_STEP));
  EXPECT_NEAR(answer.rows[0].score(), 4.0 / 3, 1e-6);
  v1::MatrixRequest request = Request(v1::AXIS_STEP);
  request.mutable_steps()->set_end(0);
  answer = Get(request);
  EXPECT_TRUE(std::isnan(answer.rows[0].score()));
}

TEST_F(MatrixTest, CountersGrowFromSampleToSample) {
  RecordTask(0, {0, 1, 2, 3}, {10, 12, 3, 9});
  v1::MatrixRequest request = Request(v1::AXIS_TIME);
  request.set_counter(v1::COUNTER_FUNCTION_INCREASE);
  request.set_value(v1::BUCKET_VALUE_AVG);
  request.set_max_columns(1);
  const MatrixAnswer answer = Get(request);
  EXPECT_EQ(answer.head.samples(), 3);
  EXPECT_FLOAT_EQ(answer.values[0][0], (2 + 3 + 6) / 3.0F);
  request.set_axis(v1::AXIS_STEP);
  EXPECT_EQ(Ask(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(MatrixTest, AMetricThatIsNotThereHasNoColumns) {
  RecordTask(0, {0}, {1});
  v1::MatrixRequest request = Request(v1::AXIS_STEP);
  request.mutable_selector()->set_metrics(0, "weight");
  MatrixAnswer answer = Get(request);
  EXPECT_EQ(answer.head.metric().name(), "weight");
  EXPECT_EQ(answer.head.columns(), 0);
  EXPECT_EQ(answer.rows.size(), 0);
  request = Request(v1::AXIS_STEP);
  request.mutable_steps()->set_begin(100);
  answer = Get(request);
  EXPECT_EQ(answer.head.rows_total(), 0);
  request.mutable_selector()->set_job("tran");
  const absl::Status status = Ask(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("did you mean \"train\""), absl::string_view::npos) << status;
}

TEST_F(MatrixTest, WrongFieldsAreNamed) {
  RecordTask(0, {0}, {1});
  const auto refused = [&](const char* field, auto change) {
    v1::MatrixRequest request = Request(v1::AXIS_STEP);
    change(&request);
    const absl::Status status = Ask(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field << ": " << status;
    EXPECT_NE(status.message().find(field), absl::string_view::npos) << field << ": " << status;
  };
  refused("selector.metrics", [](auto* r) { r->mutable_selector()->clear_metrics(); });
  refused("selector.metrics", [](auto* r) { r->mutable_selector()->add_metrics("loss"); });
  refused("selector.job", [](auto* r) { r->mutable_selector()->clear_job(); });
  refused("rows", [](auto* r) { r->set_rows("attempt"); });
  refused("max_columns", [](auto* r) { r->set_max_columns(2001); });
  refused("worst", [](auto* r) { r->set_worst(16'385); });
  refused("value", [](auto* r) { r->set_value(v1::BUCKET_VALUE_SUM); });
  refused("axis", [](auto* r) { r->set_axis(static_cast<v1::Axis>(9)); });
  refused("attempts", [](auto* r) { r->set_attempts(static_cast<v1::Attempts>(9)); });
  refused("steps.end", [](auto* r) {
    r->mutable_steps()->set_begin(2);
    r->mutable_steps()->set_end(1);
  });
}

TEST_F(MatrixTest, LimitsSayHowToNarrow) {
  for (uint32_t task = 0; task < 4; ++task) RecordTask(task, {0, 1, 2}, {1, 2, 3});
  const auto refused = [&](const char* text) {
    const absl::Status status = Ask(Request(v1::AXIS_STEP)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << text;
    EXPECT_NE(status.message().find(text), absl::string_view::npos) << status;
  };
  limits_.max_samples = 12;
  EXPECT_TRUE(Ask(Request(v1::AXIS_STEP)).ok());
  limits_.max_samples = 11;
  refused("4 rows of 3 columns are more than 11 cells");
  limits_ = {};
  limits_.max_series = 4;
  EXPECT_TRUE(Ask(Request(v1::AXIS_STEP)).ok());
  limits_.max_series = 3;
  refused("more than 3 series match");
}

TEST_F(MatrixTest, StopsWhenTheClientHasGone) {
  RecordTask(0, {0, 1, 2}, {1, 2, 3});
  control_.Cancel();
  EXPECT_EQ(Ask(Request(v1::AXIS_STEP)).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(MatrixTest, AnErrorOfTheReceiverEndsIt) {
  RecordTask(0, {0, 1, 2}, {1, 2, 3});
  int messages = 0;
  const absl::Status status =
      Matrix(*store_, Request(v1::AXIS_STEP), limits_, control_, [&](const v1::MatrixResponse&) {
        ++messages;
        return absl::UnavailableError("gone");
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(messages, 1);
}

}  // namespace
}  // namespace tacho::server::view
