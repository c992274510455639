// Matrix over the real store, against a plain model on random jobs: restarts that go back, NaN and
// infinities, gaps, tasks that come later, several series a row, sealed rows and open ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"
#include "tests/server/view/matrix_fixture.h"

namespace tacho::server::view {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

bool Same(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::abs(a - b) <= 1e-5F * std::max({1e-3F, std::abs(a), std::abs(b)});
}

// One cell of the model.
struct ModelCell {
  std::vector<Recorded> samples;

  std::vector<Recorded> Finite() const {
    std::vector<Recorded> finite;
    for (const Recorded& one : samples) {
      if (std::isfinite(one.value)) finite.push_back(one);
    }
    return finite;
  }
  // The float that is right.
  float Value(v1::BucketValue value, bool by_step) const {
    const auto finite = Finite();
    if (finite.empty()) return kNan;
    double sum = 0, low = finite[0].value, high = low;
    const Recorded* newest = &finite[0];
    for (const Recorded& one : finite) {
      sum += one.value;
      low = std::min(low, one.value);
      high = std::max(high, one.value);
      const auto order = [by_step](const Recorded& r) {
        return std::tuple(by_step ? r.step : r.time_ns, r.time_ns, r.task, r.host, r.chip);
      };
      if (order(one) >= order(*newest)) newest = &one;
    }
    if (value == v1::BUCKET_VALUE_MIN) return static_cast<float>(low);
    if (value == v1::BUCKET_VALUE_AVG)
      return static_cast<float>(sum / static_cast<double>(finite.size()));
    if (value == v1::BUCKET_VALUE_LAST) return static_cast<float>(newest->value);
    return static_cast<float>(high);
  }
};

// By the fields of a row.
using ModelKey = std::tuple<int64_t, std::string, std::string>;  // Task or -1, host, chip.
using ModelRows = std::map<ModelKey, std::map<uint64_t, ModelCell>>;

ModelKey KeyOf(const std::string& rows, const Recorded& one) {
  if (rows == "host") return {-1, one.host, ""};
  if (rows == "chip") return {-1, one.host, one.chip};
  return {one.task.has_value() ? static_cast<int64_t>(*one.task) : -1, "", ""};
}
ModelKey KeyOf(const std::string& rows, const v1::MatrixRow& row) {
  if (rows == "host") return {-1, row.host(), ""};
  if (rows == "chip") return {-1, row.host(), row.chip()};
  return {row.has_task() ? static_cast<int64_t>(row.task()) : -1, "", ""};
}

class MatrixModelTest : public MatrixFixture, public testing::WithParamInterface<uint32_t> {
 protected:
  MatrixModelTest() : MatrixFixture(GetParam()) { MakeRandomJob(); }

  bool Chance(int percent) { return Below(100) < percent; }

  void MakeRandomJob() {
    const int64_t spacing = Chance(50) ? 1 : 2 + Below(40);
    const uint32_t tasks = 1 + static_cast<uint32_t>(Below(6));
    int64_t first_step = Below(100);
    int64_t begin_ns = kTestBase;
    for (uint32_t attempt = 0; attempt < 3; ++attempt) {
      const int rows = 20 + Below(150);
      for (uint32_t task = 0; task < tasks; ++task) {
        if (Chance(15)) continue;
        const std::string host = absl::StrCat("host-", Chance(10) ? 9 : task % 3);
        std::vector<std::string> chips = {"0", "1", "12"};
        chips.resize(static_cast<size_t>(1 + Below(3)));
        RecordRandom(Define(task, attempt, host, chips), rows, first_step, spacing, begin_ns);
        if (Chance(30)) {
          EXPECT_TRUE(store_->Seal().ok());
        }
      }
      begin_ns += (rows + 30) * kTestSecond;
      first_step += Below(rows) * spacing;
    }
    Deduplicate();
  }

  void RecordRandom(const storage::LayoutPtr& layout, int rows, int64_t first_step, int64_t spacing,
                    int64_t begin_ns) {
    std::vector<int64_t> times, steps;
    std::vector<double> values;
    const int late = Chance(20) ? Below(rows) : 0;
    for (int row = late; row < rows; ++row) {
      if (Chance(8)) continue;
      times.push_back(begin_ns + row * kTestSecond + Below(1000));
      const bool back = Chance(3);
      steps.push_back(Chance(3) ? storage::kNoStep : first_step + (back ? row / 2 : row) * spacing);
      for (size_t i = 0; i < layout->series.size(); ++i) {
        values.push_back(Chance(5) ? StaleMarker() : RandomValue(40));
      }
    }
    Record(layout, times, steps, values);
  }

