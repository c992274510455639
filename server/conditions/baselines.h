// How fast a job's steps were before: in its earlier attempts, and in other jobs with the same
// attribute config_fingerprint. Read from the store when an attempt begins to be judged, and kept.
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
  static constexpr size_t kMaxBaselines = 8;  // For one job: its own first, the newest first.
  static constexpr size_t kMaxJobsLookedAt = 1'000;  // For jobs with its fingerprint.
  static constexpr size_t kMaxSteps = 5'000;         // Of an attempt, the first ones.

  // `store` is not owned and must outlive this.
  explicit Baselines(const storage::Store* store) : store_(store) {}

  // Reads the store. What cannot be read is left out.
  std::vector<Baseline> Of(const std::string& job, uint32_t attempt, const std::string& fingerprint,
                           const SignalNames& names);

  // A job's attributes, as whoever judges it sees them.
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
  std::map<std::string, Known> jobs_;                              // Those with a fingerprint.
  std::map<std::pair<std::string, uint32_t>, Baseline> measured_;  // Of attempts that are over.
};

}  // namespace tacho::server::conditions
