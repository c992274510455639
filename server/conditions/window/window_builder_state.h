// What a WindowBuilder keeps of a job, of a host, of a layout. For window_builder*.cc alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/conditions/window/window_builder.h"

namespace tacho::server::conditions {

// Where the values of one column go.
struct WindowBuilder::Target {
  uint32_t column = 0;
  double factor = 1;
  bool of_host = false;
  Track* track = nullptr;  // Valid in the epoch in which it was found; nullptr: no room for it.
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
  JobWindow window;  // Its hosts and chips are borrowed while it is visited.
  bool entered = false;
  bool sorted = true;
  absl::flat_hash_map<uint32_t, size_t> by_number;
  std::map<std::string, size_t, std::less<>> by_host;  // Of tasks without a number.
  std::optional<uint32_t> lowest_task;
  absl::flat_hash_map<storage::LayoutId, LayoutTargets> layouts;
  uint64_t tracks = 0;           // Of its tasks.
  uint64_t balanced_tracks = 0;  // When they were last made to fit.
  int64_t last_ns = 0;           // Of rows and events.
};

}  // namespace tacho::server::conditions
