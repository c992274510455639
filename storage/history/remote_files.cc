#include "storage/history/remote_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
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

// Behind the size in the name of a file of which much is read.
constexpr char kMuchSuffix[] = "+";

struct ParsedName {
  std::string key;
  uint64_t bytes = 0;
  ReadAmount amount = ReadAmount::kLittle;
};

// The inverse of RemoteFiles::NameOf(); false if it is no such name.
bool ParseName(absl::string_view name, ParsedName* parsed) {
  std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits(':', 1));
  if (absl::ConsumeSuffix(&parts.first, kMuchSuffix)) parsed->amount = ReadAmount::kMuch;
  parsed->key = std::string(parts.second);
  return absl::SimpleAtoi(parts.first, &parsed->bytes) && !parsed->key.empty();
}

}  // namespace

class RemoteFiles::File final : public rocksdb::FSRandomAccessFile {
 public:
  File(Bucket* bucket, PieceCache* cache, ParsedName name)
      : bucket_(bucket),
        cache_(cache),
        key_(std::move(name.key)),
        bytes_(name.bytes),
        max_run_(std::min(kMaxRun, cache->longest_run())),
        first_run_(name.amount == ReadAmount::kMuch ? std::min(kFirstOfMuch, max_run_) : 1) {}

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

  // Where a fetch ended, and how many pieces it brought.
  struct Place {
    uint64_t next_piece = 0;
    uint64_t run = 0;
  };

  std::vector<Place>::iterator PlaceOf(uint64_t piece) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::find_if(places_.begin(), places_.end(),
                        [piece](const Place& place) { return place.next_piece == piece; });
  }
  // How many pieces to fetch if this one is not here.
  uint64_t RunAt(uint64_t piece) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto place = PlaceOf(piece);
    return place == places_.end() ? first_run_ : std::min(2 * place->run, max_run_);
  }
  void NoteFetched(uint64_t offset, uint64_t bytes) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const uint64_t piece = offset / PieceCache::kPieceBytes;
    const uint64_t run = (bytes + PieceCache::kPieceBytes - 1) / PieceCache::kPieceBytes;
    if (const auto place = PlaceOf(piece); place != places_.end()) {
      places_.erase(place);
    } else if (places_.size() == kPlaces) {
      places_.erase(places_.begin());
    }
    places_.push_back({.next_piece = piece + run, .run = run});
  }

  Bucket* const bucket_;
  PieceCache* const cache_;
  const std::string key_;
  const uint64_t bytes_;
  const uint64_t max_run_;    // Pieces.
  const uint64_t first_run_;  // At a place that is new.
  mutable absl::Mutex mutex_;
  mutable std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);  // The last that grew is at the end.
};

RemoteFiles::RemoteFiles(Bucket* bucket, PieceCache* cache)
    : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()), bucket_(bucket), cache_(cache) {}

std::string RemoteFiles::NameOf(absl::string_view key, uint64_t bytes, ReadAmount amount) {
  return absl::StrCat(bytes, amount == ReadAmount::kMuch ? kMuchSuffix : "", ":", key);
}

rocksdb::IOStatus RemoteFiles::NewRandomAccessFile(
    const std::string& name, const rocksdb::FileOptions& /*options*/,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* file, rocksdb::IODebugContext* /*debug*/) {
  ParsedName parsed;
  if (!ParseName(name, &parsed)) return NotForObjects();
  *file = std::make_unique<File>(bucket_, cache_, std::move(parsed));
  return rocksdb::IOStatus::OK();
}

rocksdb::IOStatus RemoteFiles::GetFileSize(const std::string& name,
                                           const rocksdb::IOOptions& /*options*/, uint64_t* bytes,
                                           rocksdb::IODebugContext* /*debug*/) {
  ParsedName parsed;
  if (!ParseName(name, &parsed)) return NotForObjects();
  *bytes = parsed.bytes;
  return rocksdb::IOStatus::OK();
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
