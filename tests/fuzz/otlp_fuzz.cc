// Requests of OpenTelemetry come from whoever may write. The first byte says whether the rest is
// packed.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "server/interop/formats/packed_body.h"
#include "server/interop/otlp_metrics.h"

namespace interop = tacho::server::interop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string body(reinterpret_cast<const char*>(data + 1), size - 1);
  if ((data[0] & 1) != 0) {
    auto unpacked = interop::UnpackGzip(body, size_t{1} << 20);
    if (!unpacked.ok()) return 0;
    body = *std::move(unpacked);
  }
  interop::DeltaSums deltas(100);
  const auto result = interop::ReadOtlpMetrics(body, {"service.name"}, &deltas);
  if (!result.ok()) return 0;
  const interop::OtlpMetrics& read = *result;
  size_t samples = 0;
  for (const auto& series : read.write.series) {
    TACHO_CHECK(series.first == samples);
    samples += series.count;
    TACHO_CHECK(interop::LabelsOfKey(series.key).ok());
  }
  TACHO_CHECK(samples == read.write.samples.size());
  return 0;
}
