#include "storage/history/bucket_days.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/crc32c.h"
#include "proto/base/status_macros.h"

namespace tacho::storage {

absl::StatusOr<const std::vector<BlockRun>*> BucketDay::Runs(Bucket& bucket) const {
  {
    absl::MutexLock lock(&mutex_);
    if (runs_ != nullptr) return runs_.get();
  }
  absl::StatusOr<StoredObject> object = bucket.Get(list_.key);
  if (absl::IsNotFound(object.status())) {
    return absl::DataLossError(absl::StrCat(
        "the list of blocks ", list_.key,
        " is not in the bucket any more: something other than this collector has deleted it; look "
        "for a lifecycle rule"));
  }
  if (!object.ok()) {
    return absl::UnavailableError(
        absl::StrCat("read ", list_.key, ": ", object.status().message()));
  }
  const std::string& body = object->body;
  if (body.size() != list_.bytes || ExtendCrc32c(0, body.data(), body.size()) != list_.crc32c) {
    return absl::DataLossError(
        absl::StrCat("the list of blocks ", list_.key, " is not what was written there"));
  }
  TACHO_ASSIGN_OR_RETURN(std::vector<Block> blocks, DecodeBlockList(body));
  auto runs = std::make_unique<const std::vector<BlockRun>>(MakeRuns(std::move(blocks)));
  absl::MutexLock lock(&mutex_);
  // Two threads may have read it.
  if (runs_ == nullptr) runs_ = std::move(runs);
  return runs_.get();
}

BucketDays::BucketDays(const Options& options)
    : bucket_(options.bucket),
      readers_({.bucket = options.bucket, .pieces = options.pieces, .max_open = options.max_open}),
      picture_(std::make_shared<const Picture>()) {}

std::shared_ptr<const BucketDays::Picture> BucketDays::picture() const {
  absl::MutexLock lock(&mutex_);
  return picture_;
}

void BucketDays::Set(const std::map<int64_t, StoredFile>& closed_days, int64_t whole_from) {
  absl::MutexLock lock(&mutex_);
  std::map<int64_t, BucketDayPtr> before;
  for (const BucketDayPtr& day : picture_->days) before[day->day()] = day;
  auto next = std::make_shared<Picture>();
  next->whole_from = whole_from;
  for (const auto& [day, list] : closed_days) {
    const auto known = before.find(day);
    const bool same = known != before.end() && known->second->list() == list;
    next->days.push_back(same ? known->second : std::make_shared<const BucketDay>(day, list));
  }
  picture_ = std::move(next);
}

absl::StatusOr<std::unique_ptr<rocksdb::Iterator>> BucketDays::NewIterator(
    const BucketDay& day, std::unique_ptr<rocksdb::Iterator> local, ReadAmount amount) {
  TACHO_ASSIGN_OR_RETURN(const std::vector<BlockRun>* runs, day.Runs(*bucket_));
  return std::make_unique<UnionIterator>(runs, &readers_, std::move(local), amount);
}

}  // namespace tacho::storage
