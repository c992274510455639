// A store on a disk that loses its power, with the model of what it must hold afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "storage/store.h"
#include "tests/crash/model.h"
#include "tests/crash/wire.h"
#include "tests/support/power_cut_env.h"

namespace tacho::crash {

// For one thread.
class PowerCutStore {
 public:
  struct Options {
    uint64_t seed = 0;
    uint32_t seal_rows = 16;
    bool upkeep = false;  // Merges frames too, and keeps its journal small.
  };
  explicit PowerCutStore(Options options);

  tacho::testing::PowerCutEnv& env() { return *env_; }
  const Model& model() const { return *model_; }
  // What went wrong while it worked; empty if nothing.
  const std::string& failure() const { return failure_; }

  // Opens, sends, closes, opens, sends and closes, unless the power goes before.
  void Work(uint64_t messages);
  // Opens and closes, unless the power goes before.
  void OpenBriefly();
  // The power is back, or was never gone: compares what the disk holds with the model. Returns the
  // differences in words; empty if there are none.
  std::string Check();

  // From now on every disk that a cut before or after a sync could leave is kept, with the model of
  // that moment.
  void KeepCuts();
  struct Tally {
    uint64_t syncs = 0;    // Of files and directories: two moments each.
    uint64_t cuts = 0;     // Disks that differ.
    uint64_t samples = 0;  // Compared.
    uint64_t acknowledged = 0;
  };
  // Opens what was kept, and forgets it. Returns the first differences in words.
  std::string CheckCuts(Tally* tally);

 private:
  struct Moment {
    Model model;
    std::map<std::string, tacho::testing::PowerCutEnv::Files> cuts;  // By what the cut did.
  };

  storage::StoreOptions StoreOptionsOn(rocksdb::Env* env) const;
  std::string CheckOn(rocksdb::Env* env, Model* model) ABSL_LOCKS_EXCLUDED(mutex_);
  void Send(storage::Store* store, uint64_t messages);
  void Take(Report::Kind kind, uint32_t agent, uint64_t sequence, bool altered);
  void KeepMoment();
  void Fail(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  uint64_t lives_ = 0;
  std::string failure_;
  const std::unique_ptr<tacho::testing::PowerCutEnv> env_;
  // Held while a moment is kept, so that its disk and its model are of the same time.
  absl::Mutex mutex_;
  const std::unique_ptr<Model> model_;
  std::vector<Moment> moments_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::crash
