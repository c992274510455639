// What one look at the chips of a machine has found, and the rows that it becomes.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rows/source.h"
#include "tacho/v1/types.pb.h"

namespace tacho::agent {

// A metric's definition; all of them are constants. Units as docs/notation.md has them.
struct ChipMetric {
  const char* name;
  v1::MetricType type;
  const char* unit;
  const char* help;
};

// In the order in which they are sent.
using ChipLabels = std::vector<std::pair<std::string, std::string>>;

struct ChipSeries {
  const ChipMetric* metric = nullptr;
  ChipLabels labels;
};
bool operator<(const ChipSeries& a, const ChipSeries& b);

class ChipSample {
 public:
  // Sixteen chips with everything that libtpu tells of them have half as many. Beyond, series are
  // left out and counted, lest a runtime that makes up labels make a layout that is refused.
  static constexpr size_t kMaxSeries = 4096;

  // The first value of a series stays.
  void Add(const ChipMetric& metric, ChipLabels labels, double value);

  const std::map<ChipSeries, double>& values() const { return values_; }
  size_t left_out() const { return left_out_; }

 private:
  std::map<ChipSeries, double> values_;
  size_t left_out_ = 0;
};

// Writes samples as rows of one layout, without steps, that grows as series appear. A series of
// which a sample has no value gets the stale marker: what is not known is never 0. One thread.
class ChipRows {
 public:
  // A series without a value for so long leaves the layout when the layout next changes.
  static constexpr absl::Duration kForget = absl::Minutes(10);

  ChipRows(std::string job, std::string host);

  // Nothing is written for an empty sample that follows an empty one.
  //   others  of the sink; nothing was written.
  absl::Status Write(absl::Time now, const ChipSample& sample, RowSink* sink);

 private:
  absl::Status Grow(absl::Time now, const ChipSample& sample, RowSink* sink);

  const std::string job_;
  const std::string host_;
  std::map<ChipSeries, absl::Time> columns_;  // When each had a value last.
  uint32_t layout_ = 0;
  bool last_was_empty_ = true;
};

}  // namespace tacho::agent
