// Puts a new configuration in force in all parts of the collector that can change, or in none.
#pragma once

#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "prometheus/registry.h"
#include "proto/base/log.h"
#include "server/process/reload_metrics.h"
#include "server/process/reloadable.h"
#include "tacho/config/v1/collector.pb.h"
#include "tacho/v1/admin.pb.h"

namespace tacho::server::process {

struct ReloaderOptions {
  config::v1::Collector started_with;
  // Reads the configuration again. Null: there is none, and every reload is refused.
  std::function<absl::StatusOr<config::v1::Collector>()> read;
  std::function<absl::Time()> now;
  prometheus::Registry* registry = nullptr;  // Not owned.
  log::Log log;
};

// Reload() and Fill() are thread-safe. Call Add() and Started() before either, on one thread.
class Reloader {
 public:
  explicit Reloader(ReloaderOptions options);

  // Parts take a new configuration in the order in which they were added. They are not owned.
  void Add(Reloadable* part) { parts_.push_back(part); }
  void Started() { metrics_.Started(options_.now()); }

  // Reads the configuration and puts its reloadable keys in force, log.level itself; then calls
  // `applied`. Says so in the log and in metrics. `asked_by` is for the log.
  //   FAILED_PRECONDITION  keys that need a restart differ; the text names them.
  //   others               why it could not be read, or as the part that could not take its keys.
  absl::Status Reload(absl::string_view asked_by, const std::function<void()>& applied)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void Fill(v1::GetStatsResponse::ReloadStats* stats) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Apply(const config::v1::Collector& config) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ReloaderOptions options_;
  std::vector<Reloadable*> parts_;
  ReloadMetrics metrics_;
  absl::Mutex mutex_;
  // Why the last reload was refused; OK if it was not.
  absl::Status last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::process
