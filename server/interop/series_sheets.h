// Where foreign series are kept. A protocol that sends series one by one would cost a layout for
// each; so series of one source that are new at the same time share a layout, a sheet, and each
// has its column there for as long as it is remembered. A row of a sheet has the stale marker, "no
// value", for the series that a request leaves out.
//
// The places are in memory only. After a restart they are given out again: the series stay the
// same, their layouts may differ.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/ingest/layouts.h"

namespace tacho::server::interop {

// Immutable once its series have their places, but for `used_s`.
struct Sheet {
  static constexpr size_t kColumns = 64;  // At most.

  ingest::StreamLayout layout;
  // What becomes of each column: kStored, or an index into layout.concerned.
  static constexpr int32_t kStored = -1;
  std::vector<int32_t> refused_by;
  // Fills in `refused_by` from what the layout was made of.
  void MarkRefused(const ingest::AdmittedLayout& admitted,
                   const std::vector<storage::Breach>& breaches);
  std::string host;
  mutable std::atomic<int64_t> used_s = 0;  // Seconds of the monotonic clock.
};
using SheetPtr = std::shared_ptr<const Sheet>;

struct Place {
  enum class Kind : uint8_t {
    kUnknown,
    kStored,   // On the sheet.
    kDropped,  // A rule of the mapping drops it.
    kInvalid,  // It has no name, or a label twice.
  };
  Kind kind = Kind::kUnknown;
  uint32_t column = 0;
  SheetPtr sheet;  // If it is stored.
};

// Thread-safe.
class SeriesSheets {
 public:
  explicit SeriesSheets(uint64_t max_series) : max_series_(max_series) {}

  Place Find(absl::string_view key) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Remembers a place; what was known of the key before is replaced. Above the bound, the sheets
  // that have not been used for longest are forgotten first.
  void Put(absl::string_view key, Place place) ABSL_LOCKS_EXCLUDED(mutex_);
  // Its job has expired, or the mapping has changed.
  void Forget(const SheetPtr& sheet) ABSL_LOCKS_EXCLUDED(mutex_);
  void ForgetAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void SetMaxSeries(uint64_t max_series) { max_series_ = max_series; }

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Makes room for a tenth of the bound.
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<uint64_t> max_series_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Place> places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::interop
