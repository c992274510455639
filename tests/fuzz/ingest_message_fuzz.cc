// What an agent sends: the look at a message's bytes before it is parsed, and admission after that.
// What is admitted has the shape that the store relies on.
//
// Input: two bytes with the length of the first message, then two messages. If the first is a
// layout, a batch in the second is admitted under it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/stubs/logging.h"
#include "prometheus/registry.h"
#include "proto/config/yaml_config.h"
#include "server/ingest/admission.h"
#include "server/ingest/wire_check.h"
#include "tacho/config/v1/collector.pb.h"

namespace {

using tacho::server::ingest::Admission;
using tacho::server::ingest::AdmittedLayout;
using tacho::server::ingest::StreamLayout;
using tacho::v1::ClientMessage;

constexpr uint64_t kMaxSeries = 64;

void Expect(bool holds) {
  if (!holds) std::abort();
}

const Admission& TheAdmission() {
  static const Admission* const admission = [] {
    tacho::config::v1::Collector config;
    Expect(tacho::config::ParseYaml("", "fuzz", &config).ok());
    config.mutable_ingest()->set_max_series_per_layout(kMaxSeries);
    auto* const limits = new tacho::server::ingest::IngestLimits(config.ingest());
    static auto* const registry = new prometheus::Registry;
    auto* const metrics = new tacho::server::ingest::IngestMetrics(registry);
    return new Admission({.limits = limits,
                          .retention = absl::Hours(24),
                          .now = [] { return absl::FromUnixSeconds(1'700'000'000); },
                          .metrics = metrics});
  }();
  return *admission;
}

// The same is found however the bytes are cut into blocks.
void CheckWire(absl::string_view bytes) {
  const auto is_sane = [bytes](int block) {
    google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()), block);
    return tacho::server::ingest::HasSaneParts(&in, bytes.size(), kMaxSeries);
  };
  Expect(is_sane(-1) == is_sane(3));
}

// As if a limit had refused some columns and folded others.
StreamLayout LayoutOf(const AdmittedLayout& admitted, uint8_t choice) {
  StreamLayout layout;
  layout.width = admitted.width;
  layout.has_steps = admitted.definition.has_steps;
  layout.whole = choice % 2 == 0;
  if (layout.whole) return layout;
  layout.folded.resize(2);
  for (uint32_t column = 0; column < layout.width; ++column) {
    switch ((choice + column) % 4) {
      case 0:
        layout.columns.push_back(column);
        break;
      case 1:
        ++layout.refused;
        break;
      default:
        layout.folded[column % 2].push_back(column);
    }
  }
  return layout;
}

void CheckBatch(const tacho::v1::Batch& batch, const StreamLayout& layout) {
  const auto rows = TheAdmission().AdmitBatch(batch, &layout);
  if (!rows.ok()) return Expect(!rows.status().message().empty());
  const auto window = TheAdmission().Window();
  tacho::server::ingest::RowSelection selection;
  selection.Select(*rows, layout, window);
  const auto& selected = selection.rows();
  const size_t width = layout.whole ? layout.width : layout.columns.size() + layout.folded.size();
  Expect(selected.values.size() == selected.times.size() * width);
  Expect(selected.steps.size() == (layout.has_steps ? selected.times.size() : 0));
  Expect(selected.times.size() + selection.future_rows() + selection.old_rows() ==
         rows->times.size());
  Expect(std::all_of(selected.times.begin(), selected.times.end(), [&window](int64_t time) {
    return time >= window.oldest_ns && time <= window.newest_ns;
  }));
}

StreamLayout CheckLayout(const tacho::v1::Layout& untrusted, uint8_t choice) {
  const auto admitted = TheAdmission().AdmitLayout(untrusted, 0);
  if (!admitted.ok()) return {};
  Expect(admitted->width == static_cast<uint32_t>(untrusted.series_size()));
  Expect(admitted->width <= kMaxSeries);
  Expect(admitted->definition.series.size() + admitted->invalid == admitted->width);
  Expect(admitted->columns.empty() ||
         admitted->columns.size() == admitted->definition.series.size());
  return LayoutOf(*admitted, choice);
}

void CheckOther(const ClientMessage& message) {
  const Admission& admission = TheAdmission();
  for (const bool hello_seen : {false, true}) {
    admission.CheckStream(message, hello_seen).IgnoreError();
  }
  admission.CheckHello(message.hello()).IgnoreError();
  if (const auto event = admission.AdmitEvent(message.event()); event.ok()) {
    Expect(event->time_ns >= 0);
  }
  if (const auto range = admission.AdmitGap(message.gap()); range.ok()) {
    Expect(range->first <= range->last);
  }
  admission.AdmitAttributes(message.attributes()).status().IgnoreError();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const google::protobuf::LogSilencer no_lines_about_what_is_no_utf8;
  if (size < 2) return 0;
  const size_t first = std::min<size_t>(data[0] + (size_t{data[1]} << 8), size - 2);
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  StreamLayout layout;
  for (const absl::string_view part : {bytes.substr(0, first), bytes.substr(first)}) {
    CheckWire(part);
    ClientMessage message;
    if (!message.ParseFromArray(part.data(), static_cast<int>(part.size()))) continue;
    CheckOther(message);
    if (message.has_layout()) layout = CheckLayout(message.layout(), data[0]);
    if (message.has_batch() && layout.width > 0) CheckBatch(message.batch(), layout);
  }
  return 0;
}
