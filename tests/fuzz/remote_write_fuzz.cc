// Remote write comes from whoever may write. The first byte says which version the rest is, and
// whether it is packed; what is read has labels and samples that belong together, and maps or is
// refused.
#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/base/check.h"
#include "server/ingest/text_rules.h"
#include "server/interop/formats/label_mapping.h"
#include "server/interop/formats/packed_body.h"
#include "server/interop/formats/prometheus_write.h"

namespace interop = tacho::server::interop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const auto mapping = *interop::LabelMapping::Create({});
  const uint8_t how = data[0];
  std::string message(reinterpret_cast<const char*>(data + 1), size - 1);
  if ((how & 2) != 0) {
    auto unpacked = interop::UnpackSnappy(message, size_t{1} << 20);
    if (!unpacked.ok()) return 0;
    message = *std::move(unpacked);
  }
  const auto write =
      (how & 1) != 0 ? interop::ReadWriteRequest2(message) : interop::ReadWriteRequest1(message);
  if (!write.ok()) return 0;
  size_t samples = 0;
  for (const auto& series : write->series) {
    TACHO_CHECK(series.first == samples);
    samples += series.count;
    // It points to what is there.
    TACHO_CHECK(series.metric == nullptr ||
                series.metric->unit.size() <= tacho::server::ingest::kMaxUnitBytes);
    auto labels = interop::LabelsOfKey(series.key);
    if (!labels.ok()) continue;
    const auto mapped = mapping->Map(*std::move(labels));
    if (!mapped.ok() || mapped->dropped) continue;
    for (size_t i = 1; i < mapped->labels.size(); ++i) {
      TACHO_CHECK(mapped->labels[i - 1].first < mapped->labels[i].first);
    }
  }
  TACHO_CHECK(samples == write->samples.size());
  return 0;
}
