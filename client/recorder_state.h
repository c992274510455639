// The metrics of a recorder and the row that it is about to write. Internal to the recorder.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/fork_guard.h"
#include "client/histogram_buckets.h"
#include "client/live_histogram.h"
#include "client/metric.h"
#include "client/ring/recorder_backend.h"
#include "client/ring/ring_format.h"

namespace tacho::client {

struct RecorderClocks {
  int64_t (*unix_ns)() = nullptr;
  int64_t (*monotonic_ns)() = nullptr;
};

// Implements a recorder that records. Used from one thread at a time; does nothing in a child of
// fork().
class RecorderState {
 public:
  RecorderState(std::unique_ptr<RecorderBackend> backend, RecorderClocks clocks,
                int64_t histogram_interval_ns);
  RecorderState(const RecorderState&) = delete;
  RecorderState& operator=(const RecorderState&) = delete;
  ~RecorderState() = default;

  const OpenRow* row() const { return &row_; }
  RecorderBackend& backend() { return *backend_; }
  uint64_t refused() const { return refused_; }

  Metric DeclareMetric(MetricType type, std::string_view name, std::string_view unit,
                       std::string_view help) noexcept;
  HistogramMetric DeclareHistogram(std::string_view name, std::string_view unit,
                                   std::string_view help, const HistogramBuckets& buckets) noexcept;
  Metric DeclarePhase(std::string_view name) noexcept;
  CollectiveMetric DeclareCollective(std::string_view name, std::optional<uint32_t> peer) noexcept;

  void Add(Metric metric, double amount) noexcept;
  void Observe(HistogramMetric histogram, double value) noexcept;
  int64_t now_unix_ns() const noexcept { return clocks_.unix_ns(); }
  void Commit(std::optional<int64_t> step, int64_t time_unix_ns) noexcept;
  using EventField = RecorderBackend::Field;
  std::optional<int64_t> last_step() const { return last_step_; }
  void AddEvent(std::optional<int64_t> step, std::string_view kind, std::string_view message,
                std::span<const EventField> fields) noexcept;
  void SetAttribute(std::string_view key, std::string_view value) noexcept;
  void Refuse(const char* what) noexcept;

  // See StepScope. False if a step is open already.
  bool BeginStep(int64_t step) noexcept;
  void EnterPhase(uint32_t metric) noexcept;
  uint32_t FindPhase(std::string_view name) noexcept;
  uint32_t CheckPhase(Metric phase) noexcept;
  // See CollectiveScope. Returns the collective's number, from 1; 0 if it does not begin.
  uint64_t BeginCollective(uint32_t collective, uint64_t bytes) noexcept;
  uint32_t FindCollective(std::string_view name, std::optional<uint32_t> peer) noexcept;
  uint32_t CheckCollective(CollectiveMetric collective) noexcept;
  // Does nothing if that one has ended already.
  void EndCollective(uint64_t number) noexcept;
  void EndStep() noexcept;
  void AbandonStep() noexcept;

  // Takes this state out of those that exit() flushes. False if another thread is flushing it in
  // exit(), or has done so: the process is about to end, and the state must not be deleted.
  bool LeaveExit() noexcept;
  // The recorder ends, with its process or before it; `exit_code` of the process, if it exits.
  void Close(std::optional<int> exit_code = std::nullopt) noexcept;
  // The process exits, on this thread.
  void FlushAtExit(int exit_code) noexcept;
  // No other thread records any more, so that FlushAtExit() on this one may write.
  void LeaveToExit() noexcept;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Collective {
    std::string name;  // As the trainer gives it.
    std::optional<uint32_t> peer;
    std::string bytes_name;  // This metric is declared when bytes are first given.
    uint32_t seconds = kNone;
    uint32_t bytes = kNone;
  };

  bool Mine() const { return guard_.InOwner(); }
  uint32_t Declare(MetricType type, std::string_view name, std::string_view unit,
                   std::string_view help);
  // Why no metric may have this name; nullptr if one may.
  const char* WrongName(std::string_view name) const;
  void ClearGauges();
  void RecordHistograms(std::optional<int64_t> step, int64_t time_unix_ns);
  void AddSpan(uint32_t metric, int64_t span_ns);
  void LeavePhase(int64_t now_ns);
  void LeaveCollective(int64_t now_ns);
  void AddBytes(Collective* collective) noexcept;
  void RecordExit(int exit_code) noexcept;
  void CloseBackend(int exit_code) noexcept;

  const std::unique_ptr<RecorderBackend> backend_;
  const RecorderClocks clocks_;
  const int64_t histogram_interval_ns_;
  const ForkGuard guard_;

  // By metric. Allocated for kMaxMetrics at once, so that a late declaration moves nothing.
  std::vector<double> values_;
  std::vector<uint8_t> keeps_;  // A counter keeps its value.
  OpenRow row_;
  std::vector<MetricType> types_;
  std::map<std::string, uint32_t, std::less<>> by_name_;
  std::vector<LiveHistogram> histograms_;
  std::map<std::string, uint32_t, std::less<>> histogram_by_name_;
  int64_t histograms_recorded_ns_ = 0;  // The time of the last row that had them; 0: never.
  std::map<std::string, std::string, std::less<>> attributes_;  // As last written.
  std::optional<int64_t> last_step_;
  uint64_t refused_ = 0;
  uint64_t last_thread_ = 0;  // The last thread that committed a row.
  // An event of an end came after the last row. Atomic: exit() may look from another thread.
  std::atomic<bool> end_recorded_ = false;

  struct OpenStep {
    bool open = false;
    int64_t step = 0;
    int64_t begin_ns = 0;
    uint32_t phase = kNone;  // Its metric.
    int64_t phase_begin_ns = 0;
    uint32_t collective = kNone;  // In collectives_.
    uint64_t collective_bytes = 0;
    int64_t collective_begin_ns = 0;
    uint32_t phase_around = kNone;  // The phase in which the collective began.
  };
  OpenStep step_;
  std::optional<int64_t> last_step_end_ns_;
  uint32_t step_time_ = kNone;
  uint32_t step_duration_ = kNone;
  std::vector<std::pair<std::string, uint32_t>> phases_;  // By the name that the trainer uses.
  std::vector<Collective> collectives_;
  uint64_t collectives_begun_ = 0;
  uint32_t comm_phase_ = kNone;
};

}  // namespace tacho::client
