// What the committer does about a disk that is full, or has refused something: it refuses rows,
// lets upkeep make room while the disk still takes that, and goes on by itself.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"
#include "storage/committer.h"

namespace tacho::storage {
namespace {

// How often to try whether trouble has passed.
constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr absl::Duration kLastRetry = absl::Seconds(1);
constexpr absl::Duration kCompactionRetry = absl::Seconds(5);

}  // namespace

void Committer::Tell(DiskState state) {
  if (state == std::exchange(told_, state) || parts_.on_disk == nullptr) return;
  parts_.on_disk(state, refusal());
}

void Committer::LookAtDisk() {
  if (failed_) return;
  if (!parts_.disk->trouble().ok()) SitOutTrouble();
  {
    absl::MutexLock lock(&mutex_);
    if (!upkeep_goes_on_) return;
  }
  if (!parts_.disk->trouble().ok() || !parts_.disk->ballast()->Make()) return;
  {
    absl::MutexLock lock(&mutex_);
    upkeep_goes_on_ = false;
    refusal_ = absl::OkStatus();
  }
  Tell(DiskState::kWritable);
}

void Committer::WaitForRoom() {
  absl::MutexLock lock(&mutex_);
  upkeep_goes_on_ = true;
  if (!refusal_.ok()) return;
  refusal_ = absl::UnavailableError(
      "the disk is nearly full: rows are stored again when there is room for the ballast "
      "(storage.ballast_bytes)");
}

void Committer::FindNoRoom() {
  parts_.disk->ballast()->GiveUp();
  WaitForRoom();
  Tell(DiskState::kRefusing);
}

void Committer::RefuseRows(std::vector<Request>* group) {
  const absl::Status why = refusal();
  std::vector<Request> upkeep;
  for (Request& request : *group) {
    if (request.upkeep) {
      upkeep.push_back(std::move(request));
    } else {
      request.done(why);
    }
  }
  group->swap(upkeep);
}

absl::Status Committer::RefuseAfter(const rocksdb::Status& failure) {
  TACHO_CHECK(!failure.ok());
  parts_.disk->Note(failure);
  parts_.jobs->ForgetMerged();
  absl::Status why = absl::UnavailableError("the disk refused the journal: " + failure.ToString());
  Refuse(why);
  return why;
}

absl::Status Committer::refusal() const {
  absl::MutexLock lock(&mutex_);
  return refusal_;
}

void Committer::Refuse(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  refusal_ = why;
}

bool Committer::TryResume() {
  switch (parts_.disk->TryResume(parts_.db)) {
    case DiskWatch::Outcome::kNotYet:
      return false;
    case DiskWatch::Outcome::kNever:
      failed_ = true;
      return false;
    case DiskWatch::Outcome::kResumed:
      break;
  }
  Reach(parts_.at_point, crash_point::kResumed);
  // What was staged for refused writes is forgotten: the journal is what the database holds.
  absl::Status status = parts_.journal->Recover();
  if (status.ok() && parts_.before_resuming != nullptr) status = parts_.before_resuming();
  if (!status.ok()) return false;
  Reach(parts_.at_point, crash_point::kResumeKept);
  return true;
}

void Committer::SitOutTrouble() {
  const absl::Status trouble = parts_.disk->trouble();
  if (!parts_.disk->blocks_writes()) {
    // Compaction alone can wait while rows are still taken.
    if (MonotonicNow() < next_resume_) return;
    next_resume_ = MonotonicNow() + kCompactionRetry;
    if (TryResume() || !failed_) return;
  }
  {
    absl::MutexLock lock(&mutex_);
    upkeep_goes_on_ = false;
    if (refusal_.ok()) refusal_ = trouble;
  }
  Tell(DiskState::kRefusing);
  for (absl::Duration pause = kFirstRetry;; pause = std::min(2 * pause, kLastRetry)) {
    std::vector<Request> refused;
    {
      absl::MutexLock lock(&mutex_);
      refused.swap(queue_);
      for (const Request& request : refused) queued_bytes_ -= request.weight();
      queued_messages_ -= refused.size();
    }
    const absl::Status why = refusal();
    for (const Request& request : refused) request.done(why);
    if (TryResume()) break;
    absl::MutexLock lock(&mutex_);
    if (failed_ || AwaitFor(&mutex_, absl::Condition(&stopping_), pause)) break;
  }
  if (failed_) {
    Refuse(absl::UnavailableError(absl::StrCat(
        parts_.disk->trouble().message(), "; only opening the store again shows what is stored")));
    return Tell(DiskState::kFailed);
  }
  if (!parts_.disk->trouble().ok()) return;  // Stopped.
  WaitForRoom();
}

}  // namespace tacho::storage
