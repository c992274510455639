// A flight recorder for training jobs: the trainer records into a file in memory, which the agent
// of this host (tacho-agent) reads, even after the trainer has died.
//
//   auto recorder = tacho::client::Recorder::Open({.job = "resnet"});
//   const auto loss = recorder.Gauge("loss", "1", "Training loss.");
//   for (int64_t n = 0; n < steps; ++n) {
//     auto step = recorder.Step(n);
//     recorder.Set(loss, TrainOneStep());
//   }
//
// It needs only the C++ runtime. Recording makes no system call, takes no lock and allocates
// nothing. When the ring is full, new rows overwrite the oldest, and the agent counts the loss.
// Nothing here throws or ends the process: after a failure (no directory, no space, a bad name) it
// prints one line on standard error and counts what it refuses, and the training continues
// unrecorded.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "client/collective_scope.h"
#include "client/histogram_buckets.h"
#include "client/metric.h"
#include "client/step_scope.h"

namespace tacho::client {

// An option that is not set comes from the environment, else it has its default.
// environment_identity.h lists the variables, including those of Kubernetes, Slurm, torchrun and
// TPUs.
struct RecorderOptions {
  // The directory of the ring: TACHO_RING_DIR, else "/run/tacho". Open() creates its last component
  // if it is missing. Use a directory in memory (tmpfs): on a disk, a store may wait for the disk.
  std::string directory = {};
  // The name of the training run, 1 to 256 bytes. Without one, nothing is recorded.
  std::string job = {};
  // The process of the job, from 0.
  std::optional<uint32_t> task = {};
  // Which start of the job this is, from 0.
  std::optional<uint32_t> attempt = {};
  // The group of runs that the job belongs to, such as a sweep: TACHO_GROUP. It becomes the
  // attribute "group". At most 256 bytes; what is longer is cut.
  std::string group = {};
  // Room for records, rounded up to a power of two from 256 KiB to 1 GiB. The default holds the
  // last 30,000 rows of ten metrics. All of it is resident memory.
  uint64_t ring_bytes = uint64_t{4} * 1024 * 1024;
  // Permissions of the ring, regardless of the umask; bits beyond 0644 are ignored. 0640 restricts
  // it to the group of the directory, if that has the setgid bit, and so to the agent.
  uint32_t ring_mode = 0644;
  // How often histograms are recorded: with the first row that is at least this much later than the
  // last row that had them, and at the end. 0: with every row.
  int64_t histogram_interval_ns = 1'000'000'000;
  // Clocks: ns since the Unix epoch, and ns of a monotonic clock; nullptr: the system's.
  int64_t (*now_unix_ns)() = nullptr;
  int64_t (*now_monotonic_ns)() = nullptr;
  // Returns a variable of the environment, or nullptr. Default: getenv().
  const char* (*environment)(const char* name) = nullptr;
};

// Used from one thread at a time; a process may have several. In a child of fork() it does nothing.
class Recorder {
 public:
  // Records nothing and reports nothing.
  Recorder() noexcept;
  // Never fails: see recording().
  static Recorder Open(const RecorderOptions& options = {}) noexcept;

  Recorder(Recorder&& other) noexcept;
  Recorder& operator=(Recorder&& other) noexcept;
  // Records what histograms still hold, marks the ring as closed and leaves the file to the agent,
  // which deletes it once it has delivered everything. This is the end of the task: the agent adds
  // the event "ended", unless the trainer has recorded "ended" or "exited" after its last row.
  // exit() does the same if the thread that calls it recorded last, and records its status: as
  // "ended" if that is 0, else as "exited". On another thread it only marks the ring, or leaves it
  // open if it fails.
  ~Recorder();

  bool recording() const noexcept { return state_ != nullptr; }
  // Why nothing is recorded; empty if recording().
  const std::string& error() const noexcept { return error_; }
  // The ring's file; empty if nothing is recorded.
  std::string path() const noexcept;

