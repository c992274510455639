// Asks for matrices of a job that is recorded to the real store and to a plain list.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"
#include "server/view/matrix.h"
#include "tests/server/durable_append.h"
#include "tests/server/query/query_store_fixture.h"

namespace tacho::server::view {

using query::kTestBase;
using query::kTestSecond;

struct MatrixAnswer {
  v1::MatrixHead head;
  std::vector<v1::MatrixRow> rows;
  std::vector<std::vector<float>> values;
  std::vector<std::set<uint32_t>> non_finite;  // Columns.
};

// A sample of the plain list.
struct Recorded {
  std::optional<uint32_t> task;
  std::string host;
  std::string chip;
  uint32_t attempt = 0;
  int64_t time_ns = 0;
  int64_t step = storage::kNoStep;
  double value = 0;
};

class MatrixFixture : public query::QueryStoreFixture {
 protected:
  explicit MatrixFixture(uint32_t seed = 1) : QueryStoreFixture(seed) {}

  // A layout with the metric "wait" once for each chip, or once without the label.
  storage::LayoutPtr Define(std::optional<uint32_t> task, uint32_t attempt, const std::string& host,
                            const std::vector<std::string>& chips) {
    storage::LayoutDefinition definition;
    definition.source = {"train", task, attempt, host};
    definition.has_steps = true;
    for (const std::string& chip : chips) {
      storage::Labels labels;
      if (!chip.empty()) labels = {{"chip", chip}};
      definition.series.push_back({{"wait", storage::MetricType::kGauge, "s", "Help."}, labels});
    }
    auto registered = store_->RegisterLayout(definition);
    EXPECT_TRUE(registered.ok()) << registered.status();
    return registered->layout;
  }

  // Row by row, to the store and to the model. A stale marker is no value.
  void Record(const storage::LayoutPtr& layout, const std::vector<int64_t>& times,
              const std::vector<int64_t>& steps, const std::vector<double>& values) {
    AppendDurably([&](storage::AppendDone done) {
      store_->AppendRows({}, layout, {times, steps, values}, std::move(done));
    });
    const storage::SeriesSource& source = *layout->series.front()->source;
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t row = i / layout->series.size();
      if (IsStaleMarker(values[i])) continue;
      const std::string chip(layout->series[i % layout->series.size()]->labels->Find("chip"));
      recorded_.push_back(
          {source.task, source.host, chip, layout->attempt, times[row], steps[row], values[i]});
    }
  }
  // Step i of `steps` is recorded i seconds after the base.
  void RecordTask(uint32_t task, const std::vector<int64_t>& steps,
                  const std::vector<double>& values) {
    std::vector<int64_t> times;
    for (size_t i = 0; i < steps.size(); ++i) {
      times.push_back(kTestBase + static_cast<int64_t>(i) * kTestSecond);
    }
    Record(Define(task, 0, absl::StrCat("host-", task), {""}), times, steps, values);
  }

  static v1::MatrixRequest Request(v1::Axis axis) {
    v1::MatrixRequest request;
    request.mutable_selector()->set_job("train");
    request.mutable_selector()->add_metrics("wait");
    request.set_axis(axis);
    return request;
  }

  absl::StatusOr<MatrixAnswer> Ask(const v1::MatrixRequest& request) {
    MatrixAnswer answer;
    bool headed = false;
    const absl::Status status =
        Matrix(*store_, request, limits_, control_, [&](const v1::MatrixResponse& response) {
          EXPECT_EQ(response.has_head(), !std::exchange(headed, true)) << "the head comes first";
          if (response.has_head()) {
            answer.head = response.head();
          } else {
            Take(response.rows(), &answer);
          }
          return absl::OkStatus();
        });
    if (!status.ok()) return status;
    return answer;
  }
  MatrixAnswer Get(const v1::MatrixRequest& request) {
    auto answer = Ask(request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : MatrixAnswer();
  }

  static void Take(const v1::MatrixRows& rows, MatrixAnswer* answer) {
    const int columns = static_cast<int>(answer->head.columns());
    EXPECT_EQ(rows.values_size(), rows.rows_size() * columns);
    for (int row = 0; row < rows.rows_size(); ++row) {
      answer->rows.push_back(rows.rows(row));
      const auto begin = rows.values().begin() + static_cast<ptrdiff_t>(row) * columns;
      answer->values.emplace_back(begin, begin + columns);
      std::set<uint32_t> columns_of_row;
      for (const uint32_t at : rows.non_finite()) {
        if (at / static_cast<uint32_t>(columns) == static_cast<uint32_t>(row)) {
          columns_of_row.insert(at % static_cast<uint32_t>(columns));
        }
      }
      answer->non_finite.push_back(std::move(columns_of_row));
    }
  }

  query::RangeLimits limits_;
  query::QueryControl control_;
  std::vector<Recorded> recorded_;
};

}  // namespace tacho::server::view
