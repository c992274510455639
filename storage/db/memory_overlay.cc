// RocksDB changes no file that it finds: opening makes tables, a log and a manifest, and replaces
// CURRENT. So what must be kept in memory is new files, and which old ones are deleted.
#include "storage/db/memory_overlay.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tacho::storage {
namespace {

bool IsCurrent(const std::string& name) { return absl::EndsWith(name, "/CURRENT"); }

std::string FolderOf(const std::string& name) { return name.substr(0, name.rfind('/')); }

}  // namespace

class MemoryOverlay::Writer : public rocksdb::WritableFile {
 public:
  Writer(FilePtr file, absl::Mutex* mutex) : file_(std::move(file)), mutex_(mutex) {}
  ~Writer() override { Close().PermitUncheckedError(); }

  using rocksdb::WritableFile::Append;
  rocksdb::Status Append(const rocksdb::Slice& data) override {
    absl::MutexLock lock(mutex_);
    size_ += data.size();
    if (file_->writer != nullptr) return file_->writer->Append(data);
    file_->bytes.append(data.data(), data.size());
    return rocksdb::Status::OK();
  }
  rocksdb::Status Truncate(uint64_t size) override {
    absl::MutexLock lock(mutex_);
    size_ = size;
    if (file_->writer != nullptr) return file_->writer->Truncate(size);
    file_->bytes.resize(size);
    return rocksdb::Status::OK();
  }
  rocksdb::Status Close() override {
    absl::MutexLock lock(mutex_);
    if (!std::exchange(file_->open, false) || file_->writer == nullptr) {
      return rocksdb::Status::OK();
    }
    return std::exchange(file_->writer, nullptr)->Close();
  }
  rocksdb::Status Flush() override {
    absl::ReaderMutexLock lock(mutex_);
    return file_->writer == nullptr ? rocksdb::Status::OK() : file_->writer->Flush();
  }
  rocksdb::Status Sync() override {
    absl::ReaderMutexLock lock(mutex_);
    return file_->writer == nullptr ? rocksdb::Status::OK() : file_->writer->Sync();
  }
  rocksdb::Status Fsync() override {
    absl::ReaderMutexLock lock(mutex_);
    return file_->writer == nullptr ? rocksdb::Status::OK() : file_->writer->Fsync();
  }
  uint64_t GetFileSize() override {
    absl::ReaderMutexLock lock(mutex_);
    return size_;
  }

 private:
  const FilePtr file_;
  absl::Mutex* const mutex_;
  uint64_t size_ = 0;
};

class MemoryOverlay::Reader : public rocksdb::RandomAccessFile {
 public:
  Reader(FilePtr file, absl::Mutex* mutex) : file_(std::move(file)), mutex_(mutex) {}

  rocksdb::Status Read(uint64_t offset, size_t size, rocksdb::Slice* result,
                       char* scratch) const override {
    absl::ReaderMutexLock lock(mutex_);
    if (file_->reader != nullptr) return file_->reader->Read(offset, size, result, scratch);
    const std::string& bytes = file_->bytes;
    const uint64_t begin = std::min<uint64_t>(offset, bytes.size());
    const size_t found = std::min<uint64_t>(size, bytes.size() - begin);
    std::copy_n(bytes.data() + begin, found, scratch);
    *result = rocksdb::Slice(scratch, found);
    return rocksdb::Status::OK();
  }

 private:
  const FilePtr file_;
  absl::Mutex* const mutex_;
};

class MemoryOverlay::Scanner : public rocksdb::SequentialFile {
 public:
  Scanner(FilePtr file, absl::Mutex* mutex) : reader_(std::move(file), mutex) {}

  rocksdb::Status Read(size_t size, rocksdb::Slice* result, char* scratch) override {
    rocksdb::Status status = reader_.Read(offset_, size, result, scratch);
    if (status.ok()) offset_ += result->size();
    return status;
  }
  rocksdb::Status Skip(uint64_t size) override {
    offset_ += size;
    return rocksdb::Status::OK();
  }

 private:
  const Reader reader_;
  uint64_t offset_ = 0;
};

MemoryOverlay::MemoryOverlay(rocksdb::Env* disk) : EnvWrapper(disk) {}
MemoryOverlay::~MemoryOverlay() = default;

MemoryOverlay::FilePtr MemoryOverlay::Find(const std::string& name) const {
  if (landed_) return nullptr;
  const auto found = files_.find(name);
  return found == files_.end() ? nullptr : found->second;
}

uint64_t MemoryOverlay::bytes() const {
  absl::ReaderMutexLock lock(&mutex_);
  uint64_t total = 0;
  for (const auto& [name, file] : files_) total += file->bytes.size();
  return total;
}

bool MemoryOverlay::landed() const {
  absl::ReaderMutexLock lock(&mutex_);
  return landed_;
}

rocksdb::Status MemoryOverlay::NewWritableFile(const std::string& name,
                                               std::unique_ptr<rocksdb::WritableFile>* file,
                                               const rocksdb::EnvOptions& options) {
  absl::MutexLock lock(&mutex_);
  if (landed_) return target()->NewWritableFile(name, file, options);
  const auto made = std::make_shared<File>();
  files_[name] = made;
  *file = std::make_unique<Writer>(made, &mutex_);
  return rocksdb::Status::OK();
}

rocksdb::Status MemoryOverlay::NewRandomAccessFile(const std::string& name,
                                                   std::unique_ptr<rocksdb::RandomAccessFile>* file,
                                                   const rocksdb::EnvOptions& options) {
  absl::ReaderMutexLock lock(&mutex_);
  if (const FilePtr found = Find(name); found != nullptr) {
    *file = std::make_unique<Reader>(found, &mutex_);
    return rocksdb::Status::OK();
  }
  if (IsHidden(name)) return rocksdb::Status::NotFound(name);
  return target()->NewRandomAccessFile(name, file, options);
}