  // Declares a metric, at any time. The same name returns the same metric. Refused: a name that is
  // empty, longer than 256 bytes or not clean UTF-8; the 1,025th metric; a second type for a name.
  // Units longer than 63 bytes and help longer than 1,024 bytes are cut.
  //
  // A gauge is a level: it has no value in a row unless it was set since the row before.
  Metric Gauge(std::string_view name, std::string_view unit, std::string_view help) noexcept;
  // A counter is a running total: it keeps its value from row to row, and has none before it is
  // first set.
  Metric Counter(std::string_view name, std::string_view unit, std::string_view help) noexcept;
  // A distribution: how many observations fell into each bucket since it was declared, and their
  // sum, which the collector stores as the counter <name>_sum. At most 32 histograms, with names of
  // at most 252 bytes that no metric has.
  HistogramMetric Histogram(std::string_view name, std::string_view unit, std::string_view help,
                            const HistogramBuckets& buckets = {}) noexcept;

  // Sets the metric's value in the next row; the last call counts. Keeps every bit, including NaN
  // payloads.
  void Set(Metric metric, double value) noexcept;
  // Adds to the value in the next row, or to 0.
  void Add(Metric metric, double amount) noexcept;
  // One observation of a distribution. NaN and infinity count above the last bound and not in the
  // sum.
  void Observe(HistogramMetric histogram, double value) noexcept;

  // Begins a step: see step_scope.h.
  StepScope Step(int64_t step) noexcept;
  // The metric with the seconds of a phase, for StepScope::Phase(); the same name returns the same
  // metric.
  Metric StepPhase(std::string_view name) noexcept;
  // The metrics of a collective, for StepScope::Collective(); the same name and peer return the
  // same ones.
  CollectiveMetric StepCollective(std::string_view name,
                                  std::optional<uint32_t> peer = std::nullopt) noexcept;

  // Writes one row of all metrics, without a StepScope. A time before 1970 is refused.
  void CommitStep(int64_t step) noexcept;
  void CommitStep(int64_t step, int64_t time_unix_ns) noexcept;
  // The same for a row that belongs to no step.
  void Commit() noexcept;

  using EventField = std::pair<std::string_view, std::string_view>;
  // Something that happened now, at the step of the last row: "attempt_started", "compiled",
  // "checkpoint_saved", "checkpoint_restored", "preempted", "ended" or a name of your own (at most
  // 128 bytes), one sentence for a person (cut at 1,024 bytes), at most 32 fields (names of at most
  // 128 bytes, values cut at 1,024). May allocate.
  void Event(std::string_view kind, std::string_view message,
             std::span<const EventField> fields = {}) noexcept;
  void Event(std::string_view kind, std::string_view message,
             std::initializer_list<EventField> fields) noexcept {
    Event(kind, message, std::span<const EventField>(fields.begin(), fields.size()));
  }

  // The same at a step of your choice.
  void EventAtStep(int64_t step, std::string_view kind, std::string_view message,
                   std::span<const EventField> fields = {}) noexcept;

  // A fact about this attempt that is not a metric: model, batch size, a hyperparameter. A later
  // value replaces an earlier one; an empty value removes it. Keys have 1 to 128 bytes, values are
  // cut at 4,096; all values ever set may take 128 KiB together. "tag.NAME" with any value gives
  // the job a tag, and "note" its note (docs/notation.md). May allocate.
  void SetAttribute(std::string_view key, std::string_view value) noexcept;
  // A number, in decimal.
  template <typename Number>
  requires std::is_arithmetic_v<Number> &&
      (!std::same_as<Number, bool>)void SetAttribute(std::string_view key, Number value) noexcept {
    char text[64];  // The longest is a long double.
    const auto end = std::to_chars(std::begin(text), std::end(text), value).ptr;
    SetAttribute(key, std::string_view(text, static_cast<size_t>(end - text)));
  }

  // Call it on the thread that is about to call exit(), when no other thread records any more.
  // exit() then records the end, even if another thread recorded last.
  void LeaveToExit() noexcept;

  // How many values, metrics, rows, events and attributes were refused.
  uint64_t refused() const noexcept;

 private:
  friend struct RecorderFactory;
  void RefuseValue() noexcept;

  std::unique_ptr<RecorderState> state_;  // Null if nothing is recorded.
  const OpenRow* row_;                    // The row of state_, or an empty one; never null.
  std::string error_;
};

inline void Recorder::Set(Metric metric, double value) noexcept {
  if (metric.index_ < row_->metric_count) {
    row_->values[metric.index_] = value;
  } else {
    RefuseValue();
  }
}

}  // namespace tacho::client
