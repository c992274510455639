// Range over the real store, against the plain reference, on random jobs: restarts that go back,
// gaps, NaN and infinities, counter resets, equal times and equal steps, rows that are sealed and
// rows that are not.
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "proto/base/stale_marker.h"
#include "server/query/range/range_query.h"
#include "storage/store.h"
#include "tests/server/query/query_reference.h"

namespace tacho::server::query {
namespace {

constexpr int64_t kBase = 1'700'000'000'000'000'000;
constexpr int64_t kMs = 1'000'000;

struct Column {
  std::string metric;
  storage::Labels labels;
};
// "smooth" is always finite, so that its columns have summaries.
const std::vector<Column> kColumns = {{"loss", {}},
                                      {"smooth", {}},
                                      {"tokens", {{"chip", "0"}}},
                                      {"tokens", {{"chip", "1"}, {"kind", "x"}}}};

class QueryRandomTest : public testing::TestWithParam<uint32_t> {
 protected:
  QueryRandomTest() : random_(GetParam()), env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    storage::StoreOptions options;
    options.path = "/store";
    options.env = env_.get();
    options.background = false;
    options.retention = absl::ZeroDuration();
    options.commit_spacing = absl::ZeroDuration();
    options.seal_rows = 16 + Below(200);
    auto store = storage::Store::Open(options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    MakeJob();
  }
  ~QueryRandomTest() override { EXPECT_TRUE(store_->Close().ok()); }

  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  bool Chance(uint32_t percent) { return Below(100) < percent; }

  void MakeJob() {
    const uint32_t attempts = 1 + Below(4);
    tasks_ = 1 + Below(4);
    int64_t begin_ns = kBase;
    int64_t first_step = 0, highest = 0;
    for (uint32_t attempt = 0; attempt < attempts; ++attempt) {
      const int64_t steps = 5 + Below(60);
      int64_t end_ns = begin_ns;
      for (uint32_t task = 0; task < tasks_; ++task) {
        if (attempt > 0 && Chance(15)) continue;
        end_ns = std::max(end_ns, Record(task, attempt * 2, begin_ns, first_step, steps));
        if (Chance(40)) {
          EXPECT_TRUE(store_->Seal().ok());
        }
      }
      highest = std::max(highest, first_step + steps);
      first_step = static_cast<int64_t>(Below(static_cast<uint32_t>(highest) + 3));
      // Mostly after the attempt before, sometimes while it still runs.
      begin_ns = Chance(80) ? end_ns + kMs * Below(5000) : end_ns - kMs * Below(2000);
    }
    for (auto& [key, series] : series_) {
      for (const auto& [order, row] : rows_[key]) series.rows.push_back(row);
      job_.push_back(series);
    }
  }

  double NextValue(size_t column, double before) {
    if (column != 1 && Chance(4)) return std::numeric_limits<double>::quiet_NaN();
    if (column == 0 && Chance(3)) return Chance(50) ? INFINITY : -INFINITY;
    if (column < 2) return static_cast<double>(Below(2'000'001)) / 1000 - 1000;
    if (!std::isfinite(before) || Chance(5)) return Below(10);  // A counter begins again.
    return before + Below(500);
  }

