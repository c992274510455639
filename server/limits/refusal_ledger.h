// Which jobs, metrics and labels were refused series, and how many: the worst offenders, in memory
// that does not grow with what is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/index/series_limits.h"

namespace tacho::server::limits {

struct Refusals {
  std::string job;
  std::string name;  // The metric's or label's; empty if the limit is about neither.
  storage::Limit limit = storage::Limit::kNames;
  storage::LimitAction action = storage::LimitAction::kReject;
  uint64_t series = 0;
  // At most so many of `series` belong to others that had the entry before.
  uint64_t too_many = 0;
  std::string example;  // The latest, as metric{labels}.
  std::string detail;
  absl::Time last;
};

// Thread-safe. When all entries are taken, the one with the fewest series goes to the
// newcomer, which continues its count ("space saving"): every name with more than 1/kEntries of all
// series is listed.
class RefusalLedger {
 public:
  static constexpr size_t kEntries = 1000;

  // Texts are cut by ShortText(): entries have to stay small. Adds `refusals.series` to the entry
  // of its job, name, limit and action, and replaces example, detail and time.
  void Add(Refusals refusals) ABSL_LOCKS_EXCLUDED(mutex_);

  // The entries with the most series; those of all jobs if `job` is empty.
  std::vector<Refusals> Top(absl::string_view job, size_t top) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = std::tuple<std::string, std::string, storage::Limit, storage::LimitAction>;

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Key, Refusals> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::limits
