#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

const Track* FindTrack(const Tracks& tracks, Signal signal) {
  const auto found = tracks.find(signal);
  if (found == tracks.end()) return nullptr;
  for (const Track& track : found->second) {
    if (!track.empty()) return &track;
  }
  return nullptr;
}

std::optional<double> Newest(const Tracks& tracks, Signal signal) {
  const Track* track = FindTrack(tracks, signal);
  if (track == nullptr) return std::nullopt;
  return track->points.back().value;
}

}  // namespace tacho::server::conditions
