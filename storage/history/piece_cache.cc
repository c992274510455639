// A piece is in one of four states: in memory, on the disk, on its way, or unknown. The lock is
// held only to change that state, never while the disk or the bucket is asked.
#include "storage/history/piece_cache.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status_macros.h"
#include "rocksdb/env.h"
#include "storage/codec/bytes.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

constexpr absl::string_view kSuffix = ".piece";
constexpr absl::string_view kUnfinished = ".new";
// A name of a file has at most 255 bytes everywhere.
constexpr size_t kMaxName = 240;

uint64_t BytesOfPiece(uint64_t object_bytes, uint64_t piece) {
  const uint64_t begin = piece * PieceCache::kPieceBytes;
  TACHO_CHECK(begin < object_bytes);
  return std::min(PieceCache::kPieceBytes, object_bytes - begin);
}

// With one read: rocksdb::ReadFileToString() reads 8 KiB at a time, so that a piece takes 1.7 times
// as long until it is checked and in memory.
bool ReadWhole(rocksdb::Env* env, const std::string& path, std::string* file) {
  uint64_t size = 0;
  std::unique_ptr<rocksdb::RandomAccessFile> opened;
  if (!env->GetFileSize(path, &size).ok() || size > 2 * PieceCache::kPieceBytes ||
      !env->NewRandomAccessFile(path, &opened, rocksdb::EnvOptions()).ok()) {
    return false;
  }
  file->resize(size);
  rocksdb::Slice read;
  if (!opened->Read(0, size, &read, file->data()).ok() || read.size() != size) return false;
  if (read.data() != file->data()) file->assign(read.data(), read.size());
  return true;
}

}  // namespace

PieceCache::PieceCache(Options options)
    : options_(std::move(options)),
      env_(options_.env == nullptr ? rocksdb::Env::Default() : options_.env) {}

absl::StatusOr<std::unique_ptr<PieceCache>> PieceCache::Open(Options options) {
  std::unique_ptr<PieceCache> cache(new PieceCache(std::move(options)));
  TACHO_RETURN_IF_ERROR(cache->FindKept());
  return cache;
}

absl::Status PieceCache::FindKept() {
  const std::string doing = absl::StrCat("open the bucket's cache in ", options_.path);
  TACHO_RETURN_IF_ERROR(FromRocksDb(env_->CreateDirIfMissing(options_.path), doing));
  std::vector<std::string> names;
  TACHO_RETURN_IF_ERROR(FromRocksDb(env_->GetChildren(options_.path, &names), doing));
  std::vector<std::pair<uint64_t, Name>> by_age;
  for (const std::string& name : names) {
    if (absl::EndsWith(name, kUnfinished)) {
      env_->DeleteFile(PathOf(name)).PermitUncheckedError();
      continue;
    }
    uint64_t written = 0;
    if (!absl::EndsWith(name, kSuffix)) continue;
    env_->GetFileModificationTime(PathOf(name), &written).PermitUncheckedError();
    by_age.emplace_back(written, name);
  }
  std::sort(by_age.begin(), by_age.end());
  absl::MutexLock lock(&mutex_);
  for (const auto& [written, name] : by_age) {
    uint64_t bytes = 0;
    if (!env_->GetFileSize(PathOf(name), &bytes).ok()) continue;
    disk_order_.push_front(name);
    on_disk_[name] = {bytes, disk_order_.begin()};
    stats_.bytes += bytes;
  }
  while (stats_.bytes > options_.max_bytes) {
    const Name oldest = disk_order_.back();
    DropKept(oldest);
    env_->DeleteFile(PathOf(oldest)).PermitUncheckedError();
  }
  return absl::OkStatus();
}

// Keys have no '+'.
PieceCache::Name PieceCache::NameOf(absl::string_view key, uint64_t piece) {
  return absl::StrCat(absl::StrReplaceAll(key, {{"/", "+"}}), "@", piece, kSuffix);
}

std::string PieceCache::PathOf(const Name& name) const {
  return absl::StrCat(options_.path, "/", name);
}

bool PieceCache::IsKnown(const Name& name) const {
  return in_memory_.contains(name) || on_disk_.contains(name) || on_the_way_.contains(name);
}

PiecePtr PieceCache::FindOrClaim(const Wanted& wanted, uint64_t* run) {
  const Name name = NameOf(wanted.key, wanted.piece);
  bool kept = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !on_the_way_.contains(name);
    };
    mutex_.Await(absl::Condition(&settled));
    if (const auto found = in_memory_.find(name); found != in_memory_.end()) {
      memory_order_.splice(memory_order_.begin(), memory_order_, found->second.used);
      ++stats_.hits;
      return found->second.piece;
    }
    // From here on the others wait for what this thread finds.
    on_the_way_.insert(name);
    *run = 1;
    if (const auto found = on_disk_.find(name); found != on_disk_.end()) {
      disk_order_.splice(disk_order_.begin(), disk_order_, found->second.used);
      kept = true;
    }
  }
  PiecePtr read = kept ? ReadKept(name, wanted) : nullptr;
  absl::MutexLock lock(&mutex_);
  if (read != nullptr) {
    ++stats_.hits;
    KeepInMemory(name, read);
    on_the_way_.erase(name);
    return read;
  }
  if (kept) {
    ++stats_.disk_errors;
    DropKept(name);
  }
  ++stats_.misses;
  const uint64_t pieces = (wanted.object_bytes + kPieceBytes - 1) / kPieceBytes;
  while (*run < wanted.run && wanted.piece + *run < pieces) {
    const Name next = NameOf(wanted.key, wanted.piece + *run);
    if (IsKnown(next)) break;
    on_the_way_.insert(next);
    ++*run;
  }
  return nullptr;
}

