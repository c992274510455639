// What a load program measured, as one line of JSON on its standard output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::bench {

struct LoadReport {
  uint64_t samples = 0;
  uint64_t messages = 0;
  uint64_t retries = 0;  // Streams that an overloaded server ended.
  double seconds = 0;    // From the first message to the last acknowledgement.
  double client_cpu_seconds = 0;
  std::vector<float> latencies_ms;  // A message's, from sent to acknowledged. Any order.
};

// Sorts the latencies.
std::string ToJson(LoadReport* report);

// User and system time of this process so far.
double OwnCpuSeconds();

// A clock that only goes forward.
double MonotonicSeconds();

}  // namespace tacho::bench
