// Which series each group of pushes has now, so that those which a later push replaces, and those
// which nobody pushes any more, can be ended. In memory only: after a restart a group is unknown
// until it is pushed again.
//
//   Begin() -> the write is stored -> Settled()
//
// Nothing changes before Settled(), so that a push that is refused, or not stored, loses nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/interop/formats/push_request.h"

namespace tacho::server::interop {

// What a push does to what its group had.
enum class PushChange : uint8_t {
  kNames,  // POST: its names replace theirs.
  kGroup,  // PUT: it replaces everything.
  kEnd,    // DELETE, and a group that expires.
};

struct PushPlan {
  std::string group;
  PushChange change = PushChange::kNames;
  int64_t time_ns = 0;             // Later than that of the group's push before.
  std::vector<std::string> ended;  // Keys of the series that end now.
  uint64_t turn = 0;               // How many writes the group had settled.
};

struct PushGroupsOptions {
  size_t max_groups = 10'000;
  size_t max_bytes = size_t{64} << 20;     // Of memory, for all series of all groups.
  absl::Duration expiry = absl::Hours(1);  // After the last push. Zero: a group never expires.
};

// Thread-safe.
class PushGroups {
 public:
  explicit PushGroups(PushGroupsOptions options) : options_(options) {}

  //   UNAVAILABLE (OVERLOADED)  there is no room for what the group would have; a DELETE, or time,
  //                             makes some.
  absl::StatusOr<PushPlan> Begin(const storage::Labels& group, PushChange change,
                                 const std::vector<PushedSeries>& series, int64_t now_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The write of a plan is stored. `series` is what it had, `now` by a monotonic clock. If other
  // writes have filled the room meanwhile, the group is not remembered.
  void Settled(const PushPlan& plan, const std::vector<PushedSeries>& series, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // One plan for each group that has expired, and for each that has series of which the end is not
  // written, since two pushes of it came at once. Call Settled() with those that are stored; the
  // others come again.
  std::vector<PushPlan> Due(absl::Time now, int64_t now_ns) const ABSL_LOCKS_EXCLUDED(mutex_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Group {
    absl::flat_hash_map<std::string, std::string> series;  // Names by key.
    absl::flat_hash_set<std::string> leaving;              // Replaced; the end is not written.
    absl::Time pushed;
    int64_t newest_ns = 0;
    uint64_t turn = 0;
    size_t bytes = 0;
  };
  void Weigh(const std::string& name, Group* group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const PushGroupsOptions options_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Group> groups_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacho::server::interop
