// The rows are queried before and after they are queried in buckets. Where both answers have the
// same rows, the buckets must be made of them. What a bucket has to hold is computed here from the
// model's values, without a look at how the collector computes it. In between, the values of all
// agents at each step are queried as one.
#include "tests/simulate/world/range_check.h"

#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <string>
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

v1::RangeRequest RequestOf(const RangePart& part) {
  v1::RangeRequest request;
  request.mutable_selector()->set_job(part.job);
  request.mutable_time()->set_begin_unix_ns(part.begin_ns);
  request.mutable_time()->set_end_unix_ns(part.end_ns);
  request.set_axis(part.by_step ? v1::AXIS_STEP : v1::AXIS_TIME);
  request.set_attempts(part.effective ? v1::ATTEMPTS_EFFECTIVE : v1::ATTEMPTS_ALL);
  return request;
}

absl::StatusOr<Answer> Ask(const storage::Store& store, const RangePart& part,
                           uint32_t max_points) {
  v1::RangeRequest request = RequestOf(part);
  request.set_max_points(max_points);
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

// --- Values of all agents as one -----------------------------------------------------------------

// A column of sources of one number, which all agents have.
using Column = std::pair<int, int>;
using Steps = std::map<int64_t, double>;

struct Together {
  std::map<Column, Steps> columns;
  std::string wrong;
};

absl::StatusOr<Together> AskTogether(const storage::Store& store, const RangePart& part,
                                     v1::AggregateFunction function) {
  v1::RangeRequest request = RequestOf(part);
  request.set_axis(v1::AXIS_STEP);
  request.mutable_aggregation()->set_function(function);
  const QueryControl control;
  TACHO_ASSIGN_OR_RETURN(const auto query, RangeQuery::Create(store, request, {}, control));
  Together together;
  Steps* steps = nullptr;
  v1::RangeResponse piece;
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(const bool more, query->Next(&piece));
    if (!more) return together;
    Column column;
    if (piece.has_series()) {
      if (!ParseMetric(piece.series().metric().name(), &column.first, &column.second) ||
          together.columns.contains(column)) {
        together.wrong = absl::StrCat("an aggregate has the metric ",
                                      piece.series().metric().name(), " twice, or nobody made it");
        return together;
      }
      steps = &together.columns[column];
    }
    for (int i = 0; steps != nullptr && i < piece.points().values_size(); ++i) {
      if (i < piece.points().steps_size() &&
          steps->emplace(piece.points().steps(i), piece.points().values(i)).second) {
        continue;
      }
      together.wrong = "an aggregate by step has a step twice, or a row without one";
      return together;
    }
  }
}

// As query.proto defines the functions.
double Folded(const std::vector<double>& values, v1::AggregateFunction function) {
  if (function == v1::AGGREGATE_FUNCTION_COUNT) return static_cast<double>(values.size());
  double folded = function == v1::AGGREGATE_FUNCTION_SUM ? 0 : std::nan("");
  for (const double value : values) {
    if (function == v1::AGGREGATE_FUNCTION_SUM) folded += value;
    if (function == v1::AGGREGATE_FUNCTION_MIN) folded = std::fmin(folded, value);
    if (function == v1::AGGREGATE_FUNCTION_MAX) folded = std::fmax(folded, value);
  }
  return folded;
}

bool IsNear(double a, double b, const std::vector<double>& values) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  double size = 0;
  for (const double value : values) size += std::fabs(value);
  return std::fabs(a - b) <= size * 1e-12;
}

// Whether the aggregate is made of these rows, and of no others.
std::string WrongTogether(const Together& together, const Answer& rows,
                          v1::AggregateFunction function) {
  if (!together.wrong.empty()) return together.wrong;
  std::map<Column, std::map<int64_t, std::vector<double>>> expected;
  for (const auto& [name, one] : rows.series) {
    for (const Point& point : one.points) {
      expected[{name.source.second, name.column}][point.step].push_back(point.value);
    }
  }
  for (const auto& [column, steps] : together.columns) {
    if (steps.size() != expected[column].size()) {
      return absl::StrCat("the aggregate of column ", column.second, " of source ", column.first,
                          " has ", steps.size(), " steps, and its rows have ",
                          expected[column].size());
    }
  }
  for (const auto& [column, steps] : expected) {
    if (steps.empty()) continue;
    const auto found = together.columns.find(column);
    for (const auto& [step, values] : steps) {
      const double wanted = Folded(values, function);
      if (found == together.columns.end() || !found->second.contains(step) ||
          !IsNear(found->second.at(step), wanted, values)) {
        return absl::StrCat("the aggregate of column ", column.second, " of source ", column.first,
                            " at step ", step, " is not ", wanted);
      }
    }
  }
  return "";
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
  constexpr v1::AggregateFunction kFunctions[] = {
      v1::AGGREGATE_FUNCTION_SUM, v1::AGGREGATE_FUNCTION_COUNT, v1::AGGREGATE_FUNCTION_MIN,
      v1::AGGREGATE_FUNCTION_MAX};
  const v1::AggregateFunction function =
      kFunctions[static_cast<uint64_t>(part.end_ns / 1'000'000'000) % 4];
  TACHO_ASSIGN_OR_RETURN(const Together together, AskTogether(store, part, function));
  TACHO_ASSIGN_OR_RETURN(const Answer again, Ask(store, part, 0));
  for (const Answer* answer : {&rows, &reduced, &again}) {
    if (!answer->wrong.empty()) return answer->wrong;
  }
  for (const auto& [name, one] : rows.series) *samples += one.points.size();
  std::string wrong = WrongPoints(rows, model, part, before);
  if (wrong.empty()) wrong = WrongPoints(again, model, part, before);
  if (!wrong.empty() || !SameRows(rows, again)) return wrong;
  wrong = WrongTogether(together, rows, function);
  if (!wrong.empty()) return wrong;
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
