#include "storage/shard/shard_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/segment.h"

namespace tacho::storage {
namespace {

absl::Status Fenced() {
  return absl::AbortedError("a newer owner has this shard; nothing more can be acknowledged here");
}

}  // namespace

ShardLog::ShardLog(ShardLogOptions options) : options_(options) {
  TACHO_CHECK(options_.bucket != nullptr && options_.epoch > 0 && options_.window > 0);
}

absl::StatusOr<uint64_t> ShardLog::Append(const std::vector<std::string>& records, uint64_t after,
                                          uint64_t last) {
  if (const size_t bytes = PayloadBytes(records); bytes > kMaxSegmentPayload) {
    return absl::InvalidArgumentError(
        absl::StrCat("the records have ", bytes, " bytes; a segment has at most ",
                     kMaxSegmentPayload, ". Append fewer at a time."));
  }
  Unstored* place = nullptr;
  uint64_t number = 0;
  {
    const absl::MutexLock lock(&mutex_);
    if (fenced_) return Fenced();
    if (unstored_.size() >= options_.window) {
      return absl::ResourceExhaustedError(
          absl::StrCat(unstored_.size(),
                       " segments are on their way; none is taken until one of them is stored"));
    }
    number = stored_ + unstored_.size() + 1;
    place = &unstored_.emplace_back();
  }
  // Compressing takes milliseconds. Nobody looks at the bytes of the place meanwhile.
  std::string bytes = EncodeSegment({.place = {options_.shard, options_.epoch, number},
                                     .nonce = options_.nonce,
                                     .after = after,
                                     .last = last,
                                     .records = records});
  const absl::MutexLock lock(&mutex_);
  unstored_bytes_ += bytes.size();
  place->bytes = std::move(bytes);
  place->state = State::kWaiting;
  return number;
}

ShardLog::Sent ShardLog::SendOne() {
  uint64_t number = 0;
  const std::string* bytes = nullptr;
  {
    const absl::MutexLock lock(&mutex_);
    if (fenced_) return Sent::kFenced;
    const auto next = std::find_if(unstored_.begin(), unstored_.end(), [](const Unstored& segment) {
      return segment.state == State::kWaiting;
    });
    if (next == unstored_.end()) return Sent::kNothing;
    next->state = State::kUnderWay;
    number = stored_ + static_cast<uint64_t>(next - unstored_.begin()) + 1;
    bytes = &next->bytes;
  }
  absl::Status error;
  const Sent sent = Store(number, *bytes, &error);
  return Finish(number, sent, std::move(error));
}

ShardLog::Sent ShardLog::Store(uint64_t number, const std::string& bytes, absl::Status* error) {
  const std::string key = SegmentKey(options_.shard, options_.epoch, number);
  const absl::StatusOr<std::string> put = options_.bucket->PutNew(key, bytes);
  if (put.ok()) return Sent::kStored;
  if (!absl::IsAlreadyExists(put.status())) {
    *error = put.status();
    return Sent::kUnknown;
  }
  const absl::StatusOr<StoredObject> there = options_.bucket->Get(key);
  if (there.ok()) {
    // The nonce makes the bytes of another life, or another owner, differ; a seal does anyway.
    if (there->body == bytes) return Sent::kStored;
    *error = absl::AbortedError(absl::StrCat(key, " is there already, and is somebody else's"));
    return Sent::kFenced;
  }
  // NOT_FOUND: it was there, and was removed since. A seal is never removed, so that was a segment
  // below the trim of a newer owner. The same bytes again do no harm.
  *error = there.status();
  return Sent::kUnknown;
}

ShardLog::Sent ShardLog::Finish(uint64_t number, Sent sent, absl::Status error) {
  const absl::MutexLock lock(&mutex_);
  last_error_ = std::move(error);
  TACHO_CHECK(number > stored_ && number - stored_ <= unstored_.size());
  Unstored& segment = unstored_[number - stored_ - 1];
  segment.state = sent == Sent::kStored ? State::kStored : State::kWaiting;
  if (sent == Sent::kFenced) fenced_ = true;
  if (fenced_) return Sent::kFenced;
  while (!unstored_.empty() && unstored_.front().state == State::kStored) {
    unstored_bytes_ -= unstored_.front().bytes.size();
    unstored_.pop_front();
    ++stored_;
  }
  return sent;
}

uint64_t ShardLog::stored() const {
  const absl::MutexLock lock(&mutex_);
  return stored_;
}

bool ShardLog::fenced() const {
  const absl::MutexLock lock(&mutex_);
  return fenced_;
}

void ShardLog::Fence() {
  const absl::MutexLock lock(&mutex_);
  fenced_ = true;
}

absl::StatusOr<uint64_t> ShardLog::AwaitStoredAbove(uint64_t number) {
  const absl::MutexLock lock(&mutex_);
  const auto moved = [this, number]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stored_ > number || fenced_ || closed_;
  };
  mutex_.Await(absl::Condition(&moved));
  if (stored_ > number) return stored_;
  if (fenced_) return Fenced();
  return absl::CancelledError("the log is closed");
}

bool ShardLog::HasWaiting() const {
  return std::any_of(unstored_.begin(), unstored_.end(),
                     [](const Unstored& segment) { return segment.state == State::kWaiting; });
}

bool ShardLog::HasWorkOrEnded() const { return fenced_ || closed_ || HasWaiting(); }

bool ShardLog::AwaitWork() {
  const absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &ShardLog::HasWorkOrEnded));
  return !fenced_ && !closed_;
}

void ShardLog::Close() {
  const absl::MutexLock lock(&mutex_);
  closed_ = true;
}

absl::Status ShardLog::last_error() const {
  const absl::MutexLock lock(&mutex_);
  return last_error_;
}

uint64_t ShardLog::unstored_bytes() const {
  const absl::MutexLock lock(&mutex_);
  return unstored_bytes_;
}

}  // namespace tacho::storage
