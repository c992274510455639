// A flight recorder for training jobs: what the trainer records lies in a file in memory that the
// agent of this host (tacho-agent) reads, also after the trainer has died.
//
//   auto recorder = tacho::client::Recorder::Open({.job = "resnet"});
//   const auto loss = recorder.Gauge("loss", "1", "Training loss.");
//   for (int64_t step = 0; step < steps; ++step) {
//     recorder.Set(loss, TrainOneStep());
//     recorder.CommitStep(step);
//   }
//
// It needs the C++ runtime alone. Recording makes no system call, takes no lock and allocates
// nothing; when the ring is full the oldest rows are overwritten, and counted by the agent. Nothing
// here throws or ends the process: on trouble (no directory, no space, a bad name) it says so once
// on standard error, counts what it had to refuse, and the training goes on unrecorded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tacho::client {

// What is not set comes from the environment, then from the default.
struct RecorderOptions {
  // Where the ring is created: TACHO_RING_DIR, "/run/tacho". Its last component is created if
  // missing.
  std::string directory = {};
  // The training run as its owner names it, 1 to 256 bytes: TACHO_JOB. Without one nothing is
  // recorded.
  std::string job = {};
  // The process of the job, from 0: TACHO_TASK, 0.
  std::optional<uint32_t> task = {};
  // Which start of the job this is, from 0: TACHO_ATTEMPT, 0.
  std::optional<uint32_t> attempt = {};
  // Room for records; rounded up to a power of two from 256 KiB to 1 GiB. The default holds the
  // last 30,000 rows of ten metrics. All of it is resident memory.
  uint64_t ring_bytes = uint64_t{4} * 1024 * 1024;
  // The clock, ns since the Unix epoch; nullptr is the system's.
  int64_t (*now_unix_ns)() = nullptr;
};

// A metric of one recorder. A default one is of none: what is set through it is refused.
class Metric {
 public:
  Metric() = default;

 private:
  friend class Recorder;
  explicit Metric(uint32_t index) : index_(index) {}
  uint32_t index_ = UINT32_MAX;
};

// Used from one thread at a time; a process may have several. In a child of fork() it does nothing.
class Recorder {
 public:
  // Records nothing, silently.
  Recorder() noexcept;
  // Never fails: see recording().
  static Recorder Open(const RecorderOptions& options = {}) noexcept;

  Recorder(Recorder&& other) noexcept;
  Recorder& operator=(Recorder&& other) noexcept;
  // Marks the ring as properly ended and leaves the file to the agent, which deletes it when it has
  // delivered everything.
  ~Recorder();

  bool recording() const noexcept { return state_ != nullptr; }
  // Why nothing is recorded; empty if it is.
  const std::string& error() const noexcept { return error_; }
  // The ring's file; empty if nothing is recorded.
  std::string path() const noexcept;

  // Declares a metric, at any time; again, by the same name, gives the same one. Refused: a name
  // that is empty, longer than 256 bytes or no clean UTF-8; the 1,025th metric; another type for a
  // name. Units longer than 63 bytes and help longer than 1,024 are cut.
  //
  // A gauge is a level: it has no value in a row before which it was not set.
  Metric Gauge(std::string_view name, std::string_view unit, std::string_view help) noexcept;
  // A counter is a running total: it keeps its value from row to row, and has none before the
  // first.
  Metric Counter(std::string_view name, std::string_view unit, std::string_view help) noexcept;

  // Sets the metric's value in the row to come; the last one counts. Every bit is kept, NaN
  // payloads included.
  void Set(Metric metric, double value) noexcept {
    if (metric.index_ < metric_count_) {
      values_[metric.index_] = value;
    } else {
      RefuseValue();
    }
  }
  // Adds to what the row to come has, or to 0.
  void Add(Metric metric, double amount) noexcept;

  // Writes one row of all metrics. A time before 1970 is refused.
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

  // A fact about this attempt that is no metric: model, batch size, a hyperparameter. A later value
  // replaces an earlier one, an empty one removes it. Keys of 1 to 128 bytes, values cut at 4,096;
  // all values ever set take 128 KiB together. May allocate.
  void SetAttribute(std::string_view key, std::string_view value) noexcept;

  // Values, metrics, rows, events and attributes that were refused.
  uint64_t refused() const noexcept;

 private:
  struct State;
  Metric Declare(uint32_t type, std::string_view name, std::string_view unit,
                 std::string_view help) noexcept;
  void CommitRow(std::optional<int64_t> step, int64_t time_unix_ns) noexcept;
  void RefuseValue() noexcept;

  std::unique_ptr<State> state_;  // Null if nothing is recorded.
  double* values_ = nullptr;      // The row to come; of State.
  uint32_t metric_count_ = 0;
  std::string error_;
};

}  // namespace tacho::client
