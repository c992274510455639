#include "tests/server/query/query_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/server/query/query_reference_grid.h"

namespace tacho::server::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool Finite(const Row& row) { return std::isfinite(row.value); }

// --- Which rows ------------------------------------------------------------------------------

using Extents = std::map<uint32_t, std::pair<int64_t, int64_t>>;

Extents StepsOfAttempts(const std::vector<Series>& job) {
  Extents extents;
  for (const Series& series : job) {
    for (const Row& row : series.rows) {
      if (!row.step) continue;
      auto& [low, high] = extents.try_emplace(row.attempt, *row.step, *row.step).first->second;
      low = std::min(low, *row.step);
      high = std::max(high, *row.step);
    }
  }
  return extents;
}

uint32_t HighestAttempt(const std::vector<Series>& job) {
  uint32_t highest = 0;
  for (const Series& series : job) {
    for (const Row& row : series.rows) highest = std::max(highest, row.attempt);
  }
  return highest;
}

struct Job {
  Extents steps_of_attempts;
  uint32_t highest_attempt = 0;
};

bool ChosenAttempt(const Job& job, const v1::RangeRequest& request, const Row& row) {
  for (const v1::Matcher& matcher : request.selector().matchers()) {
    const bool equal = absl::StrCat(row.attempt) == matcher.value();
    if (equal != (matcher.op() == v1::Matcher::OP_EQUAL)) return false;
  }
  if (request.attempts() == v1::ATTEMPTS_LATEST) return row.attempt == job.highest_attempt;
  if (request.attempts() != v1::ATTEMPTS_EFFECTIVE || !row.step) return true;
  for (const auto& [attempt, steps] : job.steps_of_attempts) {
    const bool encloses = *row.step >= steps.first && *row.step <= steps.second;
    if (attempt > row.attempt && encloses) return false;
  }
  return true;
}

bool InRange(const v1::RangeRequest& request, const Row& row) {
  const v1::TimeRange& time = request.time();
  if (request.has_time() && row.time_ns < time.begin_unix_ns()) return false;
  if (time.end_unix_ns() != 0 && row.time_ns >= time.end_unix_ns()) return false;
  if (!row.step) return !request.has_steps() && request.axis() != v1::AXIS_STEP;
  const v1::StepRange& steps = request.steps();
  if (steps.has_begin() && *row.step < steps.begin()) return false;
  return !steps.has_end() || *row.step <= steps.end();
}

std::vector<Row> Growth(const std::vector<Row>& rows, v1::CounterFunction function) {
  std::vector<Row> distinct;  // In time; of equal times the last.
  for (const Row& row : rows) {
    if (!distinct.empty() && distinct.back().time_ns == row.time_ns) distinct.pop_back();
    distinct.push_back(row);
  }
  std::vector<Row> grown;
  for (size_t i = 1; i < distinct.size(); ++i) {
    Row row = distinct[i];
    const Row& before = distinct[i - 1];
    const bool reset = row.attempt != before.attempt || row.value < before.value;
    if (!reset) row.value -= before.value;
    if (function == v1::COUNTER_FUNCTION_RATE) {
      row.value /= static_cast<double>(row.time_ns - before.time_ns) / 1e9;
    }
    grown.push_back(row);
  }
  return grown;
}

std::vector<Row> RowsOf(const Job& job, const Series& series, const v1::RangeRequest& request,
                        std::optional<uint32_t> attempt) {
  std::vector<Row> rows;
  for (const Row& row : series.rows) {
    if (attempt && row.attempt != *attempt) continue;
    if (InRange(request, row) && ChosenAttempt(job, request, row)) rows.push_back(row);
  }
  if (request.counter() != v1::COUNTER_FUNCTION_UNSPECIFIED) rows = Growth(rows, request.counter());
  return rows;
}

// --- Buckets ---------------------------------------------------------------------------------

int64_t Position(const Row& row, bool by_step) { return by_step ? *row.step : row.time_ns; }

