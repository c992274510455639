#include "server/query/range/integrate_query.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/range/range_reader.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {
namespace {

constexpr long double kNsPerSecondLong = 1e9L;

// The selection and the groups of an integral are those of a Range with one bucket.
absl::StatusOr<RangePlan> PlanOf(const v1::IntegrateRequest& request, const RangeLimits& limits) {
  if (request.max_gap_ns() < 0) {
    return errors::InvalidFieldError("max_gap_ns", "must be positive, or 0 for one minute");
  }
  if (!request.sum() && request.by_size() > 0) {
    return errors::InvalidFieldError("by", "goes with sum only");
  }
  if (std::find(request.by().begin(), request.by().end(), "attempt") != request.by().end()) {
    return errors::InvalidFieldError("by", "cannot keep attempts apart: add a matcher on attempt");
  }
  v1::RangeRequest range;
  *range.mutable_selector() = request.selector();
  if (request.has_time()) *range.mutable_time() = request.time();
  if (request.has_steps()) *range.mutable_steps() = request.steps();
  range.set_attempts(request.attempts());
  range.set_max_series(request.max_series());
  range.set_max_points(1);
  if (request.sum()) {
    range.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_SUM);
    *range.mutable_aggregation()->mutable_by() = request.by();
  }
  return MakeRangePlan(range, limits);
}

}  // namespace

void TimeIntegral::Extend(const Point& from, const Point& to) {
  // Unsigned, so that all of int64 fits.
  const uint64_t ns = static_cast<uint64_t>(to.time_ns) - static_cast<uint64_t>(from.time_ns);
  if (ns > static_cast<uint64_t>(max_gap_ns_)) {
    not_covered_ns_ += ns;
    ++gaps_;
    return;
  }
  covered_ns_ += ns;
  const long double middle = (static_cast<long double>(from.value) + to.value) / 2;
  sum_ += middle * static_cast<long double>(ns);
}

void TimeIntegral::Add(const storage::SampleColumns& columns) {
  count_ += columns.size();
  for (size_t i = 0; i < columns.size(); ++i) {
    const Point point{columns.times[i], columns.values[i]};
    if (!std::isfinite(point.value)) {
      ++non_finite_;
      continue;
    }
    if (before_.has_value()) {
      Extend(*before_, point);
    } else {
      ++series_;
      first_ns_ = std::min(first_ns_.value_or(point.time_ns), point.time_ns);
    }
    last_ns_ = std::max(last_ns_.value_or(point.time_ns), point.time_ns);
    before_ = point;
  }
}

void TimeIntegral::Fill(v1::Integral* integral) const {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  integral->set_series_count(series_);
  integral->set_value(static_cast<double>(sum_ / kNsPerSecondLong));
  integral->set_covered_ns(static_cast<int64_t>(std::min(covered_ns_, kMost)));
  integral->set_not_covered_ns(static_cast<int64_t>(std::min(not_covered_ns_, kMost)));
  integral->set_gaps(gaps_);
  integral->set_count(count_);
  integral->set_non_finite(non_finite_);
  if (first_ns_.has_value()) integral->set_first_unix_ns(*first_ns_);
  if (last_ns_.has_value()) integral->set_last_unix_ns(*last_ns_);
}

std::string IntegralUnit(absl::string_view unit) {
  if (unit.empty() || unit == "1") return "s";
  if (unit == "Hz") return "1";
  if (absl::EndsWith(unit, "W") && unit.size() <= 2) {  // A prefix, as in kW, stays.
    return absl::StrCat(unit.substr(0, unit.size() - 1), "J");
  }
  if (unit.size() > 2 && absl::EndsWith(unit, "/s")) {
    return std::string(unit.substr(0, unit.size() - 2));
  }
  return unit.find('/') == absl::string_view::npos ? absl::StrCat(unit, ".s")
                                                   : absl::StrCat("(", unit, ").s");
}

absl::Status Integrate(const storage::Store& store, const v1::IntegrateRequest& request,
                       const RangeLimits& limits, const QueryControl& control,
                       Send<v1::IntegrateResponse> send) {
  TACHO_ASSIGN_OR_RETURN(RangePlan plan, PlanOf(request, limits));
  TACHO_RETURN_IF_ERROR(ChooseAttempts(store, plan.attempts, &plan.selection));
  plan.read.attempt = plan.selection.attempts.only();
  TACHO_ASSIGN_OR_RETURN(const auto series, FindSelected(store, plan.selection, plan.max_series));
  const RangeReader reader(plan, control, store.OpenView(series));
  const int64_t max_gap_ns = request.max_gap_ns() == 0 ? kDefaultMaxGapNs : request.max_gap_ns();
  MessagePacking<v1::IntegrateResponse> packing(/*packed=*/true, send);
  for (const RangeOutput& output : GroupSeries(plan, series, {})) {
    TimeIntegral integral(max_gap_ns);
    for (const storage::SeriesPtr& member : output.members) {
      TACHO_RETURN_IF_ERROR(
          reader.Scan(member, output.attempt).ForEach({}, [&](const storage::Chunk& chunk) {
            integral.Add(chunk.samples().columns);
          }));
      integral.EndSeries();
    }
    if (integral.count() == 0) continue;
    v1::Integral* const answer = packing.message()->add_integrals();
    FillInfo(plan, output, answer->mutable_series());
    integral.Fill(answer);
    answer->set_unit(IntegralUnit(answer->series().metric().unit()));
    TACHO_RETURN_IF_ERROR(packing.Added(answer->ByteSizeLong()));
  }
  return packing.Flush();
}

}  // namespace tacho::server::query
