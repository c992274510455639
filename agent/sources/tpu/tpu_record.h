// Turns the answers of one group of processes into values of chips and of the host.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/sources/rows/sample.h"
#include "agent/sources/tpu/tpu_client.h"
#include "agent/sources/tpu/tpu_names.h"
#include "agent/sources/tpu/tpu_places.h"
#include "agent/sources/tpu/tpu_totals.h"
#include "agent/sources/tpu/tpu_troubles.h"

namespace tacho::agent {

struct TpuLook {
  Sample* chips = nullptr;      // Where values go.
  TpuTotals* totals = nullptr;  // Where what is cumulative goes.
  TpuActivity activity;
  std::set<std::string> told;  // Labels of chips with a device that answered.
  std::map<std::string, std::vector<TpuPoint>> errors;  // Gauges of errors, by libtpu's names.
  size_t left_out = 0;
};

using TpuAnswers = std::vector<std::pair<std::string, TpuAnswer>>;  // By address, in order.

// `devices` is of the group. A device that several ports report counts once: the first port's.
void RecordGroup(const TpuAnswers& answers, const TpuGroup& group, int devices_per_chip,
                 TpuDevices* devices, TpuLook* look);

// The totals, as histograms with a sum, and counters.
void RecordTotals(const TpuTotals& totals, Sample* sample);

}  // namespace tacho::agent
