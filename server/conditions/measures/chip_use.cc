#include "server/conditions/measures/chip_use.h"

#include <cmath>

namespace tacho::server::conditions {

std::optional<double> MeanOver(const Track& track, int64_t from_ns, int64_t to_ns) {
  double sum = 0;
  size_t count = 0;
  for (auto point = track.points.rbegin(); point != track.points.rend(); ++point) {
    if (point->time_ns > to_ns) continue;
    if (point->time_ns <= from_ns) break;
    if (!std::isfinite(point->value)) continue;
    sum += point->value;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

std::vector<ChipMean> ChipMeans(const JobWindow& window, Signal signal, int64_t from_ns,
                                int64_t to_ns) {
  std::vector<ChipMean> means;
  for (const ChipWindow& chip : window.chips) {
    const Track* track = FindTrack(chip.tracks, signal);
    if (track == nullptr) continue;
    const std::optional<double> mean = MeanOver(*track, from_ns, to_ns);
    if (mean.has_value()) means.push_back({.chip = &chip, .value = *mean});
  }
  return means;
}

std::optional<double> MeanOf(const std::vector<ChipMean>& chips) {
  if (chips.empty()) return std::nullopt;
  double sum = 0;
  for (const ChipMean& chip : chips) sum += chip.value;
  return sum / static_cast<double>(chips.size());
}

}  // namespace tacho::server::conditions