  // The newest write of a series at one (time, attempt, step) counts.
  void Deduplicate() {
    std::map<
        std::tuple<std::optional<uint32_t>, std::string, std::string, int64_t, uint32_t, int64_t>,
        Recorded>
        newest;
    for (const Recorded& one : recorded_) {
      newest[{one.task, one.host, one.chip, one.time_ns, one.attempt, one.step}] = one;
      if (one.step == storage::kNoStep) continue;
      auto& [first, last] =
          steps_["train"].try_emplace(one.attempt, one.step, one.step).first->second;
      first = std::min(first, one.step);
      last = std::max(last, one.step);
    }
    recorded_.clear();
    for (auto& [key, one] : newest) recorded_.push_back(one);
  }

  v1::MatrixRequest RandomRequest() {
    v1::MatrixRequest request = Request(Chance(50) ? v1::AXIS_STEP : v1::AXIS_TIME);
    const char* rows[] = {"", "task", "host", "chip"};
    request.set_rows(rows[Below(4)]);
    const uint32_t columns[] = {0, 1, 2, 3, 17, 100, 2000};
    request.set_max_columns(columns[Below(7)]);
    const v1::BucketValue values[] = {v1::BUCKET_VALUE_UNSPECIFIED, v1::BUCKET_VALUE_MIN,
                                      v1::BUCKET_VALUE_MAX, v1::BUCKET_VALUE_AVG,
                                      v1::BUCKET_VALUE_LAST};
    request.set_value(values[Below(5)]);
    request.set_attempts(static_cast<v1::Attempts>(Below(4)));
    if (Chance(30)) request.mutable_time()->set_begin_unix_ns(kTestBase + Below(200) * kTestSecond);
    if (Chance(30)) {
      request.mutable_time()->set_end_unix_ns(request.time().begin_unix_ns() == 0
                                                  ? kTestBase + Below(300) * kTestSecond + 1
                                                  : request.time().begin_unix_ns() +
                                                        (1 + Below(300)) * kTestSecond);
    }
    if (Chance(30)) request.mutable_steps()->set_begin(Below(200));
    if (Chance(30)) request.mutable_steps()->set_end(request.steps().begin() + Below(3000));
    return request;
  }

  std::vector<Recorded> Selected(const v1::MatrixRequest& request) {
    uint32_t newest_attempt = 0;
    for (const Recorded& one : recorded_) newest_attempt = std::max(newest_attempt, one.attempt);
    const bool by_step = request.axis() == v1::AXIS_STEP;
    std::vector<Recorded> selected;
    for (const Recorded& one : recorded_) {
      const bool stepless = one.step == storage::kNoStep;
      if (stepless && (by_step || request.has_steps())) continue;
      if (request.steps().has_begin() && one.step < request.steps().begin()) continue;
      if (request.steps().has_end() && one.step > request.steps().end()) continue;
      if (one.time_ns < request.time().begin_unix_ns()) continue;
      const int64_t end_ns = request.time().end_unix_ns();
      if (end_ns != 0 && one.time_ns >= end_ns) continue;
      if (request.attempts() == v1::ATTEMPTS_LATEST && one.attempt != newest_attempt) continue;
      if (request.attempts() == v1::ATTEMPTS_EFFECTIVE &&
          IsSuperseded("train", one.attempt, one.step)) {
        continue;
      }
      selected.push_back(one);
    }
    return selected;
  }

  // Whether the columns are those that matrix.h promises.
  void ExpectGrid(const v1::MatrixRequest& request, const std::vector<Recorded>& samples,
                  const v1::MatrixHead& head) {
    const bool by_step = request.axis() == v1::AXIS_STEP;
    int64_t first = INT64_MAX, last = INT64_MIN, spacing = 0;
    for (const Recorded& one : samples) {
      const int64_t at = by_step ? one.step : one.time_ns;
      first = std::min(first, at);
      last = std::max(last, at);
      spacing = std::gcd(spacing, at - (by_step ? samples.front().step : 0));
    }
    if (!by_step && request.time().begin_unix_ns() != 0 && request.time().end_unix_ns() != 0) {
      first = request.time().begin_unix_ns();
      last = request.time().end_unix_ns() - 1;
    }
    const int64_t most = request.max_columns() == 0 ? 500 : request.max_columns();
    EXPECT_EQ(head.first_position(), first);
    const auto width = static_cast<int64_t>(head.width());
    EXPECT_EQ(head.columns(), (last - first) / width + 1);
    EXPECT_LE(head.columns(), most);
    const int64_t narrowest = (last - first) / most + 1;
    if (by_step) {
      EXPECT_EQ(width, std::max(narrowest, spacing));
    } else {
      // Samples are a second apart. A sealed column that has a long gap may look sparser.
      EXPECT_GE(width, narrowest);
      EXPECT_TRUE(width == narrowest || width < 15 * kTestSecond) << width;
    }
  }

