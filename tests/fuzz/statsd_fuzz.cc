// Datagrams of StatsD come from whoever reaches the port. What is read has finite values and tags
// that map or are refused; its sums stay inside their bound; and a line more changes none before.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/base/check.h"
#include "proto/base/stale_marker.h"
#include "server/interop/formats/label_mapping.h"
#include "server/interop/formats/statsd_lines.h"
#include "server/interop/statsd_sums.h"

namespace interop = tacho::server::interop;

namespace {

constexpr size_t kMaxBytes = 20'000;

void CheckFlush(const interop::ForeignWrite& write) {
  static const auto mapping = *interop::LabelMapping::Create({});
  TACHO_CHECK(write.series.size() == write.samples.size());
  for (const interop::ForeignSeries& series : write.series) {
    auto labels = interop::LabelsOfKey(series.key);
    TACHO_CHECK(labels.ok() && !labels->empty() && labels->front().first == interop::kNameLabel);
    TACHO_CHECK(mapping->Map(*std::move(labels)).ok());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const interop::StatsdLines lines = interop::ReadStatsdLines(text);
  TACHO_CHECK((lines.rejected > 0) == !lines.problem.empty());
  for (const interop::StatsdPoint& point : lines.points) {
    TACHO_CHECK(!point.name.empty() && point.rate > 0 && point.rate <= 1);
    TACHO_CHECK(point.values.empty() == (point.kind == interop::StatsdPoint::Kind::kSet));
    for (const double value : point.values) TACHO_CHECK(std::isfinite(value));
  }
  const auto more = interop::ReadStatsdLines(text + "\nlast:1|c");
  TACHO_CHECK(more.points.size() == lines.points.size() + 1 && more.rejected == lines.rejected);
  interop::StatsdSums sums({.max_series = 50, .max_bytes = kMaxBytes});
  absl::Time now = absl::UnixEpoch();
  for (int i = 0; i < 2; ++i) {
    sums.Add(lines.points, now);
    TACHO_CHECK(sums.size() <= 50 && sums.bytes() <= kMaxBytes);
    CheckFlush(sums.Flush(now, 7));
  }
  now += absl::Minutes(5);
  CheckFlush(sums.Flush(now, 7));
  TACHO_CHECK(sums.size() == 0 && sums.bytes() == 0);
  return 0;
}
