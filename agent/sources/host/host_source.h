// Samples this machine: CPU, memory, network, disks, load, pressure, and the agent's control group.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/host/host_parsers.h"
#include "agent/sources/rows/cadence.h"
#include "agent/sources/rows/sample.h"
#include "agent/sources/rows/series_rows.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

struct HostOptions {
  std::string host = {};  // Label of every row.
  log::Log log = {};
  double ticks_per_second = 100;  // sysconf(_SC_CLK_TCK)
  double page_bytes = 4096;       // sysconf(_SC_PAGESIZE)
};

// One layout without steps. A row is taken at each multiple of the interval since the Unix epoch
// (so that all machines of a fleet are sampled together) and once at the start; what a long pause
// has missed is not made up. One thread.
class HostSource : public Source {
 public:
  HostSource(const config::v1::Agent::Host& config, HostOptions options);
  HostSource(const HostSource&) = delete;
  HostSource& operator=(const HostSource&) = delete;
  ~HostSource() override = default;

  absl::string_view name() const override { return "host"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;
  // UNAVAILABLE if nothing of what is configured could be read.
  absl::Status status() const override { return status_; }

 private:
  // One file. Series of a file that cannot be read any more have stale markers (SeriesRows).
  struct Input {
    std::string path;
    std::function<bool(absl::string_view text, Sample* out)> parse;
    std::vector<Sample::Entry> known;  // The entries when it was last read.
    bool logged = false;               // The log says that it cannot be read.
  };

  void AddInput(std::string path, bool (*parse)(absl::string_view, Sample*));
  Sample Take();
  void TakeInput(Input* input, Sample* out, std::vector<std::string>* troubles);

  const HostOptions options_;
  SourceLog log_;
  std::vector<Input> inputs_;
  absl::Status status_;
  CpuTicks cpu_before_;
  CpuTicks cpu_now_;
  std::vector<CpuTicks> cores_before_;
  Cadence cadence_;
  const std::string proc_;
  SeriesRows rows_;
};

}  // namespace tacho::agent
