// Reads the logs of a shard without owning it: nothing is claimed, sealed or written, so it may be
// done at any time, also while an owner goes on writing.
//
// What is read is what a new owner would find at that moment. It ends
//
//   - in an older log at its seal, and goes on with the next log;
//   - in an older log that has no seal yet at its first missing number, and goes on nowhere: the
//     next owner is about to seal it, and has acknowledged nothing before that;
//   - in the last log at its first missing number, or at a seal.
//
// So all that was acknowledged before the reading began is in it, and all that is in it belongs to
// one history. Segments behind a missing number do not count.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/shard/manifest_object.h"
#include "storage/shard/takeover.h"

namespace tacho::storage {

// The segments of a log that were read: `first` to `end` - 1.
struct LogExtent {
  uint64_t epoch = 0;
  uint64_t first = 0;
  uint64_t end = 0;
  bool sealed = false;
  // Segments that are there behind the missing number `end`. They are on their way past one that is
  // not stored yet, or an owner has died in the middle: no row in them was acknowledged.
  uint64_t behind = 0;
};

// An object of a log that is missing, damaged or does not follow the one before. Where that is no
// end of the reading, OK goes on with what comes next; anything else ends it with this status.
using LogFault = std::function<absl::Status(absl::string_view key, const absl::Status& what)>;

// Gives each segment of the logs of `manifest` to `visit`, in the order of replay. Without `fault`
// the first fault ends the reading.
//   ABORTED                   owners have committed since, and deleted what this manifest needs:
//   read
//                             the manifest again, and begin anew.
//   UNIMPLEMENTED, DATA_LOSS  a segment cannot be read, or one or a seal is missing. The message
//                             names its key.
//   others                    of the bucket, of `before_retry`, or of the visitor.
absl::StatusOr<std::vector<LogExtent>> ReadLogs(const ManifestObject& object,
                                                const Manifest& manifest,
                                                const SegmentVisitor& visit,
                                                const LogFault& fault = nullptr);

}  // namespace tacho::storage
