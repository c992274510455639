// Surveys the series to lay out the columns, reads row after row into them, and sends the rows once
// all are known: the medians that a row's score compares with are over all of them.
#include "server/view/matrix.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/selection.h"
#include "server/query/read/series_scan.h"
#include "server/view/matrix_cells.h"
#include "server/view/matrix_grid.h"
#include "server/view/matrix_rows.h"

namespace tacho::server::view {
namespace {

struct MatrixPlan {
  query::RangePlan range;
  std::string rows;
  uint32_t max_columns = kDefaultMatrixColumns;
  v1::BucketValue value = v1::BUCKET_VALUE_MAX;
  uint32_t worst = 0;
  // The stretch of time that the columns cover; nullopt: where the samples are.
  std::optional<query::AxisExtent> asked;
};

absl::Status CheckFields(const v1::MatrixRequest& request) {
  if (request.selector().metrics_size() != 1) {
    return errors::InvalidFieldError("selector.metrics", "must be one metric");
  }
  if (request.max_columns() > kMaxMatrixColumns) {
    return errors::InvalidFieldError("max_columns", absl::StrCat("is at most ", kMaxMatrixColumns));
  }
  if (request.worst() > kMaxMatrixRows) {
    return errors::InvalidFieldError("worst", absl::StrCat("is at most ", kMaxMatrixRows));
  }
  switch (request.value()) {
    case v1::BUCKET_VALUE_UNSPECIFIED:
    case v1::BUCKET_VALUE_MIN:
    case v1::BUCKET_VALUE_MAX:
    case v1::BUCKET_VALUE_AVG:
    case v1::BUCKET_VALUE_LAST:
      return absl::OkStatus();
    default:
      return errors::InvalidFieldError("value",
                                       "must be one of BUCKET_VALUE_MIN, _MAX, _AVG and _LAST");
  }
}

// The selection and its conditions are those of a Range of single samples.
absl::StatusOr<MatrixPlan> PlanOf(const v1::MatrixRequest& request,
                                  const query::RangeLimits& limits) {
  TACHO_RETURN_IF_ERROR(CheckFields(request));
  v1::RangeRequest range;
  *range.mutable_selector() = request.selector();
  range.set_axis(request.axis());
  if (request.has_time()) *range.mutable_time() = request.time();
  if (request.has_steps()) *range.mutable_steps() = request.steps();
  range.set_attempts(request.attempts());
  range.set_counter(request.counter());
  range.set_max_series(kMaxMatrixSeries);
  MatrixPlan plan;
  TACHO_ASSIGN_OR_RETURN(plan.range, query::MakeRangePlan(range, limits));
  plan.rows = request.rows();
  if (request.max_columns() > 0) plan.max_columns = request.max_columns();
  if (request.value() != v1::BUCKET_VALUE_UNSPECIFIED) plan.value = request.value();
  plan.worst = request.worst();
  const v1::TimeRange& time = request.time();
  if (!plan.range.by_step && time.begin_unix_ns() != 0 && time.end_unix_ns() != 0) {
    plan.asked = query::AxisExtent{time.begin_unix_ns(), time.end_unix_ns() - 1};
  }
  return plan;
}

absl::StatusOr<std::vector<storage::SeriesPtr>> FindMatrixSeries(const storage::Store& store,
                                                                 const MatrixPlan& plan) {
  auto series = query::FindSelected(store, plan.range.selection, plan.range.max_series);
  if (!absl::IsResourceExhausted(series.status())) return series;
  return absl::ResourceExhaustedError(
      absl::StrCat("more than ", plan.range.max_series,
                   " series match: add matchers to the selector, for example on host or task"));
}

absl::Status CheckRows(const MatrixPlan& plan, size_t rows) {
  if (plan.worst > 0 || rows <= kMaxMatrixRows) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("there are ", rows, " rows, more than ", kMaxMatrixRows,
                   ": add matchers to the selector, or ask for the worst rows only"));
}

absl::Status CheckCells(const MatrixPlan& plan, uint64_t rows, uint32_t columns) {
  const uint64_t most = std::min(kMaxMatrixCells, plan.range.max_samples);
  if (rows * columns <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      rows, " rows of ", columns, " columns are more than ", most,
      " cells: lower max_columns, add matchers to the selector, or raise the collector's "
      "query.max_samples if that is the limit"));
}