// The rows are in the order of the axis, earlier ones first at equal places.
Bucket Reduce(const std::vector<Row>& rows) {
  Bucket bucket;
  bucket.first_time_ns = rows.front().time_ns;
  bucket.last_time_ns = rows.back().time_ns;
  bucket.first_step = rows.front().step;
  bucket.last_step = rows.back().step;
  bucket.first.value = rows.front().value;
  bucket.last.value = rows.back().value;
  bucket.min.value = bucket.max.value = bucket.avg.value = kNan;
  bucket.count = rows.size();
  long double sum = 0;
  uint64_t finite = 0;
  for (const Row& row : rows) {
    if (!Finite(row)) continue;
    bucket.min.value = finite == 0 ? row.value : std::min(bucket.min.value, row.value);
    bucket.max.value = finite == 0 ? row.value : std::max(bucket.max.value, row.value);
    sum += row.value;
    bucket.sum.scale += std::abs(row.value);
    ++finite;
  }
  bucket.non_finite = bucket.count - finite;
  bucket.sum.value = static_cast<double>(sum);
  bucket.avg.scale = bucket.sum.scale;
  if (finite > 0) bucket.avg.value = static_cast<double>(sum / finite);
  return bucket;
}

std::map<int64_t, std::vector<Row>> Divide(std::vector<Row> rows, const Grid& grid,
                                           const v1::RangeRequest& request) {
  const bool by_step = request.axis() == v1::AXIS_STEP;
  if (by_step) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return *a.step < *b.step; });
  }
  std::map<int64_t, std::vector<Row>> buckets;
  for (const Row& row : rows) {
    buckets[grid.BucketOf(Position(row, by_step))].push_back(row);
  }
  return buckets;
}

// As Divide(), but gaps that leave many buckets empty get none. `samples` says for how many a row
// stands. Sets the grid.
template <typename Samples>
std::map<int64_t, std::vector<Row>> DivideWithoutGaps(const std::vector<Row>& rows,
                                                      const v1::RangeRequest& request,
                                                      const Samples& samples, Grid* grid) {
  const bool by_step = request.axis() == v1::AXIS_STEP;
  const uint32_t max_points = request.max_points();
  std::set<int64_t> positions;
  uint64_t count = 0;
  for (const Row& row : rows) {
    positions.insert(Position(row, by_step));
    count += samples(row);
  }
  if (rows.empty()) return {};
  std::vector<Extent> stretches = {{*positions.begin(), *positions.rbegin()}};
  for (int round = 1;; ++round) {
    *grid = GridOf(stretches, max_points);
    std::vector<Extent> found;
    std::set<int64_t> used;
    for (const int64_t position : positions) {
      const int64_t bucket = grid->BucketOf(position);
      bool begins = used.empty() || bucket > *used.rbegin() + 1;
      for (const Extent& one : stretches) begins = begins || position == one.first;
      if (begins) found.emplace_back();
      found.back().Include(position);
      used.insert(bucket);
    }
    const bool wasteful = used.size() * 8 < std::min<uint64_t>(count, max_points) * 7;
    if (round == 4 || !wasteful || found.size() == stretches.size()) break;
    stretches = found;
  }
  return Divide(rows, *grid, request);
}

// --- Across series ---------------------------------------------------------------------------

struct Entry {
  Number value;
  std::vector<Row> rows;  // Under it.
};

bool SkipsNan(v1::AggregateFunction function) {
  switch (function) {
    case v1::AGGREGATE_FUNCTION_SUM:
    case v1::AGGREGATE_FUNCTION_AVG:
    case v1::AGGREGATE_FUNCTION_STDDEV:
    case v1::AGGREGATE_FUNCTION_COUNT:
      return false;
    default:
      return true;
  }
}

// With what the rows of one series in one time bucket enter.
Number EntryOf(const std::vector<Row>& rows, const v1::RangeRequest& request) {
  const auto function = request.aggregation().function();
  std::vector<double> values;
  Number entry{kNan, 0};
  for (const Row& row : rows) {
    if (std::isnan(row.value) && SkipsNan(function)) continue;
    values.push_back(row.value);
    if (Finite(row)) entry.scale += std::abs(row.value);
  }
  if (values.empty()) return entry;
  const bool increases = request.counter() == v1::COUNTER_FUNCTION_INCREASE;
  if (!increases && function == v1::AGGREGATE_FUNCTION_MIN) {
    entry.value = *std::min_element(values.begin(), values.end());
  } else if (!increases && function == v1::AGGREGATE_FUNCTION_MAX) {
    entry.value = *std::max_element(values.begin(), values.end());
  } else {
    // IEEE addition: infinities stay, of both signs they make NaN. The average is of the finite
    // values unless there are others.
    double sum = 0;
    for (const double value : values) sum += value;
    entry.value = increases || !std::isfinite(sum) ? sum : sum / static_cast<double>(values.size());
  }
  return entry;
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double rank = q * static_cast<double>(values.size() - 1);
  const double low = values[static_cast<size_t>(std::floor(rank))];
  const double high = values[static_cast<size_t>(std::ceil(rank))];
  if (low == high) return low;
  const double weight = rank - std::floor(rank);
  return low * (1 - weight) + high * weight;
}