  // One task of one attempt, in a few messages; returns its last time.
  int64_t Record(uint32_t task, uint32_t attempt, int64_t time_ns, int64_t step, int64_t count) {
    storage::LayoutDefinition layout;
    layout.source = {"train", task, attempt, absl::StrCat("host-", task % 2)};
    layout.has_steps = true;
    for (const Column& column : kColumns) {
      layout.series.push_back(
          {{column.metric, storage::MetricType::kGauge, "1", ""}, column.labels});
    }
    const auto registered = store_->RegisterLayout(layout);
    EXPECT_TRUE(registered.ok()) << registered.status();
    std::vector<double> before(kColumns.size(), 0);
    std::vector<int64_t> times, steps;
    std::vector<double> values;
    const auto send = [&] {
      if (times.empty()) return;
      absl::Notification durable;
      store_->AppendRows({}, registered->layout, {times, steps, values},
                         [&](const absl::Status& status) {
                           EXPECT_TRUE(status.ok()) << status;
                           durable.Notify();
                         });
      durable.WaitForNotification();
      times.clear(), steps.clear(), values.clear();
      if (Chance(20)) {
        EXPECT_TRUE(store_->Seal().ok());
      }
    };
    for (int64_t i = 0; i < count; ++i) {
      if (!Chance(8)) time_ns += kMs * (1 + Below(Chance(5) ? 20'000 : 300));
      if (!Chance(8)) ++step;
      const int64_t written = Chance(4)   ? storage::kNoStep
                              : Chance(4) ? std::max<int64_t>(0, step - Below(8))
                                          : step;
      times.push_back(time_ns);
      steps.push_back(written);
      for (size_t column = 0; column < kColumns.size(); ++column) {
        const bool gap = column != 1 && Chance(6);
        const double value = gap ? StaleMarker() : NextValue(column, before[column]);
        values.push_back(value);
        if (gap) continue;
        before[column] = value;
        Remember(column, task, layout.source.host, {time_ns, written, attempt, value});
      }
      if (Chance(6)) send();
    }
    send();
    return time_ns;
  }

  struct Stored {
    int64_t time_ns;
    int64_t step;
    uint32_t attempt;
    double value;
  };
  void Remember(size_t column, uint32_t task, const std::string& host, const Stored& stored) {
    const Column& of = kColumns[column];
    const auto key = std::make_tuple(of.metric, task, host, of.labels);
    series_[key] = {of.metric, task, host, of.labels, {}};
    reference::Row row = {stored.time_ns, std::nullopt, stored.attempt, stored.value};
    if (stored.step != storage::kNoStep) row.step = stored.step;
    // Among rows of equal (time, attempt, step) the latest counts.
    rows_[key][{stored.time_ns, stored.attempt, stored.step}] = row;
  }

  v1::RangeRequest MakeRequest() {
    v1::RangeRequest request;
    request.mutable_selector()->set_job("train");
    if (Chance(20)) {
      auto* matcher = request.mutable_selector()->add_matchers();
      matcher->set_label("attempt");
      matcher->set_op(Chance(50) ? v1::Matcher::OP_EQUAL : v1::Matcher::OP_NOT_EQUAL);
      matcher->set_value(absl::StrCat(Below(3) * 2));
    }
    const int64_t first_ns = kBase, span_ns = LastTime() - kBase + 1;
    if (Chance(30)) {
      const int64_t begin_ns = first_ns + static_cast<int64_t>(random_()) * kMs % span_ns;
      request.mutable_time()->set_begin_unix_ns(begin_ns);
      if (Chance(60)) request.mutable_time()->set_end_unix_ns(begin_ns + 1 + kMs * Below(20'000));
    }
    if (Chance(30)) {
      const int64_t begin = Below(60);
      if (Chance(70)) request.mutable_steps()->set_begin(begin);
      if (Chance(70)) request.mutable_steps()->set_end(begin + Below(60));
      request.mutable_steps();
    }
    request.set_attempts(static_cast<v1::Attempts>(Below(4)));
    if (Chance(40)) request.set_axis(v1::AXIS_STEP);
    const uint32_t points[] = {0, 1, 2, 3, 7, 50, 1000};
    request.set_max_points(points[Below(7)]);
    if (request.axis() != v1::AXIS_STEP && Chance(40)) {
      request.set_counter(static_cast<v1::CounterFunction>(1 + Below(2)));
    }
    if (Chance(60)) Aggregate(&request);
    return request;
  }
  void Aggregate(v1::RangeRequest* request) {
    auto* aggregation = request->mutable_aggregation();
    aggregation->set_function(static_cast<v1::AggregateFunction>(1 + Below(10)));
    if (aggregation->function() == v1::AGGREGATE_FUNCTION_QUANTILE) {
      aggregation->set_quantile(Below(1001) / 1000.0);
    }
    for (const char* label : {"task", "host", "chip", "attempt"}) {
      if (Chance(25)) aggregation->add_by(label);
    }
    if (request->axis() != v1::AXIS_STEP && request->max_points() == 0) {
      request->set_max_points(1 + Below(20));
    }
  }
  int64_t LastTime() const {
    int64_t last_ns = kBase;
    for (const auto& series : job_) {
      for (const auto& row : series.rows) last_ns = std::max(last_ns, row.time_ns);
    }
    return last_ns;
  }

  // Columns that a piece leaves out because all of them are the same.
  static void FillColumns(v1::RangeResponse* piece) {
    const auto fill = [](auto* column, int size, auto value) {
      if (column->empty()) column->Resize(size, value);
    };
    if (v1::Points* points = piece->has_points() ? piece->mutable_points() : nullptr) {
      fill(points->mutable_steps(), points->values_size(), storage::kNoStep);
      fill(points->mutable_attempts(), points->values_size(), 0);
    }
    if (v1::Buckets* buckets = piece->has_buckets() ? piece->mutable_buckets() : nullptr) {
      fill(buckets->mutable_first_steps(), buckets->counts_size(), storage::kNoStep);
      fill(buckets->mutable_last_steps(), buckets->counts_size(), storage::kNoStep);
    }
  }

  std::vector<v1::RangeResponse> Run(const v1::RangeRequest& request) {
    auto query = RangeQuery::Create(*store_, request, {}, control_);
    EXPECT_TRUE(query.ok()) << query.status();
    std::vector<v1::RangeResponse> series;  // Pieces put together.
    for (v1::RangeResponse piece; query.ok();) {
      const auto more = (*query)->Next(&piece);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) break;
      FillColumns(&piece);
      if (piece.has_series()) {
        series.push_back(piece);
      } else {
        series.back().MergeFrom(piece);
      }
    }
    return series;
  }

  std::mt19937 random_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<storage::Store> store_;
  QueryControl control_;
  uint32_t tasks_ = 0;
  // In the order of the store: by metric, task, host, labels.
  using Key = std::tuple<std::string, uint32_t, std::string, storage::Labels>;
  std::map<Key, reference::Series> series_;
  std::map<Key, std::map<std::tuple<int64_t, uint32_t, int64_t>, reference::Row>> rows_;
  std::vector<reference::Series> job_;
};

// Equal bit for bit, but for NaN, where there is nothing to add up.
bool Agree(const reference::Number& expected, double got) {
  if (std::isnan(expected.value)) return std::isnan(got);
  if (expected.value == got) return true;
  return std::abs(expected.value - got) <= 1e-9 * expected.scale;
}

std::string Compare(const char* what, const reference::Number& expected, double got) {
  if (Agree(expected, got)) return "";
  return absl::StrCat(what, ": ", expected.value, " is right, ", got, " was answered\n");
}
std::string Compare(const char* what, int64_t expected, int64_t got) {
  if (expected == got) return "";
  return absl::StrCat(what, ": ", expected, " is right, ", got, " was answered\n");
}

int64_t StepOr(const std::optional<int64_t>& step) { return step.value_or(storage::kNoStep); }

std::string Compare(const reference::Point& expected, const v1::Points& got, int i) {
  return Compare("time", expected.time_ns, got.times_unix_ns(i)) +
         Compare("step", StepOr(expected.step), got.steps(i)) +
         Compare("attempt", expected.attempt, got.attempts(i)) +
         Compare("value", expected.value, got.values(i));
}

std::string Compare(const reference::Bucket& expected, const v1::Buckets& got, int i) {
  return Compare("first time", expected.first_time_ns, got.first_times_unix_ns(i)) +
         Compare("last time", expected.last_time_ns, got.last_times_unix_ns(i)) +
         Compare("first step", StepOr(expected.first_step), got.first_steps(i)) +
         Compare("last step", StepOr(expected.last_step), got.last_steps(i)) +
         Compare("min", expected.min, got.min(i)) + Compare("max", expected.max, got.max(i)) +
         Compare("avg", expected.avg, got.avg(i)) + Compare("sum", expected.sum, got.sum(i)) +
         Compare("first", expected.first, got.first(i)) +
         Compare("last", expected.last, got.last(i)) +
         Compare("count", static_cast<int64_t>(expected.count),
                 static_cast<int64_t>(got.counts(i))) +
         Compare("non-finite", static_cast<int64_t>(expected.non_finite),
                 static_cast<int64_t>(got.non_finite(i)));
}

// "" if they are the same.
std::string Compare(const reference::Output& expected, const v1::RangeResponse& got) {
  const auto points = static_cast<int64_t>(expected.points.size());
  const auto buckets = static_cast<int64_t>(expected.buckets.size());
  std::string difference;
  if (expected.name != reference::NameOf(got.series())) {
    difference = absl::StrCat(reference::NameOf(got.series()), " was answered\n");
  }
  difference += Compare("points", points, got.points().values_size()) +
                Compare("buckets", buckets, got.buckets().counts_size());
  for (int i = 0; i < points && difference.empty(); ++i) {
    difference = Compare(expected.points[static_cast<size_t>(i)], got.points(), i);
    if (!difference.empty()) absl::StrAppend(&difference, "at point ", i, " of ", points);
  }
  for (int i = 0; i < buckets && difference.empty(); ++i) {
    difference = Compare(expected.buckets[static_cast<size_t>(i)], got.buckets(), i);
    if (!difference.empty()) absl::StrAppend(&difference, "at bucket ", i, " of ", buckets);
  }
  return difference;
}

TEST_P(QueryRandomTest, AnswersAsTheReferenceDoes) {
  for (int round = 0; round < 40; ++round) {
    const v1::RangeRequest request = MakeRequest();
    const std::vector<reference::Output> expected = reference::Answer(job_, request);
    const std::vector<v1::RangeResponse> got = Run(request);
    std::string difference =
        Compare("series", static_cast<int64_t>(expected.size()), static_cast<int64_t>(got.size()));
    for (size_t i = 0; i < expected.size() && difference.empty(); ++i) {
      difference = Compare(expected[i], got[i]);
      if (!difference.empty()) absl::StrAppend(&difference, "\nin ", expected[i].name);
    }
    ASSERT_EQ(difference, "") << "seed " << GetParam() << ", request " << round << ":\n"
                              << request.DebugString();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, QueryRandomTest, testing::Range(0u, 40u));

}  // namespace
}  // namespace tacho::server::query