// Reads the rows of one request.
class MatrixQuery {
 public:
  MatrixQuery(const storage::Store& store, MatrixPlan plan,
              const std::vector<storage::SeriesPtr>& series, std::vector<MatrixRowSource> sources,
              const query::QueryControl& control)
      : plan_(std::move(plan)),
        sources_(std::move(sources)),
        control_(control),
        view_(store.OpenView(series)) {}

  absl::Status Run();
  void FillHead(v1::MatrixHead* head) const;
  absl::Status SendRows(query::Send<v1::MatrixResponse> send) const;

 private:
  query::SeriesScan Scan(const storage::SeriesPtr& series, v1::CounterFunction counter) const;
  absl::Status Survey(MatrixSurvey* survey) const;
  // Adds the source's row to the table if it has a sample.
  absl::Status ReadRow(size_t source, MatrixRowCells* cells);
  std::vector<size_t> RowsToSend() const;
  void FillRow(size_t row, v1::MatrixRows* rows) const;

  const MatrixPlan plan_;
  const std::vector<MatrixRowSource> sources_;
  const query::QueryControl& control_;
  const std::unique_ptr<storage::ReadView> view_;  // Every pass sees the same.

  std::optional<MatrixGrid> grid_;  // nullopt: there is no sample.
  std::optional<MatrixTable> table_;
  std::vector<size_t> source_of_row_;  // The rows of the table have a sample.
  std::vector<std::string> host_of_row_;
  uint64_t samples_ = 0;
};

query::SeriesScan MatrixQuery::Scan(const storage::SeriesPtr& series,
                                    v1::CounterFunction counter) const {
  return query::SeriesScan(view_->Read(series, plan_.range.read), plan_.range.selection.attempts,
                           control_, counter);
}

absl::Status MatrixQuery::Survey(MatrixSurvey* survey) const {
  storage::Chunk chunk;
  for (const MatrixRowSource& source : sources_) {
    for (const storage::SeriesPtr& series : source.members) {
      // Growths of a counter lie where its samples do.
      query::SeriesScan scan = Scan(series, v1::COUNTER_FUNCTION_UNSPECIFIED);
      for (;;) {
        TACHO_ASSIGN_OR_RETURN(const bool more, scan.Next(survey->wanted(), &chunk));
        if (!more) break;
        survey->Add(chunk);
      }
      survey->EndSeries();
    }
    survey->EndRow();
  }
  return absl::OkStatus();
}

absl::Status MatrixQuery::ReadRow(size_t source, MatrixRowCells* cells) {
  cells->Clear();
  std::string host = sources_[source].host;
  std::optional<int64_t> newest_ns;
  for (const storage::SeriesPtr& series : sources_[source].members) {
    const auto add = [&](const storage::Chunk& chunk) {
      cells->Add(chunk);
      if (newest_ns.has_value() && chunk.last_time_ns() < *newest_ns) return;
      newest_ns = chunk.last_time_ns();
      host = series->source->host;
    };
    TACHO_RETURN_IF_ERROR(Scan(series, plan_.range.counter).ForEach(cells->wanted(), add));
  }
  if (cells->samples() == 0) return absl::OkStatus();
  samples_ += cells->samples();
  table_->AddRow(cells->cells());
  source_of_row_.push_back(source);
  host_of_row_.push_back(std::move(host));
  return absl::OkStatus();
}

absl::Status MatrixQuery::Run() {
  TACHO_RETURN_IF_ERROR(CheckRows(plan_, sources_.size()));
  MatrixSurvey survey(plan_.range.by_step);
  TACHO_RETURN_IF_ERROR(Survey(&survey));
  if (survey.empty()) return absl::OkStatus();
  grid_ = survey.Grid(plan_.max_columns, plan_.asked);
  TACHO_RETURN_IF_ERROR(CheckCells(plan_, sources_.size(), grid_->columns));
  table_.emplace(grid_->columns, plan_.value);
  MatrixRowCells cells(grid_->buckets, grid_->columns, plan_.range.by_step);
  for (size_t source = 0; source < sources_.size(); ++source) {
    TACHO_RETURN_IF_ERROR(ReadRow(source, &cells));
  }
  return table_->FindScores(control_);
}