Number Fold(const std::vector<Entry>& entries, const v1::Aggregation& aggregation) {
  std::vector<double> values;
  Number folded{kNan, 0};
  for (const Entry& entry : entries) {
    folded.scale += entry.value.scale;
    if (std::isfinite(entry.value.value)) folded.scale += std::abs(entry.value.value);
    if (std::isnan(entry.value.value) && SkipsNan(aggregation.function())) continue;
    values.push_back(entry.value.value);
  }
  if (values.empty()) return folded;
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  switch (aggregation.function()) {
    case v1::AGGREGATE_FUNCTION_SUM:
      folded.value = sum;
      break;
    case v1::AGGREGATE_FUNCTION_AVG:
      folded.value = mean;
      break;
    case v1::AGGREGATE_FUNCTION_MIN:
      folded.value = *std::min_element(values.begin(), values.end());
      break;
    case v1::AGGREGATE_FUNCTION_MAX:
      folded.value = *std::max_element(values.begin(), values.end());
      break;
    case v1::AGGREGATE_FUNCTION_COUNT:
      folded.value = static_cast<double>(values.size());
      break;
    case v1::AGGREGATE_FUNCTION_STDDEV:
      folded.value = std::sqrt(squares / static_cast<double>(values.size()));
      break;
    case v1::AGGREGATE_FUNCTION_P50:
      folded.value = Quantile(values, 0.5);
      break;
    case v1::AGGREGATE_FUNCTION_P90:
      folded.value = Quantile(values, 0.9);
      break;
    case v1::AGGREGATE_FUNCTION_P99:
      folded.value = Quantile(values, 0.99);
      break;
    default:
      folded.value = Quantile(values, aggregation.quantile());
  }
  return folded;
}

std::vector<Row> RowsUnder(const std::vector<Entry>& entries) {
  std::vector<Row> rows;
  for (const Entry& entry : entries) {
    rows.insert(rows.end(), entry.rows.begin(), entry.rows.end());
  }
  return rows;
}

uint64_t CountNonFinite(const std::vector<Row>& rows) {
  return static_cast<uint64_t>(
      std::count_if(rows.begin(), rows.end(), [](const Row& row) { return !Finite(row); }));
}

struct Group {
  std::vector<const Series*> members;
  std::optional<uint32_t> attempt;
};

// The buckets in which all groups meet: without the gaps of all series, if many would be empty.
Grid SharedGrid(const Job& job, const std::vector<Group>& groups, const Extent& extent,
                const v1::RangeRequest& request) {
  const uint32_t max_points = request.max_points();
  const Grid plain = GridOf({extent}, max_points);
  std::set<int64_t> times;
  std::set<int64_t> used;
  int64_t intervals = 0;
  int64_t between = 0;
  for (const Group& group : groups) {
    for (const Series* series : group.members) {
      for (auto& [index, rows] :
           Divide(RowsOf(job, *series, request, group.attempt), plain, request)) {
        used.insert(index);
        for (const Row& row : rows) times.insert(row.time_ns);
        intervals += static_cast<int64_t>(rows.size()) - 1;
        between += rows.back().time_ns - rows.front().time_ns;
      }
    }
  }
  if (max_points <= 1 || used.size() * 8 >= uint64_t{max_points} * 7 || intervals == 0) {
    return plain;
  }
  const int64_t interval = between / intervals;
  std::vector<Extent> stretches;
  for (const int64_t time : times) {
    const int64_t before = stretches.empty() ? time : stretches.back().last;
    const bool cut = plain.BucketOf(time) > plain.BucketOf(before) + 1 &&
                     time - before >= 5 * interval && interval > 0;
    if (stretches.empty() || cut) stretches.emplace_back();
    stretches.back().Include(time);
  }
  if (stretches.size() == 1) return plain;
  Grid grid = GridOf(stretches, max_points);
  grid.width = std::max(grid.width, 2 * interval);
  return grid;
}

