#include "storage/shard/manifest_commit.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/garbage.h"

namespace tacho::storage {
namespace {

absl::Status CheckStart(const Manifest& manifest, uint64_t stored, const CommitRequest& request) {
  const LogStart& start = request.replay_from;
  const bool known = std::any_of(manifest.logs.begin(), manifest.logs.end(),
                                 [&](const LogStart& l) { return l.epoch == start.epoch; });
  if (!known) {
    return absl::InvalidArgumentError(
        absl::StrCat("the manifest has no log of epoch ", start.epoch, " to replay from"));
  }
  // Trimmed segments must be stored, or the number of a segment that a new owner finds missing
  // could be given to a seal below the start.
  if (start.epoch == manifest.epoch && start.first > stored + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the replay cannot begin at segment ", start.first, ": stored are those up to ", stored));
  }
  if (request.stored_through > stored) {
    return absl::InvalidArgumentError(
        absl::StrCat("the state or the blocks hold rows of segment ", request.stored_through,
                     ", and stored are those up to ", stored, ". Wait for it, then commit."));
  }
  return absl::OkStatus();
}

std::vector<LogStart> LogsFrom(const std::vector<LogStart>& logs, const LogStart& start) {
  std::vector<LogStart> kept;
  for (LogStart log : logs) {
    if (log.epoch < start.epoch) continue;
    // A start never moves back: what is below may be deleted.
    if (log.epoch == start.epoch) log.first = std::max(log.first, start.first);
    kept.push_back(log);
  }
  return kept;
}

// The segments of a log from `log.first` up to those that `kept` keeps. In a log that is left out
// they end before the seal.
void AddTrimmed(uint32_t shard, const LogStart& log, const std::vector<LogStart>& kept,
                const std::vector<SealedLog>& sealed, std::vector<std::string>* garbage) {
  const auto still = std::find_if(kept.begin(), kept.end(),
                                  [&](const LogStart& l) { return l.epoch == log.epoch; });
  const auto ended = std::find_if(sealed.begin(), sealed.end(),
                                  [&](const SealedLog& l) { return l.epoch == log.epoch; });
  uint64_t end = log.first;
  if (ended != sealed.end()) end = ended->seal;
  if (still != kept.end()) end = ended != sealed.end() ? std::min(end, still->first) : still->first;
  for (uint64_t number = log.first; number < end; ++number) {
    garbage->push_back(SegmentKey(shard, log.epoch, number));
  }
}

}  // namespace

absl::StatusOr<Committed> CommitManifest(const ManifestObject& object, ShardLog& log,
                                         const CommitRequest& request) {
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(const ReadManifest old, object.Read());
    if (old.manifest.epoch != log.epoch()) {
      log.Fence();
      return absl::AbortedError(absl::StrCat("shard ", object.shard(), " belongs to ",
                                             old.manifest.owner, " since epoch ",
                                             old.manifest.epoch));
    }
    TACHO_RETURN_IF_ERROR(CheckStart(old.manifest, log.stored(), request));
    Manifest next = old.manifest;
    TACHO_RETURN_IF_ERROR(request.change(&next));
    TACHO_CHECK(next.shard == old.manifest.shard && next.epoch == old.manifest.epoch &&
                next.owner == old.manifest.owner && next.logs == old.manifest.logs);
    next.logs = LogsFrom(old.manifest.logs, request.replay_from);
    absl::StatusOr<ReadManifest> written = object.Replace(old, std::move(next));
    // Another's claim, or a commit of mine that had no answer and came late.
    if (absl::IsAborted(written.status())) continue;
    if (!written.ok()) return written.status();
    Committed committed{.written = *std::move(written)};
    const Manifest& now = committed.written.manifest;
    committed.garbage = SupersededFiles(object.bucket(), old.manifest, now, object.before_retry());
    for (const LogStart& trimmed : old.manifest.logs) {
      AddTrimmed(now.shard, trimmed, now.logs, request.sealed, &committed.garbage);
    }
    return committed;
  }
}

}  // namespace tacho::storage