void MatrixQuery::FillHead(v1::MatrixHead* head) const {
  if (!sources_.empty()) {
    query::ToProto(*sources_.front().members.front()->metric, head->mutable_metric());
  }
  if (!grid_.has_value()) return;
  head->set_first_position(grid_->first_position);
  head->set_width(grid_->width);
  head->set_columns(grid_->columns);
  head->mutable_median()->Add(table_->median().begin(), table_->median().end());
  head->mutable_low()->Add(table_->low().begin(), table_->low().end());
  head->mutable_high()->Add(table_->high().begin(), table_->high().end());
  head->set_rows_total(table_->rows().size());
  head->set_samples(samples_);
}

std::vector<size_t> MatrixQuery::RowsToSend() const {
  std::vector<size_t> order(table_->rows().size());
  std::iota(order.begin(), order.end(), 0);
  if (plan_.worst == 0) return order;
  std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
    const double score_a = table_->rows()[a].score;
    const double score_b = table_->rows()[b].score;
    if (std::isnan(score_a) || std::isnan(score_b))
      return !std::isnan(score_a) && std::isnan(score_b);
    return score_a > score_b;
  });
  if (order.size() > plan_.worst) order.resize(plan_.worst);
  return order;
}

void MatrixQuery::FillRow(size_t row, v1::MatrixRows* rows) const {
  const MatrixRowSource& source = sources_[source_of_row_[row]];
  const MatrixTable::Row& figures = table_->rows()[row];
  v1::MatrixRow* proto = rows->add_rows();
  if (source.task.has_value()) proto->set_task(*source.task);
  proto->set_host(host_of_row_[row]);
  proto->set_chip(source.chip);
  proto->set_label(source.label);
  proto->set_first_column(figures.first_column);
  proto->set_last_column(figures.last_column);
  proto->set_holes(figures.holes);
  proto->set_score(figures.score);
  proto->set_non_finite(figures.non_finite);
  const auto begin = static_cast<uint32_t>(rows->values_size());
  const auto values = table_->ValuesOf(row);
  rows->mutable_values()->Add(values.begin(), values.end());
  if (figures.non_finite == 0) return;
  for (uint32_t column = 0; column < values.size(); ++column) {
    if (table_->IsNonFinite(row, column)) rows->add_non_finite(begin + column);
  }
}

absl::Status MatrixQuery::SendRows(query::Send<v1::MatrixResponse> send) const {
  if (!grid_.has_value()) return absl::OkStatus();
  const size_t values = query::kPackedMessageBytes / sizeof(float);
  const size_t rows_each = std::max<size_t>(1, values / grid_->columns);
  const std::vector<size_t> order = RowsToSend();
  for (size_t begin = 0; begin < order.size(); begin += rows_each) {
    TACHO_RETURN_IF_ERROR(control_.Check());
    v1::MatrixResponse response;
    const size_t end = std::min(order.size(), begin + rows_each);
    for (size_t i = begin; i < end; ++i) FillRow(order[i], response.mutable_rows());
    TACHO_RETURN_IF_ERROR(send(std::move(response)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Matrix(const storage::Store& store, const v1::MatrixRequest& request,
                    const query::RangeLimits& limits, const query::QueryControl& control,
                    query::Send<v1::MatrixResponse> send) {
  TACHO_ASSIGN_OR_RETURN(MatrixPlan plan, PlanOf(request, limits));
  TACHO_RETURN_IF_ERROR(query::ChooseAttempts(store, plan.range.attempts, &plan.range.selection));
  plan.range.read.attempt = plan.range.selection.attempts.only();
  TACHO_ASSIGN_OR_RETURN(const auto series, FindMatrixSeries(store, plan));
  TACHO_ASSIGN_OR_RETURN(auto sources, MatrixRowsOf(plan.rows, series));
  MatrixQuery query(store, std::move(plan), series, std::move(sources), control);
  TACHO_RETURN_IF_ERROR(query.Run());
  v1::MatrixResponse response;
  query.FillHead(response.mutable_head());
  if (response.head().metric().name().empty()) {
    response.mutable_head()->mutable_metric()->set_name(request.selector().metrics(0));
  }
  TACHO_RETURN_IF_ERROR(send(std::move(response)));
  return query.SendRows(send);
}

}  // namespace tacho::server::view
