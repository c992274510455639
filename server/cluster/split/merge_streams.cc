#include "server/cluster/split/merge_streams.h"

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/cluster/split/part_merger.h"
#include "server/cluster/split/series_order.h"

namespace tacho::server::cluster {
namespace {

void Unpack(v1::ListSeriesResponse* message, std::deque<v1::SeriesInfo>* to) {
  for (v1::SeriesInfo& one : *message->mutable_series()) to->push_back(std::move(one));
}
void Unpack(v1::LatestResponse* message, std::deque<v1::LatestSample>* to) {
  for (v1::LatestSample& one : *message->mutable_samples()) to->push_back(std::move(one));
}
void Unpack(v1::IntegrateResponse* message, std::deque<v1::Integral>* to) {
  for (v1::Integral& one : *message->mutable_integrals()) to->push_back(std::move(one));
}
void Unpack(v1::RangeResponse* message, std::deque<v1::RangeResponse>* to) {
  google::protobuf::RepeatedPtrField<v1::RangeResponse> more;
  more.Swap(message->mutable_more());
  to->push_back(std::move(*message));
  for (v1::RangeResponse& one : more) to->push_back(std::move(one));
}
void Unpack(v1::ListEventsResponse* message, std::deque<v1::RecordedEvent>* to) {
  for (v1::RecordedEvent& one : *message->mutable_events()) to->push_back(std::move(one));
}

// Whether the next item of one member comes before that of another one.
bool IsBefore(const v1::SeriesInfo& a, const v1::SeriesInfo& b) { return ComesBefore(a, b); }
bool IsBefore(const v1::LatestSample& a, const v1::LatestSample& b) {
  return ComesBefore(a.series(), b.series());
}
bool IsBefore(const v1::Integral& a, const v1::Integral& b) {
  return ComesBefore(a.series(), b.series());
}
// A series that has begun goes on: its pieces follow each other.
bool IsBefore(const v1::RangeResponse& a, const v1::RangeResponse& b) {
  if (a.has_series() != b.has_series()) return b.has_series();
  return a.has_series() && ComesBefore(a.series(), b.series());
}
bool IsBefore(const v1::RecordedEvent& a, const v1::RecordedEvent& b) {
  return a.time_unix_ns() < b.time_unix_ns();
}

template <typename ResponseT, typename ItemT>
struct StreamOrder {
  using Response = ResponseT;
  using Item = ItemT;
  static void Unpack(Response* message, std::deque<Item>* to) {
    tacho::server::cluster::Unpack(message, to);
  }
  static bool IsBefore(const Item& a, const Item& b) {
    return tacho::server::cluster::IsBefore(a, b);
  }
};
template <typename Response, typename Item>
using Merger = PartMerger<StreamOrder<Response, Item>>;

absl::Status TooMany(absl::string_view what, uint64_t most) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "more than max_", what, " = ", most,
      " match at all members together: name metrics, add matchers, or raise max_", what));
}

// Counts series.
class SeriesCount {
 public:
  explicit SeriesCount(const SplitLimits& limits) : most_(limits.max_series) {}
  absl::Status Add() { return ++series_ <= most_ ? absl::OkStatus() : TooMany("series", most_); }
  uint64_t series() const { return series_; }

 private:
  const uint64_t most_;
  uint64_t series_ = 0;
};

uint64_t SamplesOf(const v1::RangeResponse& piece) {
  return static_cast<uint64_t>(piece.points().values_size()) +
         static_cast<uint64_t>(piece.buckets().counts_size());
}

void AddUp(const v1::Integral& from, v1::Integral* to) {
  to->set_series_count(to->series_count() + from.series_count());
  to->set_value(to->value() + from.value());
  to->set_covered_ns(to->covered_ns() + from.covered_ns());
  to->set_not_covered_ns(to->not_covered_ns() + from.not_covered_ns());
  to->set_gaps(to->gaps() + from.gaps());
  to->set_count(to->count() + from.count());
  to->set_non_finite(to->non_finite() + from.non_finite());
  if (from.has_first_unix_ns() &&
      (!to->has_first_unix_ns() || from.first_unix_ns() < to->first_unix_ns())) {
    to->set_first_unix_ns(from.first_unix_ns());
  }
  if (from.has_last_unix_ns() &&
      (!to->has_last_unix_ns() || from.last_unix_ns() > to->last_unix_ns())) {
    to->set_last_unix_ns(from.last_unix_ns());
  }
}

}  // namespace

