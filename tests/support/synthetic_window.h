// Windows of a training job that never ran: a fleet with phases, noise, checkpoints, evaluations
// and a loss curve, and faults planted at known times, so that delay and false alarms of detectors
// can be measured. The same options and faults give the same windows, whatever is asked in which
// order.
//
// A synchronous step: each task waits for its input, computes, and waits in the collective until
// the last one has come; all of them leave it together. So step times are equal on all tasks, and a
// slow task is seen by what it does before the barrier, or by waiting least in it.
//
//   SyntheticFleet fleet({.tasks = 64}, {{.kind = FaultKind::kSlowHost, .host = 7,
//                                         .at_seconds = 900, .amount = 0.3}});
//   for (double t = 0; t < 1800; t += 10) DetectStraggling(fleet.At(t), {});
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/conditions/window/signal.h"
#include "server/conditions/window/window.h"
#include "server/phases/phases.h"

namespace tacho::testing {

enum class FaultKind : uint8_t {
  // Progress. The target is a host, or all of them.
  kSlowHost,      // Computes `amount` longer: 0.3 is 30 %.
  kNowAndThen,    // The same, in one step of three.
  kLongSave,      // Checkpoints that begin from then on take `amount` seconds longer, on all hosts.
  kSlowInput,     // Its input takes `amount` seconds longer.
  kHang,          // Stops; the rest wait in the collective. Goes on at `until_seconds`.
                  // With amount > 0 its row of the last whole step is missing, too.
  kDataStall,     // Input of all hosts stops, until `until_seconds`.
  kSlowComm,      // The collective itself takes `amount` seconds longer, for all.
  kSlowLink,      // The same, because of the link between the host's tasks and the next task.
  kInputBound,    // Waiting for input is `amount` of each step's time, on all hosts.
  kLowUse,        // Chips' duty cycle and matrix units are `amount` of what they were.
  kIdleChip,      // One chip of the host is not used.
  kSlowdown,      // Computing takes `amount` longer on all hosts.
  kMissingTask,   // Stops sending rows, its chips idle; the others go on. The agent stays.
  kNeverStarted,  // Was never there.
  kSilentTrainer,  // Stops sending rows, nothing else.
  kSilentAgent,    // Nothing comes from the host, and it is disconnected.
  kHostDies,       // Nothing comes from the host, which seems connected; the rest wait for it.
  kClockSkew,      // The host's clock is `amount` seconds ahead.
  kDataLoss,       // The agent reports `amount` rows lost, once, at `at_seconds`.
  // Hardware. The target is a host, and its first chip.
  kHbmLeak,       // `amount` bytes a second.
  kHostLeak,      // `amount` bytes a second of the host's memory.
  kThrottle,      // The clock is `amount` lower, hot, with its reason; computing is as much slower.
  kEcc,           // `amount` uncorrected errors a minute.
  kXid,           // `amount` a minute.
  kLinkErrors,    // `amount` a minute.
  kRemappedRows,  // `amount` a minute.
  // Curves. The target is the job, but for those that name a task.
  kNan,             // Loss and gradient norm of the target from there on; all others 2 steps later.
  kLossSpike,       // Loss is `amount` higher (1 = twice) for 5 steps.
  kDiverge,         // Loss grows by e every `amount` steps.
  kPlateau,         // Loss stays where it is.
  kOscillate,       // Loss goes up and down by `amount` of itself, every step.
  kGradExplode,     // Gradient norm grows by e every `amount` steps.
  kGradVanish,      // Gradient norm falls by e every `amount` steps.
  kFrozen,          // Updates are 0, the norm of the weights stays.
  kOverfit,         // Evaluation loss rises by `amount` each 100 steps, training loss falls on.
  kReplicaDiffers,  // The target's replica scalar is off by `amount`.
};

inline constexpr uint32_t kAllHosts = UINT32_MAX;

struct Fault {
  FaultKind kind = FaultKind::kSlowHost;
  uint32_t host = kAllHosts;
  std::optional<uint32_t> task;  // Only this task of its host; `host` is not read then.
  double at_seconds = 0;         // Since the attempt started.
  double until_seconds = std::numeric_limits<double>::infinity();
  double amount = 0;
};

struct FleetOptions {
  std::string job = "synthetic";
  uint32_t attempt = 0;
  uint64_t seed = 1;
  uint32_t tasks = 16;
  uint32_t tasks_per_host = 1;
  uint32_t chips_per_host = 4;
  bool synchronous = true;  // If not, no task waits for another, and step times differ.

  // Seconds.
  double compute = 0.8;
  double data_wait = 0.02;
  double comm = 0.1;  // The collective itself, once all are there.
  // Records it as "all-reduce", with its bytes, and within it a "ring": of each task an exchange
  // with its two neighbours, which takes a third of it.
  bool collectives = false;
  double comm_noise = 0.05;  // Of its recorded times; standard deviation, relative.
  double comm_bytes = 1e8;
  double noise = 0.01;         // Standard deviation of a task's step, relative.
  double host_spread = 0.005;  // Lasting differences between hosts, relative.
  double row_delay = 0.02;     // A row comes up to this long after its step.

