// Native histograms of Prometheus as the cumulative buckets of classic ones.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::server::interop {

struct ClassicHistogram {
  int64_t time_ms = 0;
  bool stale = false;  // The series has ended; the rest is empty.
  double count = 0;
  double sum = 0;
  // (upper bound as the label le writes it, samples at or below it), ascending; the last is "+Inf".
  // Only buckets with samples of their own.
  std::vector<std::pair<std::string, double>> buckets;
};

// `message` is a prometheus.Histogram or io.prometheus.write.v2.Histogram, whose fields 1 to 16 are
// the same.
//   INVALID_ARGUMENT  it is damaged, its schema is unknown, or its spans and buckets do not fit.
absl::StatusOr<ClassicHistogram> ReadNativeHistogram(absl::string_view message);

}  // namespace tacho::server::interop
