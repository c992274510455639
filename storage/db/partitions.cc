#include "storage/db/partitions.h"

#include <utility>

#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {

Partition::Partition(int64_t day, rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle)
    : day_(day), db_(db), handle_(handle) {}

uint64_t Partition::TableBytes() const {
  uint64_t bytes = 0;
  db_->GetIntProperty(handle_, rocksdb::DB::Properties::kLiveSstFilesSize, &bytes);
  return bytes;
}

Partition::~Partition() { db_->DestroyColumnFamilyHandle(handle_); }

Partitions::Partitions(rocksdb::DB* db, std::function<rocksdb::ColumnFamilyOptions()> options,
                       AtPoint at_point, DiskWatch* disk)
    : db_(db), options_(std::move(options)), at_point_(std::move(at_point)), disk_(disk) {}

void Partitions::Add(PartitionPtr partition) {
  absl::MutexLock lock(&mutex_);
  const int64_t day = partition->day();
  days_[day] = std::move(partition);
}

absl::StatusOr<PartitionPtr> Partitions::FindOrCreate(int64_t day) {
  absl::MutexLock lock(&mutex_);
  if (const auto found = days_.find(day); found != days_.end()) return found->second;
  if (disk_->blocks_writes()) return disk_->trouble();
  if (!disk_->HasSpareRoom()) return absl::UnavailableError("no room for another day");
  Reach(at_point_, crash_point::kPartitionCreate);
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  const rocksdb::Status status = db_->CreateColumnFamily(options_(), PartitionName(day), &handle);
  if (!status.ok()) {
    disk_->NoteManifest(status);
    return FromRocksDb(status, "create the partition " + PartitionName(day));
  }
  Reach(at_point_, crash_point::kPartitionCreated);
  return days_[day] = std::make_shared<const Partition>(day, db_, handle);
}

std::vector<PartitionPtr> Partitions::Between(int64_t first_day, int64_t last_day) const {
  absl::MutexLock lock(&mutex_);
  std::vector<PartitionPtr> out;
  for (auto it = days_.lower_bound(first_day); it != days_.end() && it->first <= last_day; ++it) {
    out.push_back(it->second);
  }
  return out;
}

absl::StatusOr<size_t> Partitions::DropBefore(int64_t day) {
  absl::MutexLock lock(&mutex_);
  size_t dropped = 0;
  while (!days_.empty() && days_.begin()->first < day) {
    TACHO_RETURN_IF_ERROR(DropOne(days_.begin()));
    ++dropped;
  }
  return dropped;
}

absl::Status Partitions::Drop(int64_t day) {
  absl::MutexLock lock(&mutex_);
  const auto found = days_.find(day);
  return found == days_.end() ? absl::OkStatus() : DropOne(found);
}

absl::Status Partitions::DropOne(std::map<int64_t, PartitionPtr>::iterator day) {
  if (disk_->blocks_writes()) return disk_->trouble();
  if (!disk_->HasSpareRoom()) return absl::UnavailableError("no room to drop a day");
  Reach(at_point_, crash_point::kPartitionDrop);
  const rocksdb::Status status = db_->DropColumnFamily(day->second->handle());
  if (!status.ok()) {
    disk_->NoteManifest(status);
    return FromRocksDb(status, "drop a partition");
  }
  days_.erase(day);
  Reach(at_point_, crash_point::kPartitionDropped);
  return absl::OkStatus();
}

size_t Partitions::size() const {
  absl::MutexLock lock(&mutex_);
  return days_.size();
}

void Partitions::Clear() {
  absl::MutexLock lock(&mutex_);
  days_.clear();
}

}  // namespace tacho::storage
