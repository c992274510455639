// Lines of InfluxDB's protocol come from whoever may write. The first byte says in which unit their
// times are, and whether they are packed. What is read has one finite sample a series, labels that
// map or are refused, and nothing of what follows it changes it.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/base/check.h"
#include "server/interop/formats/influx_lines.h"
#include "server/interop/formats/label_mapping.h"
#include "server/interop/formats/packed_body.h"

namespace interop = tacho::server::interop;

namespace {

void CheckRead(const interop::InfluxLines& lines) {
  static const auto mapping = *interop::LabelMapping::Create({});
  TACHO_CHECK(lines.write.series.size() == lines.write.samples.size());
  TACHO_CHECK((lines.rejected > 0) == !lines.problem.empty());
  for (size_t i = 0; i < lines.write.series.size(); ++i) {
    const interop::ForeignSeries& series = lines.write.series[i];
    TACHO_CHECK(series.first == i && series.count == 1);
    TACHO_CHECK(std::isfinite(lines.write.samples[i].value));
    auto labels = interop::LabelsOfKey(series.key);
    TACHO_CHECK(labels.ok() && !labels->empty() && labels->front().first == interop::kNameLabel);
    TACHO_CHECK(mapping->Map(*std::move(labels)).ok());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  if ((data[0] & 1) != 0) {
    auto unpacked = interop::UnpackEncoded("gzip", text, size_t{1} << 20);
    if (!unpacked.ok()) return 0;
    text = *std::move(unpacked);
  }
  const int64_t unit_ns = (data[0] & 2) != 0 ? 1'000'000'000 : 1;
  const auto lines = interop::ReadInfluxLines(text, unit_ns, 7);
  if (!lines.ok()) return 0;
  CheckRead(*lines);
  if (text.empty() || text.back() != '\n') return 0;
  // A text that ends with a whole line may be sent in one request with another.
  const auto more = interop::ReadInfluxLines(text + "\nlast value=1\n", unit_ns, 7);
  if (!more.ok()) return 0;
  CheckRead(*more);
  const size_t before = lines->write.series.size();
  // Unless its last line is one with an open quote.
  if (more->write.series.size() == before) return 0;
  TACHO_CHECK(more->write.series.size() == before + 1 && more->rejected == lines->rejected);
  for (size_t i = 0; i < before; ++i) {
    TACHO_CHECK(more->write.series[i].key == lines->write.series[i].key);
  }
  return 0;
}
