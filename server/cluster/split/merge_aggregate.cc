#include "server/cluster/split/merge_aggregate.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/cluster/split/series_order.h"
#include "server/errors/grpc_status.h"
#include "server/query/range/pieces.h"
#include "server/query/range/range_plan.h"
#include "server/query/read/across.h"
#include "server/query/read/reduce.h"

namespace tacho::server::cluster {
namespace {

using query::FoldedPlace;

constexpr char kWhy[] =
    " of a split job does not follow from those of its parts: ask series by series, or one host "
    "with a matcher";

struct SeriesOrder {
  bool operator()(const v1::SeriesInfo& a, const v1::SeriesInfo& b) const {
    return ComesBefore(a, b);
  }
};
using Places = std::map<int64_t, FoldedPlace>;  // By the index of the bucket.
using Outputs = std::map<v1::SeriesInfo, Places, SeriesOrder>;

absl::Status CheckMergeable(const v1::RangeRequest& request) {
  switch (request.aggregation().function()) {
    case v1::AGGREGATE_FUNCTION_SUM:
    case v1::AGGREGATE_FUNCTION_AVG:
    case v1::AGGREGATE_FUNCTION_MIN:
    case v1::AGGREGATE_FUNCTION_MAX:
    case v1::AGGREGATE_FUNCTION_COUNT:
      break;
    default:
      return errors::InvalidFieldError(
          "aggregation.function",
          absl::StrCat(v1::AggregateFunction_Name(request.aggregation().function()), kWhy));
  }
  if (request.axis() != v1::AXIS_STEP) return absl::OkStatus();
  return errors::InvalidFieldError("axis", absl::StrCat("an aggregate by step", kWhy));
}

// All columns have as many entries as there are buckets.
absl::Status CheckBuckets(const v1::Buckets& buckets) {
  const int size = buckets.counts_size();
  const bool whole = buckets.first_times_unix_ns_size() == size &&
                     buckets.last_times_unix_ns_size() == size && buckets.avg_size() == size &&
                     buckets.non_finite_size() == size &&
                     (buckets.first_steps().empty() || buckets.first_steps_size() == size) &&
                     buckets.last_steps_size() == buckets.first_steps_size();
  return whole ? absl::OkStatus() : absl::InternalError("a member's buckets have gaps");
}

// What one member has in a bucket.
FoldedPlace PlaceOf(const v1::Buckets& buckets, int i) {
  FoldedPlace place;
  place.first_time_ns = buckets.first_times_unix_ns(i);
  place.last_time_ns = buckets.last_times_unix_ns(i);
  if (!buckets.first_steps().empty()) {
    place.first_step = buckets.first_steps(i);
    place.last_step = buckets.last_steps(i);
  }
  place.count = buckets.counts(i);
  place.non_finite = buckets.non_finite(i);
  place.value = buckets.avg(i);
  return place;
}

double Combined(v1::AggregateFunction function, double a, double b) {
  if (function == v1::AGGREGATE_FUNCTION_MIN) return query::Lower(a, b);
  if (function == v1::AGGREGATE_FUNCTION_MAX) return query::Higher(a, b);
  return a + b;
}

void Combine(v1::AggregateFunction function, const FoldedPlace& from, FoldedPlace* to) {
  to->value = Combined(function, to->value, from.value);
  to->first_time_ns = std::min(to->first_time_ns, from.first_time_ns);
  to->last_time_ns = std::max(to->last_time_ns, from.last_time_ns);
  if (from.first_step != storage::kNoStep) {
    const bool has = to->first_step != storage::kNoStep;
    to->first_step = has ? std::min(to->first_step, from.first_step) : from.first_step;
    to->last_step = has ? std::max(to->last_step, from.last_step) : from.last_step;
  }
  to->count += from.count;
  to->non_finite += from.non_finite;
}

class Aggregate {
 public:
  Aggregate(const v1::RangeRequest& request, const AskRange& ask, const SplitLimits& limits,
            const query::QueryControl& control)
      : request_(request), ask_(ask), limits_(limits), control_(control) {
    request_.set_packed(true);
    request_.clear_bucket_values();
  }

  // Nullopt: there are no samples.
  absl::StatusOr<std::optional<query::AxisExtent>> FindExtent() {
    v1::RangeRequest asked = request_;
    asked.mutable_aggregation()->clear_by();
    asked.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_COUNT);
    asked.set_max_points(1);
    query::AxisExtent extent;
    TACHO_RETURN_IF_ERROR(ForEachBucket(asked, [&](const v1::SeriesInfo&, const FoldedPlace& one) {
      extent.Include(one.first_time_ns);
      extent.Include(one.last_time_ns);
      return absl::OkStatus();
    }));
    if (extent.empty()) return std::nullopt;
    return extent;
  }

