#include "agent/sources/tpu/tpu_troubles.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tacho::agent {
namespace {

// "megascale.error.detected.gauge" -> "tpu_megascale_error"
std::string KindOf(absl::string_view gauge) {
  return absl::StrCat("tpu_", gauge.substr(0, gauge.find('.')), "_error");
}

std::string TextOf(const std::string& gauge, const std::map<std::string, std::string>& labels) {
  std::string text = absl::StartsWith(gauge, "megascale") ? "libtpu detects an error between slices"
                                                          : "libtpu detects an error of the slice";
  for (const char* key : {"error_type", "type", "error_message"}) {
    const auto found = labels.find(key);
    if (found != labels.end()) absl::StrAppend(&text, ": ", found->second);
  }
  return text;
}

}  // namespace

bool TpuErrors::Tell(absl::Time now, const std::map<std::string, std::vector<TpuPoint>>& gauges,
                     bool nobody_up, ChipEvents* events) {
  std::set<Error> lasting;
  for (const Error& error : lasting_) {
    if (!nobody_up && !gauges.contains(error.first)) lasting.insert(error);
  }
  for (const auto& [gauge, points] : gauges) {
    for (const TpuPoint& point : points) {
      if (point.value != 0 && lasting.size() < kMaxErrors) lasting.emplace(gauge, point.labels);
    }
  }
  bool is_new = false;
  for (const Error& error : lasting) {
    if (lasting_.contains(error)) continue;
    is_new = true;
    events->Add(now, KindOf(error.first), TextOf(error.first, error.second), error.second);
  }
  for (const Error& error : lasting_) {
    if (lasting.contains(error)) continue;
    events->Add(now, absl::StrCat(KindOf(error.first), "_cleared"),
                absl::StrCat("no more: ", TextOf(error.first, error.second)), error.second);
  }
  lasting_ = std::move(lasting);
  return is_new;
}

size_t TpuErrors::Count(const std::string& gauge) const {
  return static_cast<size_t>(
      std::count_if(lasting_.begin(), lasting_.end(),
                    [&gauge](const Error& error) { return error.first == gauge; }));
}

}  // namespace tacho::agent
