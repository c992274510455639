#include "client/ctl/call/curve_query.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/samples.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

// A bucket of the collector may lie across the border of two places: finer ones blur less.
constexpr size_t kBucketsPerPlace = 2;

constexpr double kPartsOfTime = 200;

// In halves, because the sum of two times is beyond 64 bits.
double Middle(int64_t first, int64_t last) {
  return static_cast<double>(first) + static_cast<double>(last - first) / 2;
}

}  // namespace

std::string CurveFolder::GroupOf(const v1::SeriesInfo& series) const {
  std::string text;
  for (const std::string& label : group_by_) {
    for (const auto& [name, value] : LabelsOf(series)) {
      if (name == label) absl::StrAppend(&text, text.empty() ? "" : " ", name, " ", value);
    }
  }
  return text;
}

absl::Status CurveFolder::Add(const v1::RangeResponse& response) {
  TACHO_RETURN_IF_ERROR(CheckColumns(response));
  if (response.has_series()) {
    const v1::SeriesInfo& series = response.series();
    const std::string group = GroupOf(series);
    const auto [found, added] =
        index_.emplace(std::make_pair(series.metric().name(), group), folded_.size());
    if (added) folded_.push_back({{series.metric(), group, 0, {}}, {}, {}});
    current_ = found->second;
    begins_ = true;
    ++folded_[current_].curve.series;
  }
  if (folded_.empty()) {
    return absl::InternalError("the collector's answer does not say which series it is of");
  }
  const v1::Points& points = response.points();
  for (int i = 0; i < points.times_unix_ns_size(); ++i) AddBucket(BucketOf(PointAt(points, i)));
  const v1::Buckets& buckets = response.buckets();
  for (int i = 0; i < buckets.first_times_unix_ns_size(); ++i) AddBucket(BucketAt(buckets, i));
  return absl::OkStatus();
}

void CurveFolder::AddBucket(const Bucket& bucket) {
  if (by_step_ && !bucket.first_step) return;
  const uint64_t finite = bucket.count - std::min(bucket.count, bucket.non_finite);
  const auto first = static_cast<double>(by_step_ ? *bucket.first_step : bucket.first_time_unix_ns);
  const auto last = static_cast<double>(by_step_ ? bucket.last_step.value_or(*bucket.first_step)
                                                 : bucket.last_time_unix_ns);
  std::vector<Reach>& reaches = folded_[current_].reaches;
  if (begins_) reaches.push_back({first, last, bucket.last});
  begins_ = false;
  reaches.back().last = last;
  reaches.back().value = bucket.last;
  folded_[current_].pieces.push_back(
      {.x = by_step_ ? Middle(*bucket.first_step, bucket.last_step.value_or(*bucket.first_step))
                     : Middle(bucket.first_time_unix_ns, bucket.last_time_unix_ns),
       .low = bucket.min,
       .high = bucket.max,
       .sum = finite > 0 ? bucket.avg * static_cast<double>(finite) : 0,
       .count = bucket.count,
       .non_finite = bucket.non_finite});
}

double CurveFolder::LastOf(const std::vector<Reach>& reaches) const {
  if (reaches.empty()) return kNotANumber;
  double first = reaches.front().first;
  double last = reaches.front().last;
  for (const Reach& reach : reaches) {
    first = std::min(first, reach.first);
    last = std::max(last, reach.last);
  }
  const double from = by_step_ ? last : last - (last - first) / kPartsOfTime;
  double sum = 0;
  double count = 0;
  for (const Reach& reach : reaches) {
    if (reach.last < from) continue;
    sum += reach.value;
    ++count;
  }
  return sum / count;
}

std::vector<CurvePoint> CurveFolder::Fold(std::vector<Piece> pieces) const {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.x < b.x; });
  std::set<double> places;
  for (const Piece& piece : pieces) {
    places.insert(piece.x);
    if (places.size() > points_) break;
  }
  const bool exact = places.size() <= points_;
  const double begin = pieces.empty() ? 0 : pieces.front().x;
  const double width =
      pieces.empty() ? 1 : (pieces.back().x - begin) / static_cast<double>(points_);
  // The place of a piece on the axis; pieces of one place are folded together.
  const auto place = [&](const Piece& piece) {
    if (exact) return piece.x;
    return std::min(std::floor((piece.x - begin) / width), static_cast<double>(points_ - 1));
  };
  std::vector<CurvePoint> points;
  for (size_t first = 0; first < pieces.size();) {
    CurvePoint point;
    double sum = 0;
    double sum_of_x = 0;
    size_t next = first;
    for (; next < pieces.size() && place(pieces[next]) == place(pieces[first]); ++next) {
      const Piece& piece = pieces[next];
      point.low = std::fmin(point.low, piece.low);
      point.high = std::fmax(point.high, piece.high);
      point.count += piece.count;
      point.non_finite += piece.non_finite;
      sum += piece.sum;
      sum_of_x += piece.x - begin;
    }
    const uint64_t finite = point.count - std::min(point.count, point.non_finite);
    // Rounding must not take an average out of its band.
    if (finite > 0) {
      point.middle = std::clamp(sum / static_cast<double>(finite), point.low, point.high);
    }
    point.x = exact ? pieces[first].x : begin + sum_of_x / static_cast<double>(next - first);
    points.push_back(point);
    first = next;
  }
  // The axis reaches as far as the data do.
  if (points.size() > 1) {
    points.front().x = begin;
    points.back().x = pieces.back().x;
  }
  return points;
}

std::vector<MetricCurve> CurveFolder::Finish() && {
  std::vector<MetricCurve> curves;
  for (Folded& folded : folded_) {
    folded.curve.points = Fold(std::move(folded.pieces));
    folded.curve.last = LastOf(folded.reaches);
    if (!folded.curve.points.empty()) curves.push_back(std::move(folded.curve));
  }
  return curves;
}

absl::StatusOr<std::vector<MetricCurve>> ReadCurves(QueryClient& client, v1::RangeRequest request,
                                                    size_t points,
                                                    const std::vector<std::string>& group_by) {
  request.set_max_points(static_cast<uint32_t>(kBucketsPerPlace * points));
  CurveFolder folder(request.axis() == v1::AXIS_STEP, points, group_by);
  absl::Status folding;
  absl::Status status = client.Range(request, [&](const v1::RangeResponse& response) {
    folding = folder.Add(response);
    return folding.ok();
  });
  status.Update(folding);
  if (!status.ok()) return status;
  return std::move(folder).Finish();
}

}  // namespace tacho::ctl