  absl::StatusOr<Outputs> Ask(v1::AggregateFunction function, const query::AxisExtent& extent) {
    v1::RangeRequest asked = request_;
    asked.mutable_aggregation()->set_function(function);
    asked.mutable_grid()->set_first_unix_ns(extent.first);
    asked.mutable_grid()->set_last_unix_ns(extent.last);
    const query::BucketGrid grid(extent, request_.max_points());
    width_ = grid.width();
    Outputs outputs;
    TACHO_RETURN_IF_ERROR(
        ForEachBucket(asked, [&](const v1::SeriesInfo& series, const FoldedPlace& one) {
          if (one.first_time_ns < extent.first || one.first_time_ns > extent.last) {
            return absl::InternalError("a member's bucket lies outside of the grid");
          }
          const int64_t index = grid.IndexOf(one.first_time_ns);
          const auto [place, is_new] = outputs[series].try_emplace(index, one);
          place->second.position = index;
          if (!is_new) Combine(function, one, &place->second);
          return absl::OkStatus();
        }));
    return outputs;
  }

  uint64_t width() const { return width_; }

 private:
  absl::Status ForEachBucket(
      const v1::RangeRequest& asked,
      absl::FunctionRef<absl::Status(const v1::SeriesInfo&, const FoldedPlace&)> take) {
    const auto parts = ask_(asked);
    for (const auto& part : parts) {
      v1::SeriesInfo series;
      for (v1::RangeResponse message;;) {
        TACHO_RETURN_IF_ERROR(control_.Check());
        TACHO_ASSIGN_OR_RETURN(const bool more, part->Next(&message));
        if (!more) break;
        TACHO_RETURN_IF_ERROR(TakePiece(message, &series, take));
        for (const v1::RangeResponse& piece : message.more()) {
          TACHO_RETURN_IF_ERROR(TakePiece(piece, &series, take));
        }
      }
    }
    return EndOfParts(parts);
  }

  absl::Status TakePiece(
      const v1::RangeResponse& piece, v1::SeriesInfo* series,
      absl::FunctionRef<absl::Status(const v1::SeriesInfo&, const FoldedPlace&)> take) {
    if (piece.has_series()) *series = piece.series();
    TACHO_RETURN_IF_ERROR(CheckBuckets(piece.buckets()));
    buckets_ += static_cast<uint64_t>(piece.buckets().counts_size());
    if (buckets_ > limits_.max_samples) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "more than max_samples = ", limits_.max_samples,
          " buckets come from all members together: ask for fewer points, groups or metrics"));
    }
    for (int i = 0; i < piece.buckets().counts_size(); ++i) {
      TACHO_RETURN_IF_ERROR(take(*series, PlaceOf(piece.buckets(), i)));
    }
    return absl::OkStatus();
  }

  v1::RangeRequest request_;
  const AskRange& ask_;
  const SplitLimits& limits_;
  const query::QueryControl& control_;
  uint64_t width_ = 0;
  uint64_t buckets_ = 0;
};

// What is in `sums` becomes averages. A row that comes between the two questions may make them
// differ: a place that only one has is left out.
void Divide(const Outputs& counts, Outputs* sums) {
  for (auto& [series, places] : *sums) {
    const auto of_series = counts.find(series);
    for (auto place = places.begin(); place != places.end();) {
      const bool known = of_series != counts.end() && of_series->second.contains(place->first);
      if (known) place->second.value /= of_series->second.at(place->first).value;
      place = known ? std::next(place) : places.erase(place);
    }
  }
}

}  // namespace

absl::Status MergeAggregate(const v1::RangeRequest& request, const AskRange& ask,
                            const SplitLimits& limits, const query::QueryControl& control,
                            query::Send<v1::RangeResponse> send) {
  // What is wrong with the request itself comes first.
  TACHO_ASSIGN_OR_RETURN(const query::RangePlan plan, query::MakeRangePlan(request, {}));
  TACHO_RETURN_IF_ERROR(CheckMergeable(request));
  Aggregate aggregate(request, ask, limits, control);
  TACHO_ASSIGN_OR_RETURN(const auto extent, aggregate.FindExtent());
  if (!extent.has_value()) return absl::OkStatus();
  const bool averages = plan.function == v1::AGGREGATE_FUNCTION_AVG;
  TACHO_ASSIGN_OR_RETURN(
      Outputs outputs,
      aggregate.Ask(averages ? v1::AGGREGATE_FUNCTION_SUM : plan.function, *extent));
  if (averages) {
    TACHO_ASSIGN_OR_RETURN(const Outputs counts,
                           aggregate.Ask(v1::AGGREGATE_FUNCTION_COUNT, *extent));
    Divide(counts, &outputs);
  }
  query::MessagePacking<v1::RangeResponse> packing(request.packed(), send);
  uint32_t index = 0;
  for (const auto& [series, places] : outputs) {
    std::vector<FoldedPlace> ordered;
    for (const auto& [position, place] : places) ordered.push_back(place);
    if (ordered.empty()) continue;
    const std::vector<query::Bucket> buckets = query::AsBuckets(ordered);
    for (size_t begin = 0; begin < buckets.size(); begin += query::kBucketsPerPiece) {
      const size_t count = std::min(buckets.size() - begin, query::kBucketsPerPiece);
      v1::RangeResponse piece;
      piece.set_series_index(index);
      if (begin == 0) {
        *piece.mutable_series() = series;
        piece.set_bucket_width(aggregate.width());
      }
      query::FillBuckets(std::span(buckets).subspan(begin, count), plan.bucket_values,
                         piece.mutable_buckets());
      TACHO_RETURN_IF_ERROR(packing.Add(std::move(piece)));
    }
    ++index;
  }
  return packing.Flush();
}

}  // namespace tacho::server::cluster
