// Prometheus' milliseconds and our nanoseconds. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "server/promread/read_request.h"

namespace tacho::server::promread {

inline constexpr int64_t kNsPerMs = 1'000'000;

// The millisecond in which a time lies.
constexpr int64_t MsOf(int64_t time_ns) {
  return time_ns / kNsPerMs - (time_ns % kNsPerMs < 0 ? 1 : 0);
}

// Times in [begin_ns, end_ns), as storage::ReadOptions has them; INT64_MAX is "no end".
struct TimeSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// The times whose milliseconds the query includes. Empty (begin == end) if there are none.
TimeSpan TimeSpanOf(const ReadQuery& query);

// Leaves the last sample of each millisecond, because a series of Prometheus has one there. Samples
// come in ascending time. One thread at a time.
class LastOfEachMs {
 public:
  struct Sample {
    int64_t time_ms = 0;
    double value = 0;
  };

  // The sample before this one, if it was the last of its millisecond.
  std::optional<Sample> Add(int64_t time_ns, double value) {
    const Sample sample = {MsOf(time_ns), value};
    auto before = std::exchange(held_, sample);
    return before.has_value() && before->time_ms != sample.time_ms ? before : std::nullopt;
  }
  // The last one, if there is any.
  std::optional<Sample> Finish() { return std::exchange(held_, std::nullopt); }

 private:
  std::optional<Sample> held_;
};

}  // namespace tacho::server::promread