absl::Status MergeSeries(const PartSources<v1::ListSeriesResponse>& parts,
                         const SplitLimits& limits, const query::QueryControl& control,
                         query::Send<v1::ListSeriesResponse> send) {
  query::MessagePacking<v1::ListSeriesResponse> packing(/*packed=*/true, send);
  SeriesCount count(limits);
  const auto take = [&](v1::SeriesInfo info) {
    TACHO_RETURN_IF_ERROR(count.Add());
    const size_t bytes = info.ByteSizeLong();
    *packing.message()->add_series() = std::move(info);
    return packing.Added(bytes);
  };
  Merger<v1::ListSeriesResponse, v1::SeriesInfo> merger(parts, control);
  TACHO_RETURN_IF_ERROR(merger.ForEach(take));
  return packing.Flush();
}

absl::Status MergeLatest(const PartSources<v1::LatestResponse>& parts, const SplitLimits& limits,
                         const query::QueryControl& control, query::Send<v1::LatestResponse> send) {
  query::MessagePacking<v1::LatestResponse> packing(/*packed=*/true, send);
  SeriesCount count(limits);
  const auto take = [&](v1::LatestSample sample) {
    TACHO_RETURN_IF_ERROR(count.Add());
    const size_t bytes = sample.ByteSizeLong();
    *packing.message()->add_samples() = std::move(sample);
    return packing.Added(bytes);
  };
  Merger<v1::LatestResponse, v1::LatestSample> merger(parts, control);
  TACHO_RETURN_IF_ERROR(merger.ForEach(take));
  return packing.Flush();
}

absl::Status MergeIntegrals(const PartSources<v1::IntegrateResponse>& parts, bool sum,
                            const SplitLimits& limits, const query::QueryControl& control,
                            query::Send<v1::IntegrateResponse> send) {
  query::MessagePacking<v1::IntegrateResponse> packing(/*packed=*/true, send);
  SeriesCount count(limits);
  v1::Integral held;  // Equal ones follow each other.
  bool holds = false;
  const auto release = [&]() -> absl::Status {
    if (!std::exchange(holds, false)) return absl::OkStatus();
    TACHO_RETURN_IF_ERROR(count.Add());
    const size_t bytes = held.ByteSizeLong();
    *packing.message()->add_integrals() = std::move(held);
    return packing.Added(bytes);
  };
  const auto take = [&](v1::Integral integral) {
    if (sum && holds && !IsBefore(held, integral) && !IsBefore(integral, held)) {
      AddUp(integral, &held);
      return absl::OkStatus();
    }
    TACHO_RETURN_IF_ERROR(release());
    held = std::move(integral);
    holds = true;
    return absl::OkStatus();
  };
  Merger<v1::IntegrateResponse, v1::Integral> merger(parts, control);
  TACHO_RETURN_IF_ERROR(merger.ForEach(take));
  TACHO_RETURN_IF_ERROR(release());
  return packing.Flush();
}

absl::Status MergeRange(const PartSources<v1::RangeResponse>& parts, bool packed,
                        const SplitLimits& limits, const query::QueryControl& control,
                        query::Send<v1::RangeResponse> send) {
  query::MessagePacking<v1::RangeResponse> packing(packed, send);
  SeriesCount count(limits);
  uint64_t samples = 0;
  const auto take = [&](v1::RangeResponse piece) {
    if (piece.has_series()) TACHO_RETURN_IF_ERROR(count.Add());
    if (count.series() == 0) {
      return absl::InternalError("a member's answer begins in the middle of a series");
    }
    samples += SamplesOf(piece);
    if (samples > limits.max_samples) return TooMany("samples", limits.max_samples);
    piece.set_series_index(static_cast<uint32_t>(count.series() - 1));
    return packing.Add(std::move(piece));
  };
  Merger<v1::RangeResponse, v1::RangeResponse> merger(parts, control);
  TACHO_RETURN_IF_ERROR(merger.ForEach(take));
  return packing.Flush();
}

absl::Status MergeEvents(const PartSources<v1::ListEventsResponse>& parts, uint32_t newest,
                         const query::QueryControl& control,
                         query::Send<v1::ListEventsResponse> send) {
  query::MessagePacking<v1::ListEventsResponse> packing(/*packed=*/true, send);
  const auto add = [&](v1::RecordedEvent event) {
    const size_t bytes = event.ByteSizeLong();
    *packing.message()->add_events() = std::move(event);
    return packing.Added(bytes);
  };
  std::deque<v1::RecordedEvent> kept;  // The newest; a request has a limit for their number.
  const auto take = [&](v1::RecordedEvent event) {
    if (newest == 0) return add(std::move(event));
    kept.push_back(std::move(event));
    if (kept.size() > newest) kept.pop_front();
    return absl::OkStatus();
  };
  Merger<v1::ListEventsResponse, v1::RecordedEvent> merger(parts, control);
  TACHO_RETURN_IF_ERROR(merger.ForEach(take));
  for (v1::RecordedEvent& event : kept) TACHO_RETURN_IF_ERROR(add(std::move(event)));
  return packing.Flush();
}

}  // namespace tacho::server::cluster