  void ExpectRow(const v1::MatrixRequest& request, const std::map<uint64_t, ModelCell>& cells,
                 const MatrixAnswer& answer, size_t row) {
    const bool by_step = request.axis() == v1::AXIS_STEP;
    const v1::MatrixRow& got = answer.rows[row];
    EXPECT_EQ(got.first_column(), cells.begin()->first);
    EXPECT_EQ(got.last_column(), cells.rbegin()->first);
    EXPECT_EQ(got.holes(), got.last_column() - got.first_column() + 1 - cells.size());
    std::set<uint32_t> non_finite;
    double sum = 0;
    int count = 0;
    for (uint32_t column = 0; column < answer.head.columns(); ++column) {
      const auto cell = cells.find(column);
      const float expected =
          cell == cells.end() ? kNan : cell->second.Value(request.value(), by_step);
      EXPECT_TRUE(Same(expected, answer.values[row][column]))
          << column << ": " << expected << " is right, " << answer.values[row][column];
      if (cell == cells.end()) continue;
      if (cell->second.Finite().size() < cell->second.samples.size()) non_finite.insert(column);
      const float median = answer.head.median(static_cast<int>(column));
      if (std::isnan(expected) || median == 0) continue;
      sum += answer.values[row][column] / static_cast<double>(median);
      ++count;
    }
    EXPECT_EQ(answer.non_finite[row], non_finite);
    EXPECT_EQ(got.non_finite(), non_finite.size());
    EXPECT_TRUE(count == 0 ? std::isnan(got.score())
                           : std::abs(got.score() - sum / count) <=
                                 1e-6 * std::max(1.0, std::abs(sum / count)))
        << got.score() << " " << sum / count;
  }

  static void ExpectMedians(const MatrixAnswer& answer) {
    for (uint32_t column = 0; column < answer.head.columns(); ++column) {
      std::vector<float> values;
      for (const auto& row : answer.values) {
        if (!std::isnan(row[column])) values.push_back(row[column]);
      }
      std::sort(values.begin(), values.end());
      const size_t half = values.size() / 2;
      const float median = values.empty()           ? kNan
                           : values.size() % 2 == 1 ? values[half]
                                                    : (values[half - 1] + values[half]) / 2;
      const int i = static_cast<int>(column);
      EXPECT_TRUE(Same(answer.head.median(i), median)) << column;
      EXPECT_TRUE(Same(answer.head.low(i), values.empty() ? kNan : values.front())) << column;
      EXPECT_TRUE(Same(answer.head.high(i), values.empty() ? kNan : values.back())) << column;
    }
  }

  void Check(const v1::MatrixRequest& request) {
    const MatrixAnswer answer = Get(request);
    const std::vector<Recorded> samples = Selected(request);
    EXPECT_EQ(answer.head.samples(), samples.size());
    if (samples.empty()) {
      EXPECT_EQ(answer.head.columns(), 0);
      return;
    }
    ExpectGrid(request, samples, answer.head);
    const bool by_step = request.axis() == v1::AXIS_STEP;
    ModelRows model;
    for (const Recorded& one : samples) {
      const int64_t at = by_step ? one.step : one.time_ns;
      const auto column =
          static_cast<uint64_t>(at - answer.head.first_position()) / answer.head.width();
      model[KeyOf(request.rows(), one)][column].samples.push_back(one);
    }
    EXPECT_EQ(answer.head.rows_total(), model.size());
    ASSERT_EQ(answer.rows.size(), model.size());
    size_t row = 0;
    for (const auto& [key, cells] : model) {  // Chips here sort alike as texts and as numbers.
      EXPECT_EQ(KeyOf(request.rows(), answer.rows[row]), key);
      ExpectRow(request, cells, answer, row++);
    }
    ExpectMedians(answer);
  }
};

TEST_P(MatrixModelTest, EveryCellIsThatOfThePlainModel) {
  for (int i = 0; i < 12; ++i) {
    const v1::MatrixRequest request = RandomRequest();
    SCOPED_TRACE(request.ShortDebugString());
    Check(request);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Random, MatrixModelTest, testing::Range(1U, 25U));

}  // namespace
}  // namespace tacho::server::view