Output FoldTimes(const Job& job, const Group& group, const Grid& grid,
                 const v1::RangeRequest& request) {
  std::map<int64_t, std::vector<Entry>> places;
  for (const Series* series : group.members) {
    for (auto& [index, rows] :
         Divide(RowsOf(job, *series, request, group.attempt), grid, request)) {
      places[index].push_back({EntryOf(rows, request), rows});
    }
  }
  Output output;
  for (const auto& [index, entries] : places) {
    Bucket& bucket = output.buckets.emplace_back();
    const std::vector<Row> rows = RowsUnder(entries);
    bucket.first_time_ns = INT64_MAX;
    bucket.last_time_ns = INT64_MIN;
    for (const Entry& entry : entries) {
      const Row& first = entry.rows.front();
      const Row& last = entry.rows.back();
      bucket.first_time_ns = std::min(bucket.first_time_ns, first.time_ns);
      bucket.last_time_ns = std::max(bucket.last_time_ns, last.time_ns);
      if (first.step)
        bucket.first_step = std::min(bucket.first_step.value_or(INT64_MAX), *first.step);
      if (last.step) bucket.last_step = std::max(bucket.last_step.value_or(INT64_MIN), *last.step);
    }
    bucket.count = rows.size();
    bucket.non_finite = CountNonFinite(rows);
    bucket.min = bucket.max = bucket.avg = bucket.sum = bucket.first = bucket.last =
        Fold(entries, request.aggregation());
  }
  return output;
}

Output FoldSteps(const Job& job, const Group& group, const v1::RangeRequest& request) {
  std::map<int64_t, std::vector<Entry>> places;
  for (const Series* series : group.members) {
    std::map<int64_t, Row> newest;  // By step.
    for (const Row& row : RowsOf(job, *series, request, group.attempt)) {
      Row& kept = newest.try_emplace(*row.step, row).first->second;
      if (std::tie(row.attempt, row.time_ns) >= std::tie(kept.attempt, kept.time_ns)) kept = row;
    }
    for (const auto& [step, row] : newest) places[step].push_back({{row.value, 0}, {row}});
  }
  Output output;
  for (const auto& [step, entries] : places) {
    Point& point = output.points.emplace_back();
    point.step = step;
    point.time_ns = INT64_MIN;
    for (const Entry& entry : entries) {
      point.time_ns = std::max(point.time_ns, entry.rows.front().time_ns);
      point.attempt = std::max(point.attempt, entry.rows.front().attempt);
    }
    point.value = Fold(entries, request.aggregation());
  }
  if (request.max_points() == 0 || output.points.empty()) return output;
  std::vector<Row> folded;
  std::map<int64_t, double> scales;  // By bucket.
  for (const Point& point : output.points) {
    folded.push_back({point.time_ns, point.step, point.attempt, point.value.value});
  }
  Grid grid;
  const auto divided = DivideWithoutGaps(
      folded, request, [&](const Row& row) { return RowsUnder(places[*row.step]).size(); }, &grid);
  for (const Point& point : output.points) {
    scales[grid.BucketOf(*point.step)] += point.value.scale;
  }
  output.points.clear();
  for (const auto& [index, rows] : divided) {
    Bucket bucket = Reduce(rows);
    bucket.count = bucket.non_finite = 0;
    for (const Row& row : rows) {
      const std::vector<Row> under = RowsUnder(places[*row.step]);
      bucket.count += under.size();
      bucket.non_finite += CountNonFinite(under);
    }
    for (Number* number :
         {&bucket.min, &bucket.max, &bucket.avg, &bucket.sum, &bucket.first, &bucket.last}) {
      number->scale += scales[index];
    }
    output.buckets.push_back(bucket);
  }
  return output;
}

Output Single(const Job& job, const Series& series, const v1::RangeRequest& request) {
  const bool by_step = request.axis() == v1::AXIS_STEP;
  std::vector<Row> rows = RowsOf(job, series, request, std::nullopt);
  Output output;
  if (request.max_points() > 0) {
    Grid grid;
    for (const auto& [index, in_it] : DivideWithoutGaps(
             rows, request, [](const Row&) { return uint64_t{1}; }, &grid)) {
      output.buckets.push_back(Reduce(in_it));
    }
    return output;
  }
  if (by_step) {
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return std::tie(*a.step, a.attempt, a.time_ns) < std::tie(*b.step, b.attempt, b.time_ns);
    });
  }
  for (const Row& row : rows) {
    output.points.push_back({row.time_ns, row.step, row.attempt, {row.value, 0}});
  }
  return output;
}

