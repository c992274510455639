// What a comparison asks of one of its subjects, whether this collector keeps its job or another
// member of the cluster does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/query/compare/compared_metric.h"
#include "server/query/read/reduce.h"
#include "server/query/read/sample.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// Time since the beginning, divided into buckets of equal width.
struct TimeGrid {
  AxisExtent extent;  // ns since the origin; not empty.
  uint32_t buckets = 1;

  BucketGrid buckets_of_it() const { return BucketGrid(extent, buckets); }
};

// A subject before any of its samples are read.
struct SubjectFacts {
  std::vector<v1::Metric> metrics;  // By name, ascending.
  uint64_t series = 0;
  // The attributes of its latest attempt.
  std::map<std::string, std::string> attributes;

  // Null if the subject has no such metric.
  const v1::Metric* Find(const std::string& metric) const {
    const auto found = std::lower_bound(
        metrics.begin(), metrics.end(), metric,
        [](const v1::Metric& one, const std::string& name) { return one.name() < name; });
    return found == metrics.end() || found->name() != metric ? nullptr : &*found;
  }
};

// One thread at a time. A metric that the subject does not have has no samples.
class SubjectSource {
 public:
  virtual ~SubjectSource() = default;

  virtual const SubjectFacts& facts() const = 0;

  // --- By time since the beginning: call FindOrigin() first ------------------------------------
  virtual absl::Status FindOrigin(const std::vector<std::string>& metrics) = 0;
  // Extends *extent to the samples of the metric, ns since the origin.
  virtual absl::Status IncludeExtent(const std::string& metric, AxisExtent* extent) = 0;
  // Positions are indexes of the grid, which covers the extent. `figures` may be null; else what
  // the samples come to is added, with ends that depend on the grid: a series takes part in an end
  // if it reaches into the first or the last bucket of the subject. `growth`: that of counters is
  // set, too.
  virtual absl::StatusOr<ComparedPlaces> PlacesByTime(const std::string& metric,
                                                      const TimeGrid& grid, bool growth,
                                                      ComparedFigures* figures) = 0;

  // --- By step ---------------------------------------------------------------------------------
  // Adds what the samples come to; `growth` as above.
  virtual absl::StatusOr<ComparedPlaces> PlacesByStep(const std::string& metric, bool growth,
                                                      ComparedFigures* figures) = 0;

  // Describes what was compared so far.
  virtual void Describe(v1::ComparedSubject* proto) const = 0;
};

}  // namespace tacho::server::query
