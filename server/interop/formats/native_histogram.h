// Native histograms of Prometheus as the cumulative buckets of classic ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::server::interop {

// More than a sender makes (Prometheus: 160 on each side by default), little enough to work with.
inline constexpr size_t kMaxHistogramBuckets = 10'000;
inline constexpr int kMinSchema = -4;

// The upper bound of bucket `index` of a schema: 2^(index * 2^-schema).
double HistogramBound(int64_t schema, int64_t index);
// A bound as the label le has it: the shortest text that reads back as the same number, or "+Inf".
std::string BoundText(double bound);

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
