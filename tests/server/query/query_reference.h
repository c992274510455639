// The right answer to a Range request, worked out the plain way: all samples in lists, every
// definition of query.proto written down as it reads, nothing shared with the code under test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tacho/v1/query.pb.h"

namespace tacho::server::reference {

struct Row {
  int64_t time_ns = 0;
  std::optional<int64_t> step;
  uint32_t attempt = 0;
  double value = 0;
};

struct Series {
  std::string metric;
  uint32_t task = 0;
  std::string host;
  std::vector<std::pair<std::string, std::string>> labels;
  // By (time, attempt, step), each of these once.
  std::vector<Row> rows;
};

// A number that additions in another order may make a little different: `scale` is the sum of the
// magnitudes that went into it.
struct Number {
  double value = 0;
  double scale = 0;
};

struct Point {
  int64_t time_ns = 0;
  std::optional<int64_t> step;
  uint32_t attempt = 0;
  Number value;
};

struct Bucket {
  int64_t first_time_ns = 0;
  int64_t last_time_ns = 0;
  std::optional<int64_t> first_step;
  std::optional<int64_t> last_step;
  Number min, max, avg, sum, first, last;
  uint64_t count = 0;
  uint64_t non_finite = 0;
};

struct Output {
  std::string name;  // As NameOf() makes it of an answer.
  std::vector<Point> points;
  std::vector<Bucket> buckets;
};

// Answers a valid request on the job whose series, in the store's order, are these. Only = and !=
// on "attempt" count in the selector.
std::vector<Output> Answer(const std::vector<Series>& job, const v1::RangeRequest& request);

std::string NameOf(const v1::SeriesInfo& info);

}  // namespace tacho::server::reference
