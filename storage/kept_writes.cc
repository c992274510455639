#include "storage/kept_writes.h"

#include <utility>

#include "rocksdb/db.h"
#include "storage/disk_watch.h"
#include "storage/rocksdb_status.h"

namespace tacho::storage {

absl::Status KeptWrites::Write(rocksdb::WriteBatch write, absl::string_view doing) {
  absl::MutexLock lock(&mutex_);
  if (write.Count() > 0) kept_.push_back(std::move(write));
  if (!kept_.empty()) DiskWatch::KeepResumable(db_);
  while (!kept_.empty()) {
    const rocksdb::Status status = db_->Write(rocksdb::WriteOptions(), &kept_.front());
    if (!status.ok()) return FromRocksDb(status, doing);
    kept_.erase(kept_.begin());
  }
  return absl::OkStatus();
}

}  // namespace tacho::storage