void PieceCache::Settle(const Wanted& wanted, uint64_t run) {
  absl::MutexLock lock(&mutex_);
  for (uint64_t i = 0; i < run; ++i) on_the_way_.erase(NameOf(wanted.key, wanted.piece + i));
}

absl::StatusOr<PiecePtr> PieceCache::Get(const Wanted& wanted, Fetch fetch) {
  TACHO_CHECK(wanted.piece * kPieceBytes < wanted.object_bytes);
  uint64_t run = 0;
  if (PiecePtr found = FindOrClaim(wanted, &run)) return found;
  const uint64_t offset = wanted.piece * kPieceBytes;
  const uint64_t bytes = std::min(run * kPieceBytes, wanted.object_bytes - offset);
  absl::StatusOr<std::string> fetched = fetch(offset, bytes);
  if (fetched.ok() && fetched->size() != bytes) {
    fetched = absl::DataLossError(absl::StrCat(
        "the object ", wanted.key, " has ", offset + fetched->size(), " bytes or ends sooner; ",
        wanted.object_bytes, " were written: it has been changed or cut in the bucket"));
  }
  if (!fetched.ok()) {
    Settle(wanted, run);
    return fetched.status();
  }
  PiecePtr first;
  std::vector<PiecePtr> pieces;
  for (uint64_t i = 0; i < run; ++i) {
    pieces.push_back(std::make_shared<const std::string>(
        fetched->substr(i * kPieceBytes, BytesOfPiece(wanted.object_bytes, wanted.piece + i))));
  }
  for (uint64_t i = 0; i < run; ++i) {
    Keep(NameOf(wanted.key, wanted.piece + i), wanted.key, wanted.piece + i, pieces[i]);
  }
  Settle(wanted, run);
  return pieces.front();
}

PiecePtr PieceCache::ReadKept(const Name& name, const Wanted& wanted) const {
  std::string file;
  if (!ReadWhole(env_, PathOf(name), &file)) return nullptr;
  ByteReader reader(file);
  const uint32_t crc = reader.Le32();
  const absl::string_view checked = reader.rest();
  const absl::string_view key = reader.String();
  const uint64_t number = reader.Varint();
  const size_t size = reader.rest().size();
  if (!reader.ok() || ExtendCrc32c(0, checked.data(), checked.size()) != crc || key != wanted.key ||
      number != wanted.piece || size != BytesOfPiece(wanted.object_bytes, wanted.piece)) {
    return nullptr;
  }
  file.erase(0, file.size() - size);
  return std::make_shared<const std::string>(std::move(file));
}

bool PieceCache::WriteKept(const Name& name, absl::string_view key, uint64_t piece,
                           absl::string_view bytes) const {
  std::string checked;
  checked.reserve(bytes.size() + key.size() + 20);
  PutString(key, &checked);
  PutVarint(piece, &checked);
  checked.append(bytes.data(), bytes.size());
  std::string file;
  PutLe32(ExtendCrc32c(0, checked.data(), checked.size()), &file);
  file += checked;
  const std::string unfinished = absl::StrCat(PathOf(name), kUnfinished);
  rocksdb::Status status = rocksdb::WriteStringToFile(env_, file, unfinished);
  if (status.ok()) status = env_->RenameFile(unfinished, PathOf(name));
  if (!status.ok()) env_->DeleteFile(unfinished).PermitUncheckedError();
  return status.ok();
}

void PieceCache::KeepInMemory(const Name& name, const PiecePtr& piece) {
  if (in_memory_.contains(name)) return;
  memory_order_.push_front(name);
  in_memory_[name] = {piece, memory_order_.begin()};
  memory_used_ += piece->size();
  while (memory_used_ > options_.memory_bytes && memory_order_.size() > 1) {
    const auto oldest = in_memory_.find(memory_order_.back());
    TACHO_CHECK(oldest != in_memory_.end());
    memory_used_ -= oldest->second.piece->size();
    in_memory_.erase(oldest);
    memory_order_.pop_back();
  }
}

void PieceCache::DropKept(const Name& name) {
  const auto found = on_disk_.find(name);
  if (found == on_disk_.end()) return;
  TACHO_CHECK(stats_.bytes >= found->second.bytes);
  stats_.bytes -= found->second.bytes;
  disk_order_.erase(found->second.used);
  on_disk_.erase(found);
}

void PieceCache::Keep(const Name& name, absl::string_view key, uint64_t piece,
                      const PiecePtr& bytes) {
  const bool fits = bytes->size() <= options_.max_bytes && name.size() <= kMaxName;
  const bool written = fits && WriteKept(name, key, piece, *bytes);
  std::vector<Name> gone;
  {
    absl::MutexLock lock(&mutex_);
    KeepInMemory(name, bytes);
    if (fits && !written) ++stats_.disk_errors;
    if (!written) return;
    DropKept(name);
    disk_order_.push_front(name);
    on_disk_[name] = {bytes->size(), disk_order_.begin()};
    stats_.bytes += bytes->size();
    while (stats_.bytes > options_.max_bytes) {
      gone.push_back(disk_order_.back());
      DropKept(gone.back());
    }
  }
  for (const Name& name_gone : gone) env_->DeleteFile(PathOf(name_gone)).PermitUncheckedError();
}

void PieceCache::Forget(absl::string_view key) {
  const std::string prefix = absl::StrCat(absl::StrReplaceAll(key, {{"/", "+"}}), "@");
  std::vector<Name> gone;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, kept] : on_disk_) {
      if (absl::StartsWith(name, prefix)) gone.push_back(name);
    }
    for (const Name& name : gone) DropKept(name);
  }
  for (const Name& name : gone) env_->DeleteFile(PathOf(name)).PermitUncheckedError();
}

PieceCache::Stats PieceCache::stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

}  // namespace tacho::storage
