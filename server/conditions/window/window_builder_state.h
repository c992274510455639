// The state that a WindowBuilder keeps for each job, host and layout. Only window_builder*.cc
// include this file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/conditions/window/window_builder.h"

namespace tacho::server::conditions {

// The destination of the values of one column.
struct WindowBuilder::Target {
  uint32_t column = 0;
  double factor = 1;
  bool of_host = false;
  Track* track = nullptr;  // Valid in the epoch of its lookup; nullptr: no room.
};

struct WindowBuilder::LayoutTargets {
  uint64_t epoch = 0;  // 0: never resolved.
  std::vector<Target> targets;
};

struct WindowBuilder::HostState {
  HostWindow window;
  std::vector<ChipWindow> chips;  // By name.
};

struct WindowBuilder::JobState {
  JobWindow window;  // It holds hosts and chips only while it is visited.
  bool entered = false;
  bool sorted = true;
  absl::flat_hash_map<uint32_t, size_t> by_number;
  std::map<std::string, size_t, std::less<>> by_host;  // Tasks without a number.
  std::optional<uint32_t> lowest_task;
  absl::flat_hash_map<storage::LayoutId, LayoutTargets> layouts;
  uint64_t tracks = 0;           // Counts those of its tasks.
  uint64_t balanced_tracks = 0;  // The same at the last Rebalance().
  int64_t last_ns = 0;           // The time of its newest row or event.

  // Ends and beginnings of numbered tasks, the newest of each. They are no part of window.events,
  // which the ends of a large job would fill.
  // An event costs its sender little, so they are limited: more tasks than this have no end.
  struct End {
    TaskExit about;
    bool exited = false;
  };
  std::map<uint32_t, End> ends;
  std::map<uint32_t, int64_t> started_ns;
};

}  // namespace tacho::server::conditions