// --- Names and groups ------------------------------------------------------------------------

std::string LabelOf(const Series& series, const std::string& name) {
  if (name == "task") return absl::StrCat(series.task);
  if (name == "host") return series.host;
  for (const auto& [label, value] : series.labels) {
    if (label == name) return value;
  }
  return "";
}

v1::SeriesInfo InfoOf(const Group& group, const v1::RangeRequest& request) {
  const Series& first = *group.members.front();
  const bool folded = request.aggregation().function() != v1::AGGREGATE_FUNCTION_UNSPECIFIED;
  const auto& by = request.aggregation().by();
  const auto kept = [&](const std::string& name) {
    return !folded || std::count(by.begin(), by.end(), name) > 0;
  };
  v1::SeriesInfo info;
  info.mutable_metric()->set_name(first.metric);
  if (kept("task")) info.set_task(first.task);
  if (kept("host")) info.set_host(first.host);
  for (const auto& [name, value] : first.labels) {
    if (!kept(name)) continue;
    info.add_labels()->set_name(name);
    info.mutable_labels()->rbegin()->set_value(value);
  }
  if (group.attempt) {
    info.add_labels()->set_name("attempt");
    info.mutable_labels()->rbegin()->set_value(absl::StrCat(*group.attempt));
  }
  return info;
}

std::vector<Group> GroupsOf(const std::vector<Series>& job, const v1::RangeRequest& request) {
  std::vector<std::pair<std::vector<std::string>, Group>> groups;
  std::set<uint32_t> attempts;
  for (const Series& series : job) {
    for (const Row& row : series.rows) attempts.insert(row.attempt);
    std::vector<std::string> key = {series.metric};
    for (const std::string& name : request.aggregation().by()) {
      if (name != "attempt") key.push_back(LabelOf(series, name));
    }
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& group) { return group.first == key; });
    if (found == groups.end()) found = groups.insert(groups.end(), {key, {}});
    found->second.members.push_back(&series);
  }
  const auto& by = request.aggregation().by();
  const bool by_attempt = std::count(by.begin(), by.end(), "attempt") > 0;
  std::vector<Group> out;
  for (auto& [key, group] : groups) {
    if (!by_attempt) out.push_back(group);
    for (const uint32_t attempt : attempts) {
      if (!by_attempt) break;
      group.attempt = attempt;
      out.push_back(group);
    }
  }
  return out;
}

}  // namespace

std::string NameOf(const v1::SeriesInfo& info) {
  std::string name = absl::StrCat(info.metric().name(), "|");
  if (info.has_task()) absl::StrAppend(&name, info.task());
  absl::StrAppend(&name, "|", info.host());
  for (const v1::Label& label : info.labels()) {
    absl::StrAppend(&name, "|", label.name(), "=", label.value());
  }
  return name;
}

std::vector<Output> Answer(const std::vector<Series>& all, const v1::RangeRequest& request) {
  const Job job = {StepsOfAttempts(all), HighestAttempt(all)};
  std::vector<Output> outputs;
  const auto add = [&](const Group& group, Output output) {
    if (output.points.empty() && output.buckets.empty()) return;
    output.name = NameOf(InfoOf(group, request));
    outputs.push_back(std::move(output));
  };
  if (request.aggregation().function() == v1::AGGREGATE_FUNCTION_UNSPECIFIED) {
    for (const Series& series : all) {
      add({{&series}, std::nullopt}, Single(job, series, request));
    }
    return outputs;
  }
  const std::vector<Group> groups = GroupsOf(all, request);
  Extent extent;  // Covers all samples that the answer is made of.
  for (const Group& group : groups) {
    for (const Series* series : group.members) {
      for (const Row& row : RowsOf(job, *series, request, group.attempt)) {
        extent.Include(row.time_ns);
      }
    }
  }
  const bool by_step = request.axis() == v1::AXIS_STEP;
  Grid grid;
  if (!by_step && extent.first <= extent.last) grid = SharedGrid(job, groups, extent, request);
  for (const Group& group : groups) {
    add(group, by_step ? FoldSteps(job, group, request) : FoldTimes(job, group, grid, request));
  }
  return outputs;
}

}  // namespace tacho::server::reference
