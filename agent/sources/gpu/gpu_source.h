// Samples this machine's NVIDIA GPUs through NVML. docs/chips.md says what is recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/chips/chip_events.h"
#include "agent/sources/chips/chip_inventory.h"
#include "agent/sources/chips/chip_jobs.h"
#include "agent/sources/gpu/gpu_metrics.h"
#include "agent/sources/gpu/gpu_session.h"
#include "agent/sources/rows/cadence.h"
#include "agent/sources/rows/sample.h"
#include "agent/sources/rows/series_rows.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"
#include "proto/base/clock.h"
#include "tacho/config/v1/chips.pb.h"

namespace tacho::agent {

struct GpuOptions {
  std::string host = {};   // Label of every row.
  std::string rings = {};  // Their directory; may be empty.
  log::Log log = {};
  std::function<absl::Time()> steady_now = MonotonicNow;  // For deadlines.
  // How long a poll waits for the GPUs' answers, all of them together. Later answers are recorded
  // with the next poll.
  absl::Duration wait = absl::Milliseconds(500);
};

// Rows at each multiple of the interval since the Unix epoch. No call into the driver is made on
// the thread that polls: a GPU that does not answer is reported as hanging, and the others go on.
// Where there is no driver, and never was a GPU, nothing is recorded and nothing said. One thread.
class GpuSource : public Source {
 public:
  // Without a library; with one that fails, the pause doubles from the first to the second.
  static constexpr absl::Duration kRetryMin = absl::Seconds(15);
  static constexpr absl::Duration kRetryMax = absl::Minutes(5);
  // While GPUs are missing or lost: one that was reset is only seen by a new session.
  static constexpr absl::Duration kRetryMissing = absl::Minutes(5);
  // Events of one kind and chip in a minute; XID errors come in thousands.
  static constexpr int kEventsPerMinute = 10;

  GpuSource(const config::v1::Gpu& config, GpuOptions options);
  GpuSource(const GpuSource&) = delete;
  GpuSource& operator=(const GpuSource&) = delete;
  ~GpuSource() override = default;

  absl::string_view name() const override { return "gpu"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;
  absl::Status status() const override { return status_; }

 private:
  enum class State : uint8_t { kOk, kAbsent, kLost, kHanging, kResetRequired };
  struct ChipRecord {
    State state = State::kOk;
    double xids = 0;
    double last_xid = 0;
    std::vector<uint32_t> pids;  // As the last reading had them.
  };
  struct Minute {
    absl::Time begin = absl::InfinitePast();
    int events = 0;
  };

  static const char* NameOf(State state);
  void Open(absl::Time now, RowSink* sink);
  void Adopt(GpuSession session, absl::Time now, RowSink* sink);
  void Retry(absl::Duration after);
  void CloseIfDone();
  void TakeReadings(absl::Time now, Sample* sample);
  State StateOf(const GpuReading& reading);
  void Enter(uint32_t chip, State state, absl::Time now);
  void TakeEvents();
  void TellEvent(const GpuEvent& event);
  bool MayTell(absl::Time now, const std::string& what);
  void TellHolders(absl::Time now, Sample* sample);
  void AddStates(Sample* sample) const;
  void AddInfo(const GpuChip& chip, Sample* sample) const;
  GpuChip ChipAt(size_t gpu) const;

  const config::v1::Gpu config_;
  const GpuOptions options_;
  Cadence cadence_;
  const absl::Duration hang_after_;
  SourceLog log_;
  ChipEvents events_;
  SeriesRows rows_;
  ChipJobs jobs_;
  GpuNames names_;
  GpuOpener opener_;
  std::optional<ChipInventory> inventory_;  // After the first poll.
  std::optional<GpuSession> session_;
  std::vector<uint32_t> chips_;             // Chip numbers of the session's GPUs, in its order.
  std::vector<uint64_t> told_xids_;         // XIDs counted so far, by GPU of the session.
  std::map<uint32_t, ChipRecord> records_;  // By chip.
  std::map<std::string, Minute> minutes_;
  bool reopen_ = false;  // The session is of no use any more.
  absl::Status status_;
  absl::Time retry_at_ = absl::InfinitePast();  // Steady clock.
  absl::Duration retry_ = kRetryMin;
};

}  // namespace tacho::agent
