#include "storage/db/kept_writes.h"

#include <utility>

#include "proto/base/check.h"
#include "rocksdb/db.h"
#include "storage/db/disk_watch.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {

rocksdb::Status KeptWrites::Keep(rocksdb::WriteBatch write) {
  absl::MutexLock lock(&mutex_);
  if (write.Count() > 0) kept_.push_back(std::move(write));
  return refused_;
}

rocksdb::Status KeptWrites::WriteAll() {
  absl::MutexLock writing(&writing_);
  for (bool first = true;; first = false) {
    rocksdb::WriteBatch* write = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      TACHO_CHECK(first || !kept_.empty());
      if (!first) kept_.pop_front();
      refused_ = rocksdb::Status::OK();
      if (kept_.empty()) return refused_;
      write = &kept_.front();  // Stays where it is while others are added behind it.
    }
    if (disk_ == nullptr) {
      DiskWatch::PutMarker(db_);
    } else {
      disk_->KeepResumable(db_);
    }
    rocksdb::Status status = db_->Write(rocksdb::WriteOptions(), write);
    if (status.ok()) continue;
    absl::MutexLock lock(&mutex_);
    refused_ = status;
    return status;
  }
}

absl::Status KeptWrites::Write(rocksdb::WriteBatch write, absl::string_view doing) {
  // Whether the disk refuses is found out anew.
  Keep(std::move(write)).PermitUncheckedError();
  if (IsEmpty()) return absl::OkStatus();
  rocksdb::Status status;
  if (disk_ == nullptr) {
    status = WriteAll();
  } else {
    absl::MutexLock turn(disk_->log_mutex());
    if (disk_->blocks_writes()) return disk_->trouble();
    status = WriteAll();
  }
  return status.ok() ? absl::OkStatus() : FromRocksDb(status, doing);
}

bool KeptWrites::IsEmpty() {
  absl::MutexLock lock(&mutex_);
  return kept_.empty();
}

}  // namespace tacho::storage
