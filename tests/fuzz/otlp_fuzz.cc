// Requests of OpenTelemetry come from whoever may write. The first byte says whether the rest is
// packed.
#include <bit>
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
  interop::OtlpMemory memory(2000);
  const auto result = interop::ReadOtlpMetrics(body, {"service.name"}, &memory);
  // What comes again becomes the same, by what is known of it.
  for (int again = 0; again < 2; ++again) {
    if (result.ok()) result->noted.TakeBack(&memory);
    const auto known = interop::ReadOtlpMetrics(body, {"service.name"}, &memory);
    TACHO_CHECK(known.ok() == result.ok());
    if (!known.ok()) continue;
    TACHO_CHECK(known->write.series.size() == result->write.series.size());
    for (size_t i = 0; i < known->write.series.size(); ++i) {
      TACHO_CHECK(known->write.series[i].key == result->write.series[i].key);
    }
    for (size_t i = 0; i < known->write.samples.size(); ++i) {
      const auto& a = known->write.samples[i];
      const auto& b = result->write.samples[i];
      TACHO_CHECK(a.time_ns == b.time_ns);
      TACHO_CHECK(std::bit_cast<uint64_t>(a.value) == std::bit_cast<uint64_t>(b.value));
    }
  }
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
