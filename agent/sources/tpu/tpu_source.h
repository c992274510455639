// Samples this machine's TPUs: the chips in sysfs, the processes that hold them, and libtpu's
// metrics. docs/chips.md lists what is recorded.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/chips/chip_events.h"
#include "agent/sources/chips/chip_holders.h"
#include "agent/sources/chips/chip_inventory.h"
#include "agent/sources/chips/chip_jobs.h"
#include "agent/sources/rows/cadence.h"
#include "agent/sources/rows/sample.h"
#include "agent/sources/rows/series_rows.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"
#include "agent/sources/tpu/tpu_chips.h"
#include "agent/sources/tpu/tpu_client.h"
#include "agent/sources/tpu/tpu_places.h"
#include "agent/sources/tpu/tpu_record.h"
#include "agent/sources/tpu/tpu_totals.h"
#include "agent/sources/tpu/tpu_troubles.h"
#include "proto/base/clock.h"
#include "tacho/config/v1/chips.pb.h"

namespace tacho::agent {

struct TpuOptions {
  std::string host = {};  // Label of every row.
  log::Log log = {};
  std::string rings = {};                                 // Their directory; may be empty.
  std::string metrics_ports = {};                         // TPU_RUNTIME_METRICS_PORTS, here.
  std::function<absl::Time()> steady_now = MonotonicNow;  // For pauses and deadlines.
};

// Rows at each multiple of the interval since the Unix epoch. Where there are no TPUs, and no
// address is configured, nothing is recorded and nothing asked. One thread, which waits for each
// libtpu at most the timeout a metric, and once that was used up leaves it alone for a while.
class TpuSource : public Source {
 public:
  static constexpr absl::Duration kChipsAgain = absl::Minutes(1);  // Between looks at sysfs.
  // A libtpu that does not answer in time is asked again after the first, doubling up to the
  // second.
  static constexpr absl::Duration kPauseMin = absl::Seconds(10);
  static constexpr absl::Duration kPauseMax = absl::Minutes(2);
  static constexpr absl::Duration kBetweenSnapshots = absl::Seconds(10);

  TpuSource(const config::v1::Tpu& config, TpuOptions options);
  TpuSource(const TpuSource&) = delete;
  TpuSource& operator=(const TpuSource&) = delete;
  ~TpuSource() override;

  absl::string_view name() const override { return "tpu"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;
  absl::Status status() const override { return status_; }

 private:
  struct Port {
    std::unique_ptr<TpuClient> client;
    absl::Duration pause = absl::ZeroDuration();
    absl::Time ask_again = absl::InfinitePast();  // Steady clock.
    bool up = false;
  };

  void FindChips(RowSink* sink);
  void LookAt(const TpuGroup& group, TpuLook* look);
  Port& PortAt(const std::string& address);
  TpuAnswers Ask(const TpuGroup& group);
  void KeepPorts(const std::vector<TpuGroup>& groups);
  void AddChips(const ChipHolders& holders, const std::vector<TpuGroup>& groups,
                const TpuLook& look, Sample* sample);
  const char* StateOf(uint32_t chip, const ChipHolders& holders,
                      const std::vector<TpuGroup>& groups, const TpuLook& look) const;
  void AddConstants(uint32_t chip, const TpuChip& found, Sample* sample) const;
  bool AnyUp() const;
  void SetStatus(const std::vector<TpuGroup>& groups);
  void TellHolders(absl::Time now, const ChipHolders& holders, Sample* sample);
  void TellTroubles(absl::Time now, bool new_error, const TpuActivity& activity);
  bool SnapshotAsked();
  void Snapshot(absl::Time now, const std::string& reason);
  void Write(absl::Time now, const TpuLook& look, RowSink* sink);

  const config::v1::Tpu config_;
  const TpuOptions options_;
  const TpuPlacesOptions places_;
  const std::vector<std::string> wanted_;
  SourceLog log_;
  Cadence cadence_;
  ChipEvents events_;
  SeriesRows rows_;
  SeriesRows total_rows_;  // Their series come and go with the labels that libtpu makes.
  HolderWatch holder_watch_;
  ChipJobs jobs_;
  HangWatch hang_watch_;
  TpuErrors errors_;
  absl::Status status_;
  std::optional<ChipInventory> inventory_;                    // After the first poll.
  std::optional<TpuTotals> totals_;                           // The same.
  std::map<uint32_t, TpuChip> chips_;                         // By number.
  std::map<std::string, uint32_t> devices_;                   // Device files.
  std::map<std::string, Port> ports_;                         // By address.
  std::map<std::vector<std::string>, TpuDevices> places_of_;  // By a group's addresses.
  absl::Time found_ = absl::InfinitePast();                   // Steady clock.
  absl::Time snapshot_ = absl::InfinitePast();
};

}  // namespace tacho::agent
