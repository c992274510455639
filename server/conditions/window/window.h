// The recent past of one job, as detectors see it: plain data, immutable once made, without clocks,
// locks or I/O. Its maker (WindowBuilder) limits its size.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/conditions/window/signal.h"
#include "server/conditions/window/task_pace.h"
#include "server/ingest/agent_ledger.h"

namespace tacho::server::conditions {

inline constexpr int64_t kNoPointStep = INT64_MIN;

inline double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

struct Point {
  int64_t time_ns = 0;  // Since the Unix epoch.
  int64_t step = kNoPointStep;
  double value = 0;  // May be NaN or infinite.

  friend bool operator==(const Point&, const Point&) = default;
};

// One signal of one task, chip or host, ascending by time. A task's track is of the newest attempt;
// chips and hosts have no attempts.
struct Track {
  std::string metric;  // The metric that has the meaning of the signal.
  std::vector<Point> points;

  bool empty() const { return points.empty(); }
};

// Tracks by signal. A signal has one track for each metric with its meaning, such as the losses of
// two heads.
using Tracks = std::map<Signal, std::vector<Track>>;

struct TaskWindow {
  std::optional<uint32_t> task;  // nullopt: its rows name no task.
  std::string host;
  Tracks tracks;
  // The following cover all its rows, whether they hold a signal or not.
  int64_t first_time_ns = 0;
  int64_t last_time_ns = 0;
  std::optional<int64_t> last_step;
  int64_t last_step_time_ns = 0;   // When a row first had last_step.
  int64_t first_step_time_ns = 0;  // Of its first row with a step.
  TaskPace pace;                   // Of its rows with a new step.
  bool ended = false;              // An event said so, and its rows do not contradict.
  bool imported = false;           // Nothing but an import sends for its host.

  // Whether a process may be behind it. Without one it is neither silent nor slow.
  bool lives() const { return !ended && !imported; }
};

// The end of a task whose process failed, or left its record open: proto/base/task_end.h.
struct TaskExit {
  std::optional<uint32_t> task;
  std::string host;
  int64_t time_ns = 0;
  std::map<std::string, std::string> fields;
};

struct ChipWindow {
  std::string host;
  std::string chip;  // Its label.
  Tracks tracks;
};

struct HostWindow {
  std::string host;
  Tracks tracks;
  // The agent that sends for it; nullopt if none is known. Its losses are those in the window.
  std::optional<ingest::AgentState> agent;
  bool imported = false;  // An import sends for it, and no agent.
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

// The speed of an earlier attempt of this job, or of another job with the same configuration
// fingerprint.
struct Baseline {
  std::string job;
  uint32_t attempt = 0;
  uint64_t steps = 0;           // The number of steps measured.
  double step_time_median = 0;  // Seconds.
};

struct JobWindow {
  std::string job;
  uint32_t attempt = 0;  // The newest.
  int64_t now_ns = 0;
  bool ended = false;           // The attempt has ended, by events; also if tasks of it failed.
  std::vector<TaskExit> exits;  // Of the attempt's tasks that failed, ascending by time.
  int64_t attempt_started_ns = 0;
  std::map<std::string, std::string> attributes;  // Those of the attempt; docs/notation.md.
  std::vector<WindowEvent> events;  // Those of the attempt but for ends of tasks, by time.
  std::vector<TaskWindow> tasks;    // Ascending by task number.
  std::vector<ChipWindow> chips;    // Those of its hosts; by host and chip.
  std::vector<HostWindow> hosts;    // The hosts of its tasks, by name.
  std::vector<Baseline> baselines;
  // In how many other jobs each host straggled lately.
  std::map<std::string, uint32_t> straggles_elsewhere;
};

// The first track of a signal; nullptr if there is none or it is empty.
const Track* FindTrack(const Tracks& tracks, Signal signal);
// The newest value of it; nullopt if there is none.
std::optional<double> Newest(const Tracks& tracks, Signal signal);

}  // namespace tacho::server::conditions
