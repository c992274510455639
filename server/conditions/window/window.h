// The recent past of one job, as detectors see it: plain data, immutable once made, without clocks,
// locks or I/O. Whoever makes one bounds it; a detector takes what there is.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/conditions/window/signal.h"
#include "server/ingest/agent_ledger.h"

namespace tacho::server::conditions {

inline constexpr int64_t kNoPointStep = INT64_MIN;

struct Point {
  int64_t time_ns = 0;  // Since the Unix epoch.
  int64_t step = kNoPointStep;
  double value = 0;  // Non-finite ones are here too.

  friend bool operator==(const Point&, const Point&) = default;
};

// One signal of one subject: ascending by time; of the newest attempt, but for chips and hosts,
// which have none.
struct Track {
  std::string metric;  // The name that stands for the signal here.
  std::vector<Point> points;

  bool empty() const { return points.empty(); }
};

// Tracks by signal. Several metrics may have the meaning of one signal (loss of two heads, counters
// per error kind): one track each.
using Tracks = std::map<Signal, std::vector<Track>>;

struct TaskWindow {
  std::optional<uint32_t> task;  // None: rows that name no task.
  std::string host;
  Tracks tracks;
  // Of any of its rows, signal or not.
  int64_t first_time_ns = 0;
  int64_t last_time_ns = 0;
  std::optional<int64_t> last_step;
  int64_t last_step_time_ns = 0;  // When a row first had last_step.
  bool ended = false;             // An event says so.
};

struct ChipWindow {
  std::string host;
  std::string chip;  // Its label.
  Tracks tracks;
};

struct HostWindow {
  std::string host;
  Tracks tracks;
  // Of the agent that sends for it; absent if none is known. Losses are those in the window.
  std::optional<ingest::AgentState> agent;
};

struct WindowEvent {
  int64_t time_ns = 0;
  int64_t step = kNoPointStep;
  uint32_t attempt = 0;
  std::optional<uint32_t> task;
  std::string host;
  // "attempt_started", "compile_started", "compiled", "checkpoint_started", "checkpoint_saved",
  // "restore_started", "checkpoint_restored", "eval_started", "eval_ended", "preempted", "ended", …
  std::string kind;
  std::map<std::string, std::string> fields;
};

// What went before, in few figures: of an earlier attempt of this job, or of another job with the
// same configuration fingerprint.
struct Baseline {
  std::string job;
  uint32_t attempt = 0;
  uint64_t steps = 0;           // That the figures are over.
  double step_time_median = 0;  // Seconds.
};

struct JobWindow {
  std::string job;
  uint32_t attempt = 0;  // The newest.
  int64_t now_ns = 0;
  bool ended = false;  // The attempt has ended by an event; `ended_kind` says how.
  int64_t attempt_started_ns = 0;
  std::map<std::string, std::string> attributes;  // Of the newest attempt; docs/notation.md.
  std::vector<WindowEvent> events;                // Ascending by time, of this attempt.
  std::vector<TaskWindow> tasks;                  // By task number.
  std::vector<ChipWindow> chips;                  // Of the hosts of its tasks; by host and chip.
  std::vector<HostWindow> hosts;                  // Of its tasks; by name.
  std::vector<Baseline> baselines;
  // How often each host was found straggling in other jobs, over what is remembered.
  std::map<std::string, uint32_t> straggles_elsewhere;
};

// The first track of a signal; nullptr if there is none or it is empty.
const Track* FindTrack(const Tracks& tracks, Signal signal);
// The newest value of it; nullopt if there is none.
std::optional<double> Newest(const Tracks& tracks, Signal signal);

}  // namespace tacho::server::conditions
