// A machine with an agent: its spool on a simulated disk, its sender, and sources that make the
// rows of the model.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/spool/spool.h"
#include "agent/stream/sender.h"
#include "proto/base/log.h"
#include "tests/simulate/disk/sim_disk.h"
#include "tests/simulate/schedule/schedule.h"
#include "tests/simulate/transport/sim_network.h"
#include "tests/simulate/world/collector_host.h"
#include "tests/simulate/world/model.h"
#include "tests/simulate/world/trainer.h"
#include "tests/support/power_cut_env.h"

namespace tacho::simulate {

struct AgentOptions {
  int number = 0;
  std::vector<std::string> collectors;  // Their addresses.
  // Of rows; another one makes events, and another rows of a job that comes and goes.
  int sources = 2;
  Knobs knobs;
  absl::Duration period = absl::Seconds(1);  // Of each source's rows.
  // Of a trainer's rings; empty: there is no trainer.
  std::string ring_directory;
  // The source whose job comes and goes has a new host, and so a layout of its own, every few rows;
  // and there are no events.
  bool restless = false;
  uint64_t seed = 1;
};

// For the laboratory's thread.
class AgentHost {
 public:
  // `network` and `model` are not owned.
  AgentHost(AgentOptions options, SimNetwork* network, Model* model, log::Log log);
  ~AgentHost();

  // Begins the process, on a disk that lives again. It may fail, as the disk may; try again later.
  absl::Status Start();
  void Stop(End how);
  bool is_running() const { return spool_ != nullptr; }

  // The spool is gone, and Start() begins a new one. Not for a host with a trainer: its rings would
  // be spooled again.
  void LoseSpool() { ReplaceSpool({}); }
  // Copies the spool as it lies on the disk. RestoreSpool() puts the copy in its place.
  void CopySpool() { copy_ = disk_.power()->files(); }
  void RestoreSpool();
  // The agent says since then that its spool is an old copy.
  bool says_old_copy() const { return says_old_copy_; }

  // Tells the model what is acknowledged now, and remembers what the spool calls synced.
  void Observe();
  // What is wrong with its spool, in words; empty if nothing is.
  const std::string& wrong() const { return wrong_; }
  // From now on each source makes a row in so long; zero: as often as its options say.
  void SetTrickle(absl::Duration period) ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on sources make nothing, so that the spool can become empty.
  void StopSources();
  // Samples and events that its processes have counted as lost, at most.
  uint64_t lost_samples() const;
  // How many messages wait; none if it is not running.
  uint64_t waiting() const;
  // Whether its processes have lost something in other ways than as the oldest in a full spool.
  bool lost_otherwise() const;
  bool HasRings() const { return trainer_ != nullptr && trainer_->HasRings(); }

  HostId host() const { return host_; }
  SimDisk* disk() { return &disk_; }
  const std::string& name() const { return name_; }

 private:
  class RingSink;

  void ReplaceSpool(const testing::PowerCutEnv::Files& files);
  // The log of the agent's sender, which is looked through for what it says of an old copy.
  log::Log SenderLog();
  // Brings a dead disk back. After a power cut the trainer's rings are gone too; Start() tells the
  // model once the spool is open.
  void ComeBack();
  // Whether the spool, just opened, still has what it has called synced.
  void CheckSynced();
  void RunSource(int source);
  // The layout of the row.
  absl::StatusOr<uint32_t> DefineLayout(int source, uint64_t number);
  // Whether the spool may have dropped something since NoteDrops() was called last. Once its disk
  // has refused a write nobody can know: what it drops then it may count much later, or never.
  bool MayHaveDropped() const;
  // Tells the model what the spool may have dropped since this was called last.
  void NoteDrops(bool new_process = false);
  // Makes the row and spools it; whether that worked.
  bool Append(int source, uint32_t layout, uint64_t number);
  bool SleepUntilNext(absl::Duration period);
  // Reads the trainer's rings, as the agent does.
  void FollowRings();
  // Whether the source makes rows now.
  bool IsActive(int source) const;

  const AgentOptions options_;
  const std::string name_;
  const HostId host_;
  SimNetwork* const network_;
  Model* const model_;
  const log::Log log_;
  SimDisk disk_;
  std::atomic<bool> quiet_ = false;
  uint64_t lost_before_ = 0;
  bool lost_otherwise_ = false;
  // Of NoteDrops(), when it was called last.
  uint64_t lost_noted_ = 0;
  uint64_t begin_noted_ = 0;
  std::string wrong_;
  // The generation and the synced end of the spool when it was last observed.
  uint64_t generation_ = 0;
  uint64_t synced_ = 0;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration trickle_ ABSL_GUARDED_BY(mutex_);
  // A row and its sequence become known together.
  absl::Mutex append_mutex_;
  std::unique_ptr<agent::Spool> spool_;
  std::unique_ptr<agent::Sender> sender_;
  std::vector<std::thread> sources_;
  std::unique_ptr<Trainer> trainer_;
  bool rings_lost_ = false;
  testing::PowerCutEnv::Files copy_;
  bool restored_ = false;
  std::atomic<bool> says_old_copy_ = false;
  std::map<int, uint64_t> made_before_;  // Rows of each source when the spool was replaced.
};

}  // namespace tacho::simulate
