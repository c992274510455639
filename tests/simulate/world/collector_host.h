// A machine with a collector: everything of it but its sockets, over a simulated disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/log.h"
#include "storage/store.h"
#include "tacho/config/v1/collector.pb.h"
#include "tests/simulate/disk/sim_disk.h"
#include "tests/simulate/schedule/schedule.h"
#include "tests/simulate/transport/sim_network.h"
#include "tests/simulate/world/knobs.h"
#include "tests/simulate/world/model.h"

namespace tacho::simulate {

// How a process ends: in order, or because its disk is dead, by a kill or a power cut.
enum class End { kOrderly, kDead };

// For the laboratory's thread.
class CollectorHost {
 public:
  // `network` and `model` are not owned.
  CollectorHost(std::string address, const Knobs& knobs, uint64_t seed, SimNetwork* network,
                Model* model, log::Log log);
  ~CollectorHost();

  // Begins the process, on a disk that lives again. It may fail, as the disk may; try again later.
  absl::Status Start();
  void Stop(End how);
  bool is_running() const { return process_ != nullptr; }
  // The process wants to end: its disk has failed.
  bool wants_to_end() const { return wants_to_end_; }
  // The disk had no error since the process began, and was full at most: that is no reason to end.
  bool had_no_error() {
    return disk_.errors() == errors_before_ && !disk_.power()->dead() && rotten_.empty();
  }

  // Queries everything and compares it with the model, and looks whether it keeps its bounds.
  // `all`: everything that spools have taken must be there, not only what was acknowledged.
  // `lost`: how many samples agents have counted as lost, and whether only full spools have lost
  // any. Returns what is wrong; nothing if it is not running.
  std::string Check(bool all, uint64_t lost, bool only_dropped);
  // Queries a few seconds of each series as a dashboard does, see range_check.h. Returns what is
  // wrong.
  std::string QueryParts();
  // How many samples those queries have returned.
  uint64_t range_samples() const { return range_samples_; }
  // Why it would say that it is not ready; empty if it is ready.
  std::string WhyNotReady() const;
  // Its disk has lied or changed bits, and it says that the store is damaged: it will not start any
  // more.
  bool RefusesLies() const { return refuses_lies_; }
  // Changes a bit on its disk; where, in words. From then on it may say that bytes are damaged, and
  // once it has said so, rows may be missing. What it returns must still be right.
  std::string Rot();
  bool HasSaidDamage() const {
    return said_damage_ || (!rotten_.empty() && process_ != nullptr && HasReportedLoss());
  }
  // Samples that its processes have refused.
  uint64_t refused_samples() const;

  HostId host() const { return host_; }
  SimDisk* disk() { return &disk_; }

 private:
  struct Process;

  // Tells the model which rows retention has reached, if the run lasts so long.
  void Expire() const;
  std::string CheckPublished();
  std::string CheckBounds() const;
  std::string ReadJob(const std::string& job, Model::Found* found);
  std::string ReadSeries(storage::JobView* view, const storage::SeriesPtr& series,
                         Model::Found* found);
  // What is wrong with a query that has failed: nothing if it says so of damage that there is.
  std::string Failed(absl::string_view doing, const absl::Status& status);
  // What is wrong with a store that does not open.
  void NoteRefusal(const absl::Status& status);
  // Of what is missing.
  std::string Judge(const Model::Compared& compared, uint64_t lost, uint64_t refused,
                    bool only_dropped) const;
  // Whether it has reported that something acknowledged is missing.
  bool HasReportedLoss() const;
  // The sum of a counter of the process.
  uint64_t Counted(absl::string_view name) const;

  const std::string address_;
  const Knobs knobs_;
  const HostId host_;
  SimNetwork* const network_;
  Model* const model_;
  const log::Log log_;
  SimDisk disk_;
  std::atomic<bool> wants_to_end_ = false;
  uint64_t refused_before_ = 0;
  uint64_t errors_before_ = 0;
  uint64_t range_samples_ = 0;
  // The disk has lied about a sync: rows may be missing, as long as the collector reports it.
  bool lied_ = false;
  bool reported_before_ = false;
  bool refuses_lies_ = false;
  std::vector<std::string> rotten_;  // The files in which bits have changed.
  std::atomic<bool> said_damage_ = false;
  std::string wrong_;  // With how it did not start.
  std::unique_ptr<Process> process_;
};

}  // namespace tacho::simulate
