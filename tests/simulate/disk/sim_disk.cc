#include "tests/simulate/disk/sim_disk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "tests/simulate/schedule/schedule.h"

namespace tacho::simulate {

using rocksdb::Status;

class SimDisk::File : public rocksdb::WritableFileWrapper {
 public:
  File(const std::string& name, std::unique_ptr<rocksdb::WritableFile> real, SimDisk* disk)
      : WritableFileWrapper(real.get()),
        is_log_(absl::EndsWith(name, ".log")),
        real_(std::move(real)),
        disk_(disk) {}
  using rocksdb::WritableFileWrapper::Append;

  Status Append(const rocksdb::Slice& data) override {
    if (const auto written = disk_->TakeAppend(data.size())) {
      real_->Append({data.data(), *written}).PermitUncheckedError();
      return Status::IOError("injected");
    }
    if (disk_->TakeNoRoom(data.size())) {
      disk_->CountNoRoom();
      real_->Append({data.data(), data.size() / 2}).PermitUncheckedError();
      return Status::NoSpace("injected");
    }
    const uint64_t capacity = disk_->faults().capacity;
    if (capacity != UINT64_MAX) {
      const uint64_t used = disk_->power_.bytes();
      const uint64_t room = capacity - std::min(capacity, used);
      if (data.size() > room) {
        disk_->CountNoRoom();
        real_->Append({data.data(), static_cast<size_t>(room)}).PermitUncheckedError();
        return Status::NoSpace("injected");
      }
    }
    return real_->Append(data);
  }
  Status Sync() override {
    return disk_->SyncWith(
        [this] { return is_log_ && disk_->Lies() ? Status::OK() : real_->Sync(); });
  }
  Status Fsync() override { return Sync(); }

 private:
  const bool is_log_;
  const std::unique_ptr<rocksdb::WritableFile> real_;
  SimDisk* const disk_;
};

class SimDisk::InPlace : public rocksdb::RandomRWFileWrapper {
 public:
  InPlace(std::unique_ptr<rocksdb::RandomRWFile> real, SimDisk* disk)
      : RandomRWFileWrapper(real.get()), real_(std::move(real)), disk_(disk) {}

  Status Write(uint64_t offset, const rocksdb::Slice& data) override {
    if (const auto written = disk_->TakeAppend(data.size())) {
      real_->Write(offset, {data.data(), *written}).PermitUncheckedError();
      return Status::IOError("injected");
    }
    return real_->Write(offset, data);
  }
  Status Sync() override {
    return disk_->SyncWith([this] { return real_->Sync(); });
  }
  Status Fsync() override { return Sync(); }

 private:
  const std::unique_ptr<rocksdb::RandomRWFile> real_;
  SimDisk* const disk_;
};

class SimDisk::Folder : public rocksdb::Directory {
 public:
  Folder(std::unique_ptr<rocksdb::Directory> real, SimDisk* disk)
      : real_(std::move(real)), disk_(disk) {}

  Status Fsync() override {
    return disk_->SyncWith([this] { return real_->Fsync(); });
  }
  size_t GetUniqueId(char* id, size_t size) const override { return real_->GetUniqueId(id, size); }

 private:
  const std::unique_ptr<rocksdb::Directory> real_;
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

std::optional<size_t> SimDisk::TakeAppend(size_t size) {
  if (!Take(&Faults::failing_appends)) return std::nullopt;
  return faults().late ? size : size / 2;
}

bool SimDisk::TakeNoRoom(size_t size) {
  absl::MutexLock lock(&mutex_);
  if (faults_.full_size > 0 && size >= faults_.full_size) {
    faults_.full_size = 0;
    // The first effect is the half that is written now.
    if (faults_.kill_after > 0) power_.KillAtOperation(1 + std::exchange(faults_.kill_after, 0));
    return true;
  }
  return faults_.full_append > 0 && --faults_.full_append == 0;
}

Status SimDisk::SyncWith(const std::function<Status()>& sync) {
  SleepNs(faults().sync_ns);
  return Take(&Faults::failing_syncs) ? Status::IOError("injected") : sync();
}

bool SimDisk::Lies() {
  absl::MutexLock lock(&mutex_);
  if (faults_.lying_syncs <= 0) return false;
  --faults_.lying_syncs;
  return has_lied_ = true;
}

bool SimDisk::TakeLies() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(has_lied_, false);
}

uint64_t SimDisk::errors() const {
  absl::MutexLock lock(&mutex_);
  return errors_;
}

uint64_t SimDisk::refusals() const {
  absl::MutexLock lock(&mutex_);
  return errors_ + no_room_;
}

void SimDisk::CountNoRoom() {
  absl::MutexLock lock(&mutex_);
  ++no_room_;
}

Status SimDisk::NewWritableFile(const std::string& name,
                                std::unique_ptr<rocksdb::WritableFile>* file,
                                const rocksdb::EnvOptions& options) {
  std::unique_ptr<rocksdb::WritableFile> real;
  Status status = power_.NewWritableFile(name, &real, options);
  if (status.ok()) *file = std::make_unique<File>(name, std::move(real), this);
  return status;
}

Status SimDisk::ReopenWritableFile(const std::string& name,
                                   std::unique_ptr<rocksdb::WritableFile>* file,
                                   const rocksdb::EnvOptions& options) {
  std::unique_ptr<rocksdb::WritableFile> real;
  Status status = power_.ReopenWritableFile(name, &real, options);
  if (status.ok()) *file = std::make_unique<File>(name, std::move(real), this);
  return status;
}

Status SimDisk::NewRandomRWFile(const std::string& name,
                                std::unique_ptr<rocksdb::RandomRWFile>* file,
                                const rocksdb::EnvOptions& options) {
  std::unique_ptr<rocksdb::RandomRWFile> real;
  Status status = power_.NewRandomRWFile(name, &real, options);
  if (status.ok()) *file = std::make_unique<InPlace>(std::move(real), this);
  return status;
}

Status SimDisk::NewDirectory(const std::string& name,
                             std::unique_ptr<rocksdb::Directory>* directory) {
  std::unique_ptr<rocksdb::Directory> real;
  Status status = power_.NewDirectory(name, &real);
  if (status.ok()) *directory = std::make_unique<Folder>(std::move(real), this);
  return status;
}

Status SimDisk::GetFreeSpace(const std::string& /*path*/, uint64_t* bytes) {
  if (const int64_t look_ns = faults().look_ns; look_ns > 0) SleepNs(look_ns);
  const uint64_t capacity = faults().capacity;
  *bytes = capacity - std::min(capacity, power_.bytes());
  return Status::OK();
}

}  // namespace tacho::simulate
