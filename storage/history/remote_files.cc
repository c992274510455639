#include "storage/history/remote_files.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"

namespace tacho::storage {
namespace {

rocksdb::IOStatus ToRocksDb(const absl::Status& status, absl::string_view key) {
  const std::string text = absl::StrCat("the object ", key, ": ", status.message());
  if (absl::IsNotFound(status)) {
    return rocksdb::IOStatus::Corruption(
        absl::StrCat("the object ", key,
                     " is not in the bucket any more: something other than this collector has "
                     "deleted it; look for a lifecycle rule"));
  }
  if (absl::IsDataLoss(status)) return rocksdb::IOStatus::Corruption(text);
  return rocksdb::IOStatus::IOError(text);
}

rocksdb::IOStatus NotForObjects() {
  return rocksdb::IOStatus::NotSupported("objects of a bucket can only be read here");
}

// The inverse of RemoteFiles::NameOf().
bool ParseName(absl::string_view name, std::string* key, uint64_t* bytes) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits(':', 1));
  *key = std::string(parts.second);
  return absl::SimpleAtoi(parts.first, bytes) && !key->empty();
}

}  // namespace

class RemoteFiles::File final : public rocksdb::FSRandomAccessFile {
 public:
  File(Bucket* bucket, PieceCache* cache, std::string key, uint64_t bytes)
      : bucket_(bucket), cache_(cache), key_(std::move(key)), bytes_(bytes) {}

  rocksdb::IOStatus Read(uint64_t offset, size_t wanted, const rocksdb::IOOptions& /*options*/,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext* /*debug*/) const override {
    *result = rocksdb::Slice(scratch, 0);
    if (offset >= bytes_) return rocksdb::IOStatus::OK();
    const uint64_t end = std::min<uint64_t>(bytes_, offset + wanted);
    for (uint64_t at = offset; at < end;) {
      const uint64_t piece = at / PieceCache::kPieceBytes;
      const uint64_t last = (end - 1) / PieceCache::kPieceBytes;
      const auto found = GetPiece(piece, last);
      if (!found.ok()) return ToRocksDb(found.status(), key_);
      const uint64_t from = at - piece * PieceCache::kPieceBytes;
      at += (*found)->copy(scratch + (at - offset), end - at, from);
    }
    *result = rocksdb::Slice(scratch, end - offset);
    return rocksdb::IOStatus::OK();
  }

 private:
  absl::StatusOr<PiecePtr> GetPiece(uint64_t piece, uint64_t last) const {
    return cache_->Get({.key = key_,
                        .object_bytes = bytes_,
                        .piece = piece,
                        .run = std::max(RunAt(piece), last - piece + 1)},
                       [&](uint64_t offset, uint64_t bytes) {
                         NoteFetched(offset, bytes);
                         return bucket_->GetRange(key_, offset, bytes);
                       });
  }

  // How many pieces to fetch if this one is not here.
  uint64_t RunAt(uint64_t piece) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return piece == next_piece_ ? std::min(2 * run_, kMaxRun) : 1;
  }
  void NoteFetched(uint64_t offset, uint64_t bytes) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    run_ = (bytes + PieceCache::kPieceBytes - 1) / PieceCache::kPieceBytes;
    next_piece_ = offset / PieceCache::kPieceBytes + run_;
  }

  Bucket* const bucket_;
  PieceCache* const cache_;
  const std::string key_;
  const uint64_t bytes_;
  mutable absl::Mutex mutex_;
  // The last fetch: it ended before this piece,
  mutable uint64_t next_piece_ ABSL_GUARDED_BY(mutex_) = UINT64_MAX;
  mutable uint64_t run_ ABSL_GUARDED_BY(mutex_) = 1;  // and brought so many.
};

RemoteFiles::RemoteFiles(Bucket* bucket, PieceCache* cache)
    : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()), bucket_(bucket), cache_(cache) {}

std::string RemoteFiles::NameOf(absl::string_view key, uint64_t bytes) {
  return absl::StrCat(bytes, ":", key);
}

rocksdb::IOStatus RemoteFiles::NewRandomAccessFile(
    const std::string& name, const rocksdb::FileOptions& /*options*/,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* file, rocksdb::IODebugContext* /*debug*/) {
  std::string key;
  uint64_t bytes = 0;
  if (!ParseName(name, &key, &bytes)) return NotForObjects();
  *file = std::make_unique<File>(bucket_, cache_, std::move(key), bytes);
  return rocksdb::IOStatus::OK();
}

rocksdb::IOStatus RemoteFiles::GetFileSize(const std::string& name,
                                           const rocksdb::IOOptions& /*options*/, uint64_t* bytes,
                                           rocksdb::IODebugContext* /*debug*/) {
  std::string key;
  return ParseName(name, &key, bytes) ? rocksdb::IOStatus::OK() : NotForObjects();
}

rocksdb::IOStatus RemoteFiles::NewSequentialFile(
    const std::string& /*name*/, const rocksdb::FileOptions& /*options*/,
    std::unique_ptr<rocksdb::FSSequentialFile>* /*file*/, rocksdb::IODebugContext* /*debug*/) {
  return NotForObjects();
}

rocksdb::IOStatus RemoteFiles::NewWritableFile(const std::string& /*name*/,
                                               const rocksdb::FileOptions& /*options*/,
                                               std::unique_ptr<rocksdb::FSWritableFile>* /*file*/,
                                               rocksdb::IODebugContext* /*debug*/) {
  return NotForObjects();
}

rocksdb::IOStatus RemoteFiles::DeleteFile(const std::string& /*name*/,
                                          const rocksdb::IOOptions& /*options*/,
                                          rocksdb::IODebugContext* /*debug*/) {
  return NotForObjects();
}

rocksdb::IOStatus RemoteFiles::RenameFile(const std::string& /*from*/, const std::string& /*to*/,
                                          const rocksdb::IOOptions& /*options*/,
                                          rocksdb::IODebugContext* /*debug*/) {
  return NotForObjects();
}

}  // namespace tacho::storage
