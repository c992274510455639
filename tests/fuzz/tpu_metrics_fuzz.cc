// What other processes give the source of TPUs: libtpu's answers and their environment.
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "agent/sources/chips/chip_holders.h"
#include "agent/sources/chips/chip_inventory.h"
#include "agent/sources/rows/sample.h"
#include "agent/sources/tpu/tpu_names.h"
#include "agent/sources/tpu/tpu_places.h"
#include "agent/sources/tpu/tpu_points.h"
#include "agent/sources/tpu/tpu_record.h"
#include "agent/sources/tpu/tpu_totals.h"
#include "interop/tpu_metric_service.pb.h"

namespace {

// The same answer under each name, twice, from two ports.
void Record(const tpu::monitoring::runtime::TPUMetric& metric) {
  tacho::agent::TpuTotals totals(absl::FromUnixSeconds(1));
  tacho::agent::TpuDevices devices;
  for (int round = 0; round < 2; ++round) {
    tacho::agent::Sample sample;
    tacho::agent::TpuLook look;
    look.chips = &sample;
    look.totals = &totals;
    tacho::agent::TpuAnswers answers(2);
    answers[0].first = "a";
    answers[1].first = "b";
    for (auto& [address, answer] : answers) {
      for (const tacho::agent::TpuMetric& one : tacho::agent::TpuMetrics()) {
        answer.metrics[one.libtpu] = tacho::agent::DecodeTpuMetric(metric);
      }
    }
    tacho::agent::RecordGroup(answers, {{"a", "b"}, {0, 1}, {7}}, 2, &devices, &look);
    tacho::agent::RecordTotals(totals, &sample);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const google::protobuf::LogSilencer no_lines_about_what_is_no_utf8;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  tpu::monitoring::runtime::MetricResponse response;
  if (response.ParseFromString(bytes)) Record(response.metric());
  tpu::monitoring::runtime::GetTpuRuntimeStatusResponse states;
  if (states.ParseFromString(bytes)) tacho::agent::CoreStatesOf(states);
  tacho::agent::ParseEnviron(bytes);
  tacho::agent::ParseTpuPorts(bytes);
  tacho::agent::ChipInventory inventory(bytes);
  inventory.Place({{{"0000:00:05", 0}}}, 0);
  return 0;
}
