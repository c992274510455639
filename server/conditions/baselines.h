// The step times of a job's earlier attempts, and of other jobs with the same attribute
// config_fingerprint. They are read from the store when the judging of an attempt begins, and kept.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/conditions/window/signal_names.h"
#include "server/conditions/window/window.h"
#include "storage/store.h"

namespace tacho::server::conditions {

// One thread at a time.
class Baselines {
 public:
  // For one job: its own attempts come first, the newest first.
  static constexpr size_t kMaxBaselines = 8;
  static constexpr size_t kMaxJobsLookedAt = 1'000;  // More are not searched for its fingerprint.
  static constexpr size_t kMaxSteps = 5'000;         // The first steps of an attempt.

  // `store` is not owned and must outlive this.
  explicit Baselines(const storage::Store* store) : store_(store) {}

  // Reads the store, and leaves out what cannot be read.
  std::vector<Baseline> Of(const std::string& job, uint32_t attempt, const std::string& fingerprint,
                           const SignalNames& names);

  // Remembers the fingerprint of a job under judgement; an empty one forgets the job.
  void Note(const std::string& job, uint32_t attempt, const std::string& fingerprint);

 private:
  struct Known {
    uint32_t attempt = 0;
    std::string fingerprint;
  };

  void LookAtStore();
  Baseline Measure(const std::string& job, uint32_t attempt, const SignalNames& names);

  const storage::Store* const store_;
  bool looked_ = false;
  std::map<std::string, Known> jobs_;                              // Jobs with a fingerprint.
  std::map<std::pair<std::string, uint32_t>, Baseline> measured_;  // Attempts that have ended.
};

}  // namespace tacho::server::conditions
