#include "storage/db/ballast.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "rocksdb/env.h"

namespace tacho::storage {
namespace {

constexpr char kBallastName[] = "/ballast";
constexpr size_t kBallastPiece = 1 << 20;
// A small disk is for data: the ballast takes at most this part of it.
constexpr uint64_t kBallastShare = 16;
// Free space at which rows are refused. One commit seldom writes more.
constexpr uint64_t kMostLowRoom = 4 << 20;
// Half of a small disk: waiting for more might be waiting for ever.
constexpr uint64_t kMostAsked = kBallastShare / 2;

}  // namespace

Ballast::Ballast(Options options)
    : options_(std::move(options)), name_(absl::StrCat(options_.path, kBallastName)) {
  TACHO_CHECK(options_.env != nullptr);
  uint64_t bytes = 0;
  if (options_.env->GetFileSize(name_, &bytes).ok()) held_ = bytes;
}

void Ballast::Log(absl::string_view line) const {
  if (options_.log != nullptr) options_.log(line);
}

uint64_t Ballast::held() const {
  absl::MutexLock lock(&mutex_);
  return held_;
}

void Ballast::GiveUp() {
  uint64_t bytes = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (held_ == 0) return;
    // Somebody may have deleted it already.
    if (!options_.env->DeleteFile(name_).ok() && !options_.env->FileExists(name_).IsNotFound()) {
      return;
    }
    std::swap(bytes, held_);
  }
  Log(absl::StrCat("the disk is full: the ballast of ", bytes >> 10, " KiB is given up"));
}

// A power of two of a small disk, so that the size does not change with every start.
uint64_t Ballast::WantedBytes() const {
  uint64_t disk = 0;
  if (options_.bytes == 0 || !options_.env->GetFreeSpace(options_.path, &disk).ok()) return 0;
  std::vector<rocksdb::Env::FileAttributes> files;
  options_.env->GetChildrenFileAttributes(options_.path, &files).PermitUncheckedError();
  for (const auto& file : files) disk += file.size_bytes;
  const uint64_t share = disk / kBallastShare;
  return share >= options_.bytes ? options_.bytes : std::bit_floor(share);
}

uint64_t Ballast::LowRoom() const { return std::min(kMostLowRoom, wanted_ / 2); }

bool Ballast::Make() {
  {
    absl::MutexLock lock(&mutex_);
    if (impossible_) return true;
    // Without a file: room may have been made since the last look.
    if (held_ == 0 || wanted_ == 0) wanted_ = std::max(wanted_, WantedBytes());
    if (held_ == wanted_) return true;
    // One of another size: the configuration or the disk has changed.
    if (held_ != 0 && options_.env->DeleteFile(name_).ok()) held_ = 0;
    uint64_t unused = 0;
    if (wanted_ == 0 || !options_.env->GetFreeSpace(options_.path, &unused).ok()) return true;
    // What did not fit would not fit again, and rows be taken and refused in turns.
    const uint64_t asked = std::min(asked_, kMostAsked * wanted_);
    if (unused < wanted_ + wanted_ / 4 + 2 * LowRoom() + asked) return false;
    const rocksdb::Status made = Write(wanted_);
    if (!made.ok()) {
      options_.env->DeleteFile(name_).PermitUncheckedError();
      if (made.IsNoSpace()) return false;
      impossible_ = true;
      wanted_ = 0;
      Log(absl::StrCat("there is no ballast for a full disk: ", name_, ": ", made.ToString()));
      return true;
    }
    held_ = wanted_;
    asked_ = 0;
  }
  Log(absl::StrCat("a ballast of ", held() >> 10, " KiB is kept for a full disk"));
  return true;
}

bool Ballast::IsRoomLow(uint64_t needed) {
  absl::MutexLock lock(&mutex_);
  uint64_t unused = 0;
  if (wanted_ == 0 || !options_.env->GetFreeSpace(options_.path, &unused).ok()) return false;
  if (unused >= needed + LowRoom()) return false;
  asked_ = std::max(asked_, needed);
  return true;
}

// A file with holes would hold nothing back. Where the file system cannot allocate, bytes are
// written.
rocksdb::Status Ballast::Write(uint64_t bytes) const {
  rocksdb::EnvOptions options;
  options.fallocate_with_keep_size = false;
  std::unique_ptr<rocksdb::WritableFile> file;
  rocksdb::Status status = options_.env->NewWritableFile(name_, &file, options);
  if (!status.ok()) return status;
  status = file->Allocate(0, bytes);
  if (status.IsNoSpace()) return status;
  uint64_t size = 0;
  options_.env->GetFileSize(name_, &size).PermitUncheckedError();
  const bool allocated = status.ok() && size == bytes;
  status = rocksdb::Status::OK();
  const std::string piece(kBallastPiece, '\x5a');
  for (uint64_t written = allocated ? bytes : 0; status.ok() && written < bytes;) {
    const size_t next = std::min<uint64_t>(piece.size(), bytes - written);
    status = file->Append(rocksdb::Slice(piece.data(), next));
    written += next;
  }
  if (status.ok()) status = file->Sync();
  if (status.ok()) return file->Close();
  file->Close().PermitUncheckedError();
  return status;
}

}  // namespace tacho::storage
