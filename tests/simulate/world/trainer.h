// A training process on an agent's machine: it writes rows into a ring with the client library's
// writer, ends in good order or dies, and begins again as the next attempt.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/ring/ring_writer.h"
#include "tests/simulate/schedule/schedule.h"
#include "tests/simulate/world/model.h"

namespace tacho::simulate {

struct TrainerOptions {
  int agent = 0;
  HostId host = 0;
  absl::Duration period = absl::Seconds(1);  // Of its rows.
  // Of its rings, on a real file system; no other process may use it. The same in each run of a
  // seed: agents keep it in their spools.
  std::string directory;
};

// For the laboratory's thread. The agent's machine goes on while the agent is dead, and so does
// this.
class Trainer {
 public:
  // `model` is not owned.
  Trainer(TrainerOptions options, Model* model);
  ~Trainer();

  // Nothing happens if it runs.
  void Start();
  // It ends in good order.
  void Stop();
  // It is gone, and its rings with it.
  void LosePower();
  // Whether rings are left that no agent has read to their end.
  bool HasRings() const;
  const std::string& directory() const { return options_.directory; }

 private:
  void EndThread();
  void Run();
  void BeginAttempt();
  void WriteRow();

  const TrainerOptions options_;
  Model* const model_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t attempt_ = 0;
  uint64_t number_ = 0;  // Of the last row.
  // Without Close() it is as if the process had died.
  std::unique_ptr<client::RingWriter> ring_;
  std::thread thread_;
};

}  // namespace tacho::simulate