rocksdb::Status MemoryOverlay::NewSequentialFile(const std::string& name,
                                                 std::unique_ptr<rocksdb::SequentialFile>* file,
                                                 const rocksdb::EnvOptions& options) {
  absl::ReaderMutexLock lock(&mutex_);
  if (const FilePtr found = Find(name); found != nullptr) {
    *file = std::make_unique<Scanner>(found, &mutex_);
    return rocksdb::Status::OK();
  }
  if (IsHidden(name)) return rocksdb::Status::NotFound(name);
  return target()->NewSequentialFile(name, file, options);
}

rocksdb::Status MemoryOverlay::FileExists(const std::string& name) {
  absl::ReaderMutexLock lock(&mutex_);
  if (Find(name) != nullptr) return rocksdb::Status::OK();
  return IsHidden(name) ? rocksdb::Status::NotFound(name) : target()->FileExists(name);
}

rocksdb::Status MemoryOverlay::GetChildren(const std::string& folder,
                                           std::vector<std::string>* names) {
  absl::ReaderMutexLock lock(&mutex_);
  rocksdb::Status status = target()->GetChildren(folder, names);
  if (!status.ok() || landed_) return status;
  std::erase_if(*names, [&](const std::string& name) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    const std::string whole = absl::StrCat(folder, "/", name);
    return hidden_.contains(whole) || files_.contains(whole);
  });
  for (const auto& [name, file] : files_) {
    if (FolderOf(name) == folder) names->push_back(name.substr(folder.size() + 1));
  }
  return status;
}

rocksdb::Status MemoryOverlay::GetFileSize(const std::string& name, uint64_t* size) {
  absl::ReaderMutexLock lock(&mutex_);
  if (const FilePtr found = Find(name); found != nullptr) {
    *size = found->bytes.size();
    return rocksdb::Status::OK();
  }
  return IsHidden(name) ? rocksdb::Status::NotFound(name) : target()->GetFileSize(name, size);
}

rocksdb::Status MemoryOverlay::DeleteFile(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (landed_) return target()->DeleteFile(name);
  const bool in_memory = files_.erase(name) > 0;
  if (IsHidden(name) || !target()->FileExists(name).ok()) {
    return in_memory ? rocksdb::Status::OK() : rocksdb::Status::NotFound(name);
  }
  hidden_.insert(name);
  return rocksdb::Status::OK();
}

rocksdb::Status MemoryOverlay::RenameFile(const std::string& from, const std::string& to) {
  absl::MutexLock lock(&mutex_);
  if (landed_) return target()->RenameFile(from, to);
  const auto found = files_.find(from);
  if (found == files_.end()) return rocksdb::Status::NotSupported("not made in memory", from);
  files_[to] = std::move(found->second);
  files_.erase(found);
  return rocksdb::Status::OK();
}

rocksdb::Status MemoryOverlay::SyncFolder(const std::string& name) {
  std::unique_ptr<rocksdb::Directory> folder;
  rocksdb::Status status = target()->NewDirectory(FolderOf(name), &folder);
  return status.ok() ? folder->Fsync() : status;
}

rocksdb::Status MemoryOverlay::Copy(const std::string& name, File* file) {
  std::unique_ptr<rocksdb::WritableFile> copy;
  rocksdb::Status status = target()->NewWritableFile(name, &copy, rocksdb::EnvOptions());
  if (status.ok()) status = copy->Append(file->bytes);
  if (status.ok()) status = copy->Sync();
  if (status.ok() && !file->open) return copy->Close();
  if (status.ok()) file->writer = std::move(copy);
  return status;
}

rocksdb::Status MemoryOverlay::CopyAll(std::vector<std::string>* copied) {
  std::string current;
  for (const auto& [name, file] : files_) {
    if (IsCurrent(name)) {
      current = name;
      continue;
    }
    copied->push_back(name);
    rocksdb::Status status = Copy(name, file.get());
    if (!status.ok()) return status;
  }
  if (current.empty()) return rocksdb::Status::OK();
  // Everything that it leads to is there before it.
  rocksdb::Status status = SyncFolder(current);
  const std::string next = absl::StrCat(FolderOf(current), "/CURRENT.dbtmp");
  copied->push_back(next);
  if (status.ok()) status = Copy(next, files_[current].get());
  if (status.ok()) status = target()->RenameFile(next, current);
  return status;
}

rocksdb::Status MemoryOverlay::Land() {
  absl::MutexLock lock(&mutex_);
  if (landed_) return rocksdb::Status::OK();
  std::vector<std::string> copied;
  rocksdb::Status status = CopyAll(&copied);
  if (!status.ok()) {
    for (const auto& [name, file] : files_) file->writer = nullptr;
    for (const std::string& name : copied) target()->DeleteFile(name).PermitUncheckedError();
    return status;
  }
  // If not even the folder can be synced, RocksDB deletes the old files at its next opening.
  const bool durable = files_.empty() || SyncFolder(files_.begin()->first).ok();
  for (const std::string& name : hidden_) {
    if (durable && !files_.contains(name)) target()->DeleteFile(name).PermitUncheckedError();
  }
  for (const auto& [name, file] : files_) {
    std::unique_ptr<rocksdb::RandomAccessFile> reader;
    if (!target()->NewRandomAccessFile(name, &reader, rocksdb::EnvOptions()).ok()) continue;
    file->reader = std::move(reader);
    file->bytes = std::string();
  }
  files_.clear();
  hidden_.clear();
  landed_ = true;
  return status;
}

}  // namespace tacho::storage
