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
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/ingest/layouts.h"
#include "server/interop/formats/foreign_write.h"
#include "server/interop/formats/text_blocks.h"

namespace tacho::server::interop {

// Immutable once its series have their places, but for `used_s`.
struct Sheet {
  static constexpr size_t kColumns = 64;  // At most.
  static constexpr int32_t kStored = -1;

  // Fills in `refused_by` from what the layout was made of.
  void MarkRefused(const ingest::AdmittedLayout& admitted,
                   const std::vector<storage::Breach>& breaches);

  ingest::StreamLayout layout;
  std::vector<int32_t> refused_by;  // By column: kStored, or an index into layout.concerned.
  mutable std::atomic<int64_t> used_s = 0;  // Seconds of the monotonic clock.
};
using SheetPtr = std::shared_ptr<const Sheet>;

struct Place {
  enum class Kind : uint8_t {
    kUnknown,
    kStored,     // On the sheet.
    kDropped,    // A rule of the mapping drops it.
    kInvalid,    // It is no series: it has no name, or a label twice.
    kElsewhere,  // Another member of the cluster keeps its job.
  };
  Kind kind = Kind::kUnknown;
  uint32_t column = 0;  // If it is elsewhere: the shard.
  SheetPtr sheet;       // If it is stored.
};

// Thread-safe.
class SeriesSheets {
 public:
  // Honest keys are shorter on average; together they may not have more than this for each series.
  static constexpr size_t kKeyBytes = 512;

  explicit SeriesSheets(uint64_t max_series) : max_series_(max_series) {}

  // Counts how often all was forgotten.
  uint64_t generation() const ABSL_LOCKS_EXCLUDED(mutex_);
  Place Find(absl::string_view key) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The places of `series`, appended. Senders repeat their series in one order: where the keys come
  // as they were put, no hash is computed, and memory is read from front to back. A series with a
  // memo is not even compared.
  void FindAll(std::span<const ForeignSeries> series, std::vector<Place>* places) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Remembers a place, unless all was forgotten since `generation`: it may be by an old mapping. A
  // place that was known of the key is replaced. Above the bound, the sheets that have not been
  // used for longest are forgotten first.
  void Put(absl::string_view key, Place place, uint64_t generation) ABSL_LOCKS_EXCLUDED(mutex_);
  // Its job has expired.
  void Forget(const SheetPtr& sheet) ABSL_LOCKS_EXCLUDED(mutex_);
  // The mapping has changed.
  void ForgetAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void SetMaxSeries(uint64_t max_series) { max_series_ = max_series; }

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Entry {
    absl::string_view key;  // In texts_.
    Place place;            // kUnknown: it is forgotten.
  };

  // Each index of `entries_` has one meaning as long as this is one number, which no other object
  // of the class ever has.
  static uint32_t NewEpoch();
  // The entry of `key`, or kNone. `guess` is looked at first.
  uint32_t IndexOf(absl::string_view key, uint32_t guess) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Add(absl::string_view key, Place place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets a tenth.
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Condition>
  void EraseIf(Condition condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives back the memory of what is forgotten.
  void Compact() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<uint64_t> max_series_;
  mutable absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // In the order in which they were put.
  absl::flat_hash_map<absl::string_view, uint32_t> index_ ABSL_GUARDED_BY(mutex_);  // Remembered.
  TextBlocks texts_ ABSL_GUARDED_BY(mutex_);
  uint32_t epoch_ ABSL_GUARDED_BY(mutex_) = NewEpoch();
  uint64_t key_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Of what is remembered.
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacho::server::interop
