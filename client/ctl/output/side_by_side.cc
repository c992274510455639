#include "client/ctl/output/side_by_side.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace tacho::ctl {
namespace {

std::optional<int64_t> Key(const Point& point, bool by_step) {
  return by_step ? point.step : std::optional<int64_t>(point.time_unix_ns);
}

int64_t Begin(const Bucket& bucket, bool by_step) {
  return by_step ? bucket.first_step.value_or(0) : bucket.first_time_unix_ns;
}

int64_t End(const Bucket& bucket, bool by_step) {
  return by_step ? bucket.last_step.value_or(0) : bucket.last_time_unix_ns;
}

}  // namespace

std::optional<Lines> JoinPoints(const std::vector<SampleSeries>& series, bool by_step) {
  std::map<int64_t, std::vector<size_t>> by_key;
  size_t longest = 0;
  for (size_t i = 0; i < series.size(); ++i) {
    longest = std::max(longest, series[i].points.size());
    for (size_t j = 0; j < series[i].points.size(); ++j) {
      const std::optional<int64_t> key = Key(series[i].points[j], by_step);
      if (!key) return std::nullopt;
      std::vector<size_t>& line = by_key[*key];
      line.resize(series.size(), kNone);
      if (line[i] != kNone) return std::nullopt;
      line[i] = j;
    }
  }
  if (by_key.size() > longest + longest / 2) return std::nullopt;
  Lines lines;
  for (auto& [key, line] : by_key) lines.push_back(std::move(line));
  return lines;
}

std::optional<Lines> JoinBuckets(const std::vector<SampleSeries>& series, bool by_step) {
  if (series.empty()) return Lines();
  const size_t count = series[0].buckets.size();
  Lines lines;
  int64_t reached = INT64_MIN;
  for (const SampleSeries& one : series) {
    if (one.buckets.size() != count) return std::nullopt;
  }
  for (size_t n = 0; n < count; ++n) {
    int64_t begin = INT64_MAX;
    int64_t end = INT64_MIN;
    for (const SampleSeries& one : series) {
      begin = std::min(begin, Begin(one.buckets[n], by_step));
      end = std::max(end, End(one.buckets[n], by_step));
    }
    if (n > 0 && begin <= reached) return std::nullopt;
    reached = end;
    lines.emplace_back(series.size(), n);
  }
  return lines;
}

}  // namespace tacho::ctl
