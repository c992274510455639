// Reads StatsD (https://github.com/statsd/statsd/blob/master/docs/metric_types.md) and DogStatsD up
// to 1.3 (https://docs.datadoghq.com/developers/dogstatsd/datagram_shell/).
//
//   train.loss:0.25:0.5|h|@0.1|#run:a,eval|c:ci-1f2e|T1700000000
//   |          |        | |    |           |         time in seconds, of counters and gauges
//   |          |        | |    |           container, left out
//   |          |        | |    tags; one without a value has the value "true"
//   |          |        | sample rate, above 0 and at most 1
//   |          |        c counter, g gauge, s set; ms timer, h histogram, d distribution
//   |          values; a set has one text
//   name
//
// Tags are labels, with _ for each character that a label's name may not have; two tags that
// become one label have their values joined by ';'. Lines end at a newline. Events (_e{) and
// service checks (_sc|) are counted and left out. A line that breaks a rule is left out whole, and
// the lines after it are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::server::interop {

// The name and the tags of a line, as it has them. Datagrams that clients send are about as long.
inline constexpr size_t kMaxStatsdKeyBytes = 8192;
inline constexpr size_t kMaxStatsdTags = 128;

struct StatsdPoint {
  enum class Kind : uint8_t { kCounter, kGauge, kTimer, kSet };

  Kind kind = Kind::kCounter;
  std::string name;
  std::string labels;          // In the order of their names, as AppendLabel() writes them.
  std::vector<double> values;  // Finite. None of a set.
  std::string member;          // Of a set.
  bool changes = false;        // A gauge: the values have signs.
  bool milliseconds = false;   // A timer: the type is ms.
  double rate = 1;             // The sender kept this part of what it had.
  std::optional<int64_t> time_ns;
};

struct StatsdLines {
  std::vector<StatsdPoint> points;
  uint64_t events = 0;
  uint64_t service_checks = 0;
  // Lines that cannot be read, and why the first of them cannot.
  uint64_t rejected = 0;
  std::string problem;
};

// `text` is not trusted, and the result does not point into it. Time and memory are linear in its
// size, but for the tags, which are bounded.
StatsdLines ReadStatsdLines(absl::string_view text);

}  // namespace tacho::server::interop