  double init_seconds = 20;
  double compile_seconds = 40;  // The first step comes this much later.
  uint32_t first_step = 0;      // A restored attempt begins elsewhere.
  uint32_t checkpoint_every = 200;
  double checkpoint_seconds = 6;
  // Only the first task writes checkpoints, and the others wait in a barrier with busy chips. If
  // not, all write, and their chips are idle.
  bool first_task_saves = false;
  uint32_t eval_every = 500;
  double eval_seconds = 15;
  uint32_t log_every = 1;
  std::optional<uint32_t> steps;  // Ends well after so many.
  // Events of initialising, compiling, checkpoints and evaluations: of the first task, or of all
  // tasks if they are not synchronous.
  bool events = true;

  double sample_seconds = 10;    // Between samples of chips and hosts.
  double window_seconds = 1800;  // How far back a window reaches,
  size_t max_points = 1000;      // and how many points a track has at most: the newest.
  double tokens_per_step = 4096;

  std::set<server::conditions::Signal> omit;      // Signals that nobody records.
  std::map<std::string, std::string> attributes;  // Besides `tasks` and `config_fingerprint`.
  std::vector<server::conditions::Baseline> baselines;
  std::map<std::string, uint32_t> straggles_elsewhere;
};

// "host0007"
std::string SyntheticHost(uint32_t host);

// Immutable once made; may be shared between threads.
class SyntheticFleet {
 public:
  // The fleet is laid out until `until_seconds`; later windows show it without further steps.
  SyntheticFleet(FleetOptions options, std::vector<Fault> faults, double until_seconds = 3600);

  // As seen `seconds` after the attempt started.
  server::conditions::JobWindow At(double seconds) const;

  // The step in flight at a time; nullopt before the first and after the last.
  std::optional<uint32_t> StepAt(double seconds) const;
  // When a step was left by all: its rows have that time, and up to row_delay.
  std::optional<double> EndOf(uint32_t step) const;
  // Whether the step in flight of a task has a checkpoint or an evaluation.
  bool PausesAt(double seconds, uint32_t task = 0) const;
  // When the first checkpoint after then begins; nullopt: none does.
  std::optional<double> CheckpointAfter(double seconds) const;
  // Since the epoch.
  static int64_t Time(double seconds);

  const FleetOptions& options() const { return options_; }

 private:
  friend class SyntheticFollower;

  // Times of one step of all tasks, or of one task's if they are not synchronous. Seconds since the
  // start.
  struct Step {
    double start = 0;
    double barrier = 0;  // When the last one came to it.
    double end = 0;
    double checkpoint = 0;
    double eval = 0;
    double stall = 0;  // Time lost by a hang that has passed.
    bool done = true;  // If not, it hangs since `start` and never ends.
  };
  using Steps = std::vector<Step>;

  void LayOut(Steps& steps, uint32_t first_task, uint32_t last_task, double until) const;
  const Steps& StepsOf(uint32_t task) const;
  uint32_t HostOf(uint32_t task) const { return task / options_.tasks_per_host; }
  bool Hits(const Fault& fault, uint32_t task) const;
  // The sum of what such faults do to a task at a time; 0 if there are none.
  double Amount(FaultKind kind, uint32_t task, double seconds) const;
  const Fault* Find(FaultKind kind, uint32_t task, double seconds) const;
  double DataWait(uint32_t task, size_t index, double start) const;
  double Compute(uint32_t task, size_t index, double start) const;
  // The collective of a step, without waiting.
  double Comm(double start) const;
  void FillCollectives(uint32_t task, size_t index, int64_t time_ns,
                       server::conditions::Tracks* tracks) const;
  // No rows of it come from then on.
  double SilentFrom(uint32_t task) const;

  // The steps of which rows have come, with the times of those rows.
  std::vector<std::pair<size_t, double>> RowsOf(uint32_t task, double now) const;

  void FillTask(uint32_t task, double now, const server::phases::PhaseCover& phases,
                server::conditions::JobWindow* window) const;
  void FillStep(uint32_t task, size_t index, int64_t time_ns,
                server::conditions::Tracks* tracks) const;
  void FillCurves(uint32_t task, size_t index, int64_t time_ns,
                  server::conditions::Tracks* tracks) const;
  void FillHost(uint32_t host, double now, server::conditions::JobWindow* window) const;
  void FillChips(uint32_t host, double now, server::conditions::JobWindow* window) const;
  // The agent of a host, but for the time at which it was heard last.
  server::ingest::AgentState AgentOf(uint32_t host, double now) const;
  // When samples of a host ended; nullopt: they go on.
  std::optional<double> SilentSince(uint32_t host, double now) const;
  // One sample of a host, or of a chip that has been idle since then unless it is busy now.
  void SampleHost(uint32_t host, double seconds, server::conditions::Tracks* tracks) const;
  void SampleChip(uint32_t host, uint32_t chip, double seconds, double* idle_since,
                  server::conditions::Tracks* tracks) const;
  // Ascending by time.
  std::vector<server::conditions::WindowEvent> EventsUntil(double now) const;
  void FillEvents(double now, server::conditions::JobWindow* window) const;
  // How busy the chips of a task's host are at a time: 0..1.
  double BusyAt(uint32_t task, double seconds) const;
  void Add(server::conditions::Signal signal, server::conditions::Point point,
           server::conditions::Tracks* tracks) const;
  // To the track of this metric, among those of the signal.
  void Add(server::conditions::Signal signal, const std::string& metric,
           server::conditions::Point point, server::conditions::Tracks* tracks) const;

  const FleetOptions options_;
  const std::vector<Fault> faults_;
  std::vector<Steps> steps_;  // One if synchronous, else one a task.
};

}  // namespace tacho::testing
