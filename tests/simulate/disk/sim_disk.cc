#include "tests/simulate/disk/sim_disk.h"

#include <algorithm>
#include <utility>

#include "tests/simulate/schedule/schedule.h"

namespace tacho::simulate {

using rocksdb::Status;

class SimDisk::File : public rocksdb::WritableFileWrapper {
 public:
  File(std::unique_ptr<rocksdb::WritableFile> real, SimDisk* disk)
      : WritableFileWrapper(real.get()), real_(std::move(real)), disk_(disk) {}
  using rocksdb::WritableFileWrapper::Append;

  Status Append(const rocksdb::Slice& data) override {
    if (disk_->Take(&Faults::failing_appends)) {
      const size_t written = disk_->faults().late ? data.size() : data.size() / 2;
      real_->Append({data.data(), written}).PermitUncheckedError();
      return Status::IOError("injected");
    }
    const uint64_t capacity = disk_->faults().capacity;
    if (capacity != UINT64_MAX) {
      const uint64_t used = disk_->power_.bytes();
      const uint64_t room = capacity - std::min(capacity, used);
      if (data.size() > room) {
        real_->Append({data.data(), static_cast<size_t>(room)}).PermitUncheckedError();
        return Status::NoSpace("injected");
      }
    }
    return real_->Append(data);
  }
  Status Sync() override {
    SleepNs(disk_->faults().sync_ns);
    if (disk_->Take(&Faults::failing_syncs)) return Status::IOError("injected");
    if (disk_->Take(&Faults::lying_syncs)) return Status::OK();
    return real_->Sync();
  }
  Status Fsync() override { return Sync(); }

 private:
  const std::unique_ptr<rocksdb::WritableFile> real_;
  SimDisk* const disk_;
};

void SimDisk::Set(const Faults& faults) {
  absl::MutexLock lock(&mutex_);
  faults_ = faults;
}

SimDisk::Faults SimDisk::faults() const {
  absl::MutexLock lock(&mutex_);
  return faults_;
}

bool SimDisk::Take(int Faults::*left) {
  absl::MutexLock lock(&mutex_);
  if (faults_.*left <= 0) return false;
  --(faults_.*left);
  ++errors_;
  return true;
}

uint64_t SimDisk::errors() const {
  absl::MutexLock lock(&mutex_);
  return errors_;
}

Status SimDisk::NewWritableFile(const std::string& name,
                                std::unique_ptr<rocksdb::WritableFile>* file,
                                const rocksdb::EnvOptions& options) {
  std::unique_ptr<rocksdb::WritableFile> real;
  Status status = power_.NewWritableFile(name, &real, options);
  if (status.ok()) *file = std::make_unique<File>(std::move(real), this);
  return status;
}

Status SimDisk::ReopenWritableFile(const std::string& name,
                                   std::unique_ptr<rocksdb::WritableFile>* file,
                                   const rocksdb::EnvOptions& options) {
  std::unique_ptr<rocksdb::WritableFile> real;
  Status status = power_.ReopenWritableFile(name, &real, options);
  if (status.ok()) *file = std::make_unique<File>(std::move(real), this);
  return status;
}

Status SimDisk::GetFreeSpace(const std::string& /*path*/, uint64_t* bytes) {
  const uint64_t capacity = faults().capacity;
  *bytes = capacity - std::min(capacity, power_.bytes());
  return Status::OK();
}

}  // namespace tacho::simulate
