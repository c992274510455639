// The rows are queried before and after they are queried in buckets. Where both answers have the
// same rows, the buckets must be made of them. What a bucket has to hold is computed here from the
// model's values, without a look at how the collector computes it.
#include "tests/simulate/world/range_check.h"

#include <bit>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/query/range/range_query.h"

namespace tacho::simulate {
namespace {

using server::query::QueryControl;
using server::query::RangeQuery;

// The series of an answer: of a source, a column. A source that is restless has several of them.
struct SeriesName {
  Model::Source source;
  int column = 0;
  std::string host;
  auto operator<=>(const SeriesName&) const = default;
};

struct Point {
  int64_t time_ns = 0;
  int64_t step = 0;  // Also the row's number.
  double value = 0;
};

struct Answer {
  struct One {
    std::vector<Point> points;
    v1::Buckets buckets;
    uint64_t width = 0;
  };
  std::map<SeriesName, One> series;
  std::string wrong;
};

std::string TextOf(const SeriesName& name) {
  return absl::StrCat("column ", name.column, " of source ", name.source.second, " of agent ",
                      name.source.first);
}

void AddPoints(const v1::Points& points, std::vector<Point>* out) {
  for (int i = 0; i < points.values_size(); ++i) {
    out->push_back({.time_ns = points.times_unix_ns(i),
                    .step = i < points.steps_size() ? points.steps(i) : INT64_MIN,
                    .value = points.values(i)});
  }
}

absl::StatusOr<Answer> Ask(const storage::Store& store, const RangePart& part,
                           uint32_t max_points) {
  v1::RangeRequest request;
  request.mutable_selector()->set_job(part.job);
  request.mutable_time()->set_begin_unix_ns(part.begin_ns);
  request.mutable_time()->set_end_unix_ns(part.end_ns);
  request.set_axis(part.by_step ? v1::AXIS_STEP : v1::AXIS_TIME);
  request.set_max_points(max_points);
  request.set_attempts(part.effective ? v1::ATTEMPTS_EFFECTIVE : v1::ATTEMPTS_ALL);
  const QueryControl control;
  TACHO_ASSIGN_OR_RETURN(const auto query, RangeQuery::Create(store, request, {}, control));
  Answer answer;
  Answer::One* one = nullptr;
  v1::RangeResponse piece;
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(const bool more, query->Next(&piece));
    if (!more) return answer;
    if (piece.has_series()) {
      SeriesName name;
      if (!ParseMetric(piece.series().metric().name(), &name.source.second, &name.column)) {
        answer.wrong = "a range query returned a metric that nobody made";
        return answer;
      }
      name.source.first = static_cast<int>(piece.series().task());
      name.host = piece.series().host();
      if (answer.series.contains(name)) {
        answer.wrong = absl::StrCat("a range query returned ", TextOf(name), " twice");
        return answer;
      }
      one = &answer.series[name];
      one->width = piece.bucket_width();
    }
    if (one == nullptr) {
      answer.wrong = "the first piece of a range query does not say of which series it is";
      return answer;
    }
    AddPoints(piece.points(), &one->points);
    one->buckets.MergeFrom(piece.buckets());
  }
}

// Whether each row is right, and all are there that were returned before.
std::string WrongPoints(const Answer& answer, const Model& model, const RangePart& part,
                        const std::map<std::pair<Model::Source, int>, std::set<uint64_t>>& before) {
  std::map<std::pair<Model::Source, int>, std::set<uint64_t>> found;
  for (const auto& [name, one] : answer.series) {
    int64_t last = INT64_MIN;
    for (const Point& point : one.points) {
      std::string wrong = model.WrongSample(name.source, static_cast<uint64_t>(point.step),
                                            name.column, point.time_ns, point.value);
      if (!wrong.empty()) return absl::StrCat("by range: ", wrong);
      const int64_t at = part.by_step ? point.step : point.time_ns;
      if (at <= last || point.time_ns < part.begin_ns || point.time_ns >= part.end_ns) {
        return absl::StrCat("a range query returned row ", point.step, " of ", TextOf(name),
                            " where it does not belong");
      }
      last = at;
      found[{name.source, name.column}].insert(static_cast<uint64_t>(point.step));
    }
  }
  for (const auto& [column, numbers] : before) {
    if (JobOf(column.first.first, column.first.second) != part.job) continue;
    for (const uint64_t number : numbers) {
      if (found[column].contains(number)) continue;
      return absl::StrCat("a range query does not return row ", number, " of source ",
                          column.first.second, " of agent ", column.first.first,
                          ", which was returned before");
    }
  }
  return "";
}

bool SameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

// The bucket `index` against the points that must be its own.
std::string WrongBucket(const v1::Buckets& buckets, int index, const Point* points, size_t count) {
  if (buckets.counts(index) != count) return "another count";
  double min = std::nan("");
  double max = std::nan("");
  long double sum = 0;
  long double size = 0;
  uint64_t non_finite = 0;
  for (size_t i = 0; i < count; ++i) {
    const double value = points[i].value;
    if (!std::isfinite(value)) {
      ++non_finite;
      continue;
    }
    min = std::fmin(min, value);
    max = std::fmax(max, value);
    sum += value;
    size += std::fabs(value);
  }
  if (buckets.non_finite(index) != non_finite) return "another count of values not finite";
  if (non_finite == count) {
    if (!std::isnan(buckets.min(index)) || !std::isnan(buckets.max(index))) return "extremes";
  } else if (buckets.min(index) != min || buckets.max(index) != max) {
    return "other extremes";
  }
  if (std::fabs(buckets.sum(index) - sum) > size * 1e-12L) return "another sum";
  if (!SameBits(buckets.first(index), points[0].value) ||
      !SameBits(buckets.last(index), points[count - 1].value)) {
    return "other ends";
  }
  if (buckets.first_times_unix_ns(index) != points[0].time_ns ||
      buckets.last_times_unix_ns(index) != points[count - 1].time_ns) {
    return "other times";
  }
  return "";
}

// Whether the buckets are made of the points, each once.
std::string WrongBuckets(const Answer::One& one, const std::vector<Point>& points,
                         const RangePart& part) {
  const v1::Buckets& buckets = one.buckets;
  if (static_cast<uint32_t>(buckets.counts_size()) > part.max_points) return "too many buckets";
  size_t next = 0;
  for (int i = 0; i < buckets.counts_size(); ++i) {
    const int64_t last = part.by_step ? buckets.last_steps(i) : buckets.last_times_unix_ns(i);
    const size_t begin = next;
    while (next < points.size() &&
           (part.by_step ? points[next].step : points[next].time_ns) <= last) {
      ++next;
    }
    if (begin == next) return "an empty bucket";
    const int64_t first = part.by_step ? points[begin].step : points[begin].time_ns;
    if (one.width != 0 && static_cast<uint64_t>(last - first) >= one.width) return "a wide bucket";
    std::string wrong = WrongBucket(buckets, i, &points[begin], next - begin);
    if (!wrong.empty()) return absl::StrCat("bucket ", i, " has ", wrong);
  }
  return next == points.size() ? "" : "the last rows are in no bucket";
}

bool SameRows(const Answer& a, const Answer& b) {
  if (a.series.size() != b.series.size()) return false;
  for (const auto& [name, one] : a.series) {
    const auto other = b.series.find(name);
    if (other == b.series.end() || other->second.points.size() != one.points.size()) return false;
  }
  return true;  // Rows come, and go only by retention.
}

}  // namespace

