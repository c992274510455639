#include "server/conditions/measures/input_stages.h"

#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "proto/base/quantile.h"
#include "server/conditions/window/signal_names.h"

namespace tacho::server::conditions {
namespace {

// A reason is a word for programs: a longer name is cut.
constexpr size_t kMaxReasonName = 32;
constexpr double kMinShareOfWait = 0.5;

// "decode" of "input_stage_decode_seconds". A configured metric may have any name: it is the stage.
std::string StageName(const std::string& metric) {
  // Tracks of labelled series have the labels behind the name.
  const std::string normalised = NormalisedName(metric.substr(0, metric.find('{')));
  absl::string_view name = normalised;
  if (absl::ConsumePrefix(&name, "input_stage_")) absl::ConsumeSuffix(&name, "_seconds");
  return std::string(name);
}

// "WaitingForToDevice" of "to_device".
std::string ReasonOf(absl::string_view name) {
  std::string reason = "WaitingFor";
  bool begins = true;
  for (const char c : name.substr(0, kMaxReasonName)) {
    if (c == '_') {
      begins = true;
      continue;
    }
    reason.push_back(begins ? absl::ascii_toupper(static_cast<unsigned char>(c)) : c);
    begins = false;
  }
  return reason;
}

// NaN if the track has no finite value since then.
double MeanSince(const Track& track, int64_t from_ns) {
  double sum = 0;
  size_t count = 0;
  for (auto point = track.points.rbegin(); point != track.points.rend(); ++point) {
    if (point->time_ns <= from_ns) break;
    if (!std::isfinite(point->value)) continue;
    sum += point->value;
    ++count;
  }
  return sum / static_cast<double>(count);
}

}  // namespace

std::optional<InputStage> LimitingStage(const JobWindow& window, int64_t from_ns,
                                        double wait_seconds) {
  std::map<std::string, std::vector<double>> by_stage;
  for (const TaskWindow& task : window.tasks) {
    const auto found = task.tracks.find(Signal::kInputStage);
    if (found == task.tracks.end()) continue;
    for (const Track& track : found->second) {
      const double mean = MeanSince(track, from_ns);
      if (std::isfinite(mean)) by_stage[StageName(track.metric)].push_back(mean);
    }
  }
  InputStage most;
  for (auto& [name, seconds] : by_stage) {
    const double median = Median(std::move(seconds));
    if (median > most.seconds) most = {.name = name, .reason = "", .seconds = median};
  }
  if (most.name.empty() || most.seconds < kMinShareOfWait * wait_seconds) return std::nullopt;
  most.reason = ReasonOf(most.name);
  return most;
}

}  // namespace tacho::server::conditions
