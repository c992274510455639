// A number that is missing may be one that is not written yet, one that an owner has deleted after
// a commit, or one that somebody else has deleted. The manifest tells the second: it begins behind
// that number then. What is written behind it tells the third: an owner never has more segments on
// their way than its window is wide, and a new owner writes nothing before the older logs are
// sealed.
#include "storage/shard/log_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/retry.h"
#include "storage/shard/segment.h"
#include "storage/shard/shard_log.h"

namespace tacho::storage {
namespace {

// Owners have the default.
const uint64_t kWindow = ShardLogOptions().window;
// How far behind a missing number others are looked for.
const uint64_t kLookAhead = 2 * kWindow;

class LogReader {
 public:
  LogReader(const ManifestObject& object, const Manifest& manifest, const SegmentVisitor& visit,
            const LogFault& fault)
      : object_(object), manifest_(manifest), visit_(visit), fault_(fault) {}

  absl::StatusOr<std::vector<LogExtent>> Read() {
    std::vector<LogExtent> extents;
    for (size_t i = 0; i < manifest_.logs.size(); ++i) {
      TACHO_ASSIGN_OR_RETURN(const LogExtent extent, ReadOne(i));
      extents.push_back(extent);
      if (!extent.sealed) break;
    }
    return extents;
  }

 private:
  std::string KeyOf(uint64_t epoch, uint64_t number) const {
    return SegmentKey(manifest_.shard, epoch, number);
  }

  absl::StatusOr<bool> IsThere(uint64_t epoch, uint64_t number) const {
    const auto object =
        GetUntilAnswered(object_.bucket(), KeyOf(epoch, number), object_.before_retry());
    if (absl::IsNotFound(object.status())) return false;
    if (!object.ok()) return object.status();
    return true;
  }

  absl::Status Fault(const LogExtent& log, const absl::Status& what) const {
    return fault_ == nullptr ? what : fault_(KeyOf(log.epoch, log.end), what);
  }

  absl::StatusOr<LogExtent> ReadOne(size_t index) {
    LogExtent log{.epoch = manifest_.logs[index].epoch,
                  .first = manifest_.logs[index].first,
                  .end = manifest_.logs[index].first};
    std::optional<uint64_t> last;  // Sequence of the segment before.
    while (log.end <= kMaxKeyNumber) {
      const LogPlace place{manifest_.shard, log.epoch, log.end};
      const auto there =
          GetUntilAnswered(object_.bucket(), KeyOf(log.epoch, log.end), object_.before_retry());
      if (absl::IsNotFound(there.status())) {
        TACHO_ASSIGN_OR_RETURN(const bool ends, EndsAtMissing(index, &log));
        if (ends) return log;
        last.reset();
        continue;
      }
      if (!there.ok()) return there.status();
      auto found = DecodeLogObject(there->body, place);
      if (!found.ok()) {
        TACHO_RETURN_IF_ERROR(Fault(log, found.status()));
        last.reset();
      } else if (std::holds_alternative<Seal>(*found)) {
        log.sealed = true;
        return log;
      } else {
        Segment& segment = std::get<Segment>(*found);
        if (last.has_value() && segment.after != *last) {
          TACHO_RETURN_IF_ERROR(Fault(
              log, absl::DataLossError(absl::StrCat(
                       KeyOf(log.epoch, log.end), " follows sequence ", segment.after,
                       ", and the segment before it ends at ", *last, ": writes are missing"))));
        }
        last = segment.last;
        TACHO_RETURN_IF_ERROR(visit_(std::move(segment)));
      }
      ++log.end;
    }
    return absl::DataLossError(
        absl::StrCat("the log of epoch ", log.epoch, " in shard ", manifest_.shard, " has no end"));
  }

  // Whether the log ends before the number `log->end`, which is missing. If not, `log->end` is
  // where the reading goes on: the same number, or one behind a hole that was reported.
  absl::StatusOr<bool> EndsAtMissing(size_t index, LogExtent* log) {
    TACHO_ASSIGN_OR_RETURN(const bool is_trimmed, IsTrimmed(*log));
    TACHO_ASSIGN_OR_RETURN(const bool is_over, HasLaterOwnerWritten(index));
    std::optional<uint64_t> next;
    uint64_t farthest = 0;
    for (uint64_t ahead = 1; ahead <= kLookAhead; ++ahead) {
      TACHO_ASSIGN_OR_RETURN(const bool is_there, IsThere(log->epoch, log->end + ahead));
      if (!is_there) continue;
      if (!next.has_value()) next = log->end + ahead;
      farthest = ahead;
      ++log->behind;
    }
    if (!is_over && !is_trimmed && !next.has_value()) return true;
    // It may have come since it was looked for. Then everything behind it may be as it should.
    TACHO_ASSIGN_OR_RETURN(const bool is_there_now, IsThere(log->epoch, log->end));
    if (is_there_now) {
      log->behind = 0;
      return false;
    }
    TACHO_ASSIGN_OR_RETURN(const bool is_trimmed_now, IsTrimmed(*log));
    if (is_trimmed || is_trimmed_now) {
      return absl::AbortedError(
          absl::StrCat("the owner of shard ", manifest_.shard,
                       " has committed and deleted a part of its log meanwhile: begin again"));
    }
    if (!is_over && farthest < kWindow) return true;
    TACHO_RETURN_IF_ERROR(Fault(
        *log, absl::DataLossError(absl::StrCat(
                  KeyOf(log->epoch, log->end),
                  " is not in the bucket, and what was written after it is: something other than a "
                  "collector has deleted it; look for a lifecycle rule"))));
    log->behind = 0;
    if (!next.has_value()) {
      // It was the last segment or the seal; the later logs follow it anyway.
      log->sealed = true;
      return true;
    }
    log->end = *next;
    return false;
  }

  absl::StatusOr<bool> HasLaterOwnerWritten(size_t index) const {
    for (size_t later = index + 1; later < manifest_.logs.size(); ++later) {
      const LogStart& log = manifest_.logs[later];
      if (log.first > 1) return true;
      TACHO_ASSIGN_OR_RETURN(const bool is_there, IsThere(log.epoch, log.first));
      if (is_there) return true;
    }
    return false;
  }

  // Whether a newer manifest does not need the number `log.end` any more.
  absl::StatusOr<bool> IsTrimmed(const LogExtent& log) const {
    TACHO_ASSIGN_OR_RETURN(const ReadManifest now, object_.Read());
    const auto& logs = now.manifest.logs;
    return std::none_of(logs.begin(), logs.end(), [&](const LogStart& start) {
      return start.epoch == log.epoch && start.first <= log.end;
    });
  }

  const ManifestObject& object_;
  const Manifest& manifest_;
  const SegmentVisitor& visit_;
  const LogFault& fault_;
};

}  // namespace

absl::StatusOr<std::vector<LogExtent>> ReadLogs(const ManifestObject& object,
                                                const Manifest& manifest,
                                                const SegmentVisitor& visit,
                                                const LogFault& fault) {
  return LogReader(object, manifest, visit, fault).Read();
}

}  // namespace tacho::storage