absl::StatusOr<std::string> CheckRange(const storage::Store& store, const Model& model,
                                       const RangePart& part, uint64_t* samples) {
  std::map<std::pair<Model::Source, int>, std::set<uint64_t>> before;
  for (const Model::Source& source : model.Sources()) {
    if (source.second == 0) continue;  // Events.
    for (int column = 0; column < kColumns; ++column) {
      before[{source, column}] = model.Returned(source, column, part.begin_ns, part.end_ns);
    }
  }
  TACHO_ASSIGN_OR_RETURN(const Answer rows, Ask(store, part, 0));
  TACHO_ASSIGN_OR_RETURN(const Answer reduced, Ask(store, part, part.max_points));
  TACHO_ASSIGN_OR_RETURN(const Answer again, Ask(store, part, 0));
  for (const Answer* answer : {&rows, &reduced, &again}) {
    if (!answer->wrong.empty()) return answer->wrong;
  }
  for (const auto& [name, one] : rows.series) *samples += one.points.size();
  std::string wrong = WrongPoints(rows, model, part, before);
  if (wrong.empty()) wrong = WrongPoints(again, model, part, before);
  if (!wrong.empty() || !SameRows(rows, again)) return wrong;
  if (reduced.series.size() != rows.series.size()) return "buckets are of other series than rows";
  for (const auto& [name, one] : rows.series) {
    const auto buckets = reduced.series.find(name);
    if (buckets == reduced.series.end()) return absl::StrCat(TextOf(name), " has no buckets");
    wrong = WrongBuckets(buckets->second, one.points, part);
    if (!wrong.empty()) return absl::StrCat(TextOf(name), " in buckets: ", wrong);
  }
  return "";
}

}  // namespace tacho::simulate
