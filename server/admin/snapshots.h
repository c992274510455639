// Makes snapshots of the store in a directory: checks their names, and completes them before they
// appear.
//
//   <directory>/NAME            a snapshot, whole and synced
//   <directory>/.partial-NAME   unfinished: in progress, or left behind by a killed collector
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "storage/store.h"

namespace tacho::server::admin {

struct Snapshot {
  std::string name;
  std::string path;
  absl::Time begun;
  absl::Duration took;
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// OK if `name` is one component of a path, harmless in a shell and in a log.
//   INVALID_ARGUMENT  says what is expected.
absl::Status CheckSnapshotName(absl::string_view name);

struct SnapshotsOptions {
  storage::Store* store = nullptr;  // Not owned.
  std::string directory;            // Made, for its owner only, when first needed. Empty: none.
  std::function<absl::Time()> now = absl::Now;
};

// Thread-safe.
class Snapshots {
 public:
  explicit Snapshots(SnapshotsOptions options) : options_(std::move(options)) {}

  // `name` as of SnapshotRequest. Statuses as of tacho.v1.Admin.Snapshot.
  absl::StatusOr<Snapshot> Make(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<Snapshot> MakeIn(int directory, std::string name);

  const SnapshotsOptions options_;
  absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tacho::server::admin
