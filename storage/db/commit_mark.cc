// Every failure leaves the file as it was or behind: at worst the end of a log is missed, and no
// commit waits for it.
#include "storage/db/commit_mark.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/crc32c.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

constexpr absl::string_view kMagic = "TACHOMRK";
constexpr size_t kSlotBytes = 8 + 5 * 8 + 4;
constexpr size_t kSlotDistance = 512;
constexpr absl::Duration kMarkSyncInterval = absl::Seconds(1);

struct MarkSlot {
  uint64_t number = 0;  // 0: there is none.
  CommitCount count;
};

std::string EncodeSlot(const MarkSlot& slot) {
  std::string bytes(kMagic);
  PutLe64(slot.number, &bytes);
  PutLe64(slot.count.commits, &bytes);
  PutLe64(slot.count.messages, &bytes);
  PutLe64(slot.count.rows, &bytes);
  PutLe64(static_cast<uint64_t>(slot.count.time_ns), &bytes);
  PutLe32(ExtendCrc32c(0, bytes.data(), bytes.size()), &bytes);
  return bytes;
}

MarkSlot DecodeSlot(absl::string_view file, size_t at) {
  if (file.size() < at + kSlotBytes) return {};
  const absl::string_view bytes = file.substr(at, kSlotBytes);
  ByteReader in(bytes);
  MarkSlot slot;
  const bool is_slot = in.Bytes(kMagic.size()) == kMagic;
  slot.number = in.Le64();
  slot.count.commits = in.Le64();
  slot.count.messages = in.Le64();
  slot.count.rows = in.Le64();
  slot.count.time_ns = static_cast<int64_t>(in.Le64());
  const uint32_t checksum = ExtendCrc32c(0, bytes.data(), kSlotBytes - 4);
  return is_slot && in.Le32() == checksum ? slot : MarkSlot{};
}

std::string TimeOf(const CommitCount& count) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%E3SZ", absl::FromUnixNanos(count.time_ns),
                          absl::UTCTimeZone());
}

}  // namespace

std::string CommitCount::Encode() const {
  std::string bytes;
  PutVarint(commits, &bytes);
  PutVarint(messages, &bytes);
  PutVarint(rows, &bytes);
  PutVarint(ZigZag(time_ns), &bytes);
  return bytes;
}

std::optional<CommitCount> CommitCount::Decode(absl::string_view bytes) {
  ByteReader in(bytes);
  CommitCount count;
  count.commits = in.Varint();
  count.messages = in.Varint();
  count.rows = in.Varint();
  count.time_ns = UnZigZag(in.Varint());
  if (!in.AtEnd()) return std::nullopt;
  return count;
}

absl::StatusOr<CommitCount> ReadCommitCount(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* state) {
  std::string bytes;
  const rocksdb::Status read = db->Get(rocksdb::ReadOptions(), state, CommitCountKey(), &bytes);
  if (read.IsNotFound()) return CommitCount();
  if (!read.ok()) return FromRocksDb(read, "read the count of commits");
  const auto count = CommitCount::Decode(bytes);
  if (count) return *count;
  return absl::DataLossError(
      absl::StrCat("the count of commits under ", CommitCountKey(), " is damaged"));
}

CommitCount MissingOf(const CommitCount& found, const CommitCount& marked) {
  const auto beyond = [](uint64_t more, uint64_t less) { return more - std::min(more, less); };
  return {.commits = beyond(marked.commits, found.commits),
          .messages = beyond(marked.messages, found.messages),
          .rows = beyond(marked.rows, found.rows),
          .time_ns = marked.time_ns};
}

std::string DescribeMissing(absl::string_view path, const CommitCount& found,
                            const CommitCount& marked) {
  const CommitCount missing = MissingOf(found, marked);
  const std::string last =
      found.commits == 0 ? "nothing is left of it" : absl::StrCat("it ends at ", TimeOf(found));
  return absl::StrCat("the end of the write-ahead log in ", path, " is missing: ", missing.commits,
                      " commits with ", missing.messages, " acknowledged messages of ",
                      missing.rows, " rows; ", last, "; the last commit was at ", TimeOf(marked),
                      ". Find out what cut or removed *.log: the disk, a repair of the file "
                      "system, or a copy of a running store");
}

CommitMark::CommitMark(rocksdb::Env* env, const std::string& directory,
                       std::function<void(absl::string_view)> log)
    : env_(env == nullptr ? rocksdb::Env::Default() : env),
      directory_(directory),
      path_(absl::StrCat(directory, "/", kFileName)),
      log_(std::move(log)) {}

CommitMark::~CommitMark() = default;

absl::StatusOr<std::optional<CommitCount>> CommitMark::Read() const {
  if (!env_->FileExists(path_).ok()) return std::optional<CommitCount>();
  std::string bytes;
  const rocksdb::Status read = rocksdb::ReadFileToString(env_, path_, &bytes);
  if (!read.ok()) return FromRocksDb(read, absl::StrCat("read ", path_));
  const MarkSlot first = DecodeSlot(bytes, 0);
  const MarkSlot second = DecodeSlot(bytes, kSlotDistance);
  if (first.number == 0 && second.number == 0) {
    return absl::DataLossError(absl::StrCat(path_, " is damaged"));
  }
  return std::make_optional(first.number > second.number ? first.count : second.count);
}

rocksdb::Status CommitMark::MakeFile() {
  // Under its name there is a whole file at any moment.
  const std::string made = path_ + ".new";
  // Both slots: a power cut may tear the one that is written next.
  number_ = 2;
  std::string bytes = EncodeSlot({number_, count_});
  bytes.resize(kSlotDistance, '\0');
  bytes += EncodeSlot({number_ - 1, count_});
  rocksdb::Status status = rocksdb::WriteStringToFile(env_, bytes, made, /*should_sync=*/true);
  if (status.ok()) status = env_->RenameFile(made, path_);
  std::unique_ptr<rocksdb::Directory> directory;
  if (status.ok()) status = env_->NewDirectory(directory_, &directory);
  if (status.ok()) status = directory->Fsync();
  if (status.ok()) status = env_->NewRandomRWFile(path_, &file_, rocksdb::EnvOptions());
  if (!status.ok()) file_.reset();
  return status;
}

void CommitMark::Restart(const CommitCount& count) {
  count_ = count;
  file_.reset();
  synced_ = false;
  Sync();
}

void CommitMark::Write(const CommitCount& count) {
  count_ = count;
  synced_ = false;
  if (file_ == nullptr) return;
  ++number_;
  const uint64_t at = number_ % 2 == 0 ? 0 : kSlotDistance;
  Note(file_->Write(at, EncodeSlot({number_, count})), "write");
}

void CommitMark::SyncIfDue(absl::Time monotonic_now) {
  if (synced_ || monotonic_now < next_sync_) return;
  next_sync_ = monotonic_now + kMarkSyncInterval;
  Sync();
}

void CommitMark::Sync() {
  if (synced_) return;
  const rocksdb::Status status = file_ == nullptr ? MakeFile() : file_->Sync();
  synced_ = status.ok();
  Note(status, "sync");
  if (!status.ok() || !troubled_) return;
  troubled_ = false;
  if (log_ != nullptr) log_(absl::StrCat(path_, " is written again"));
}

void CommitMark::Note(const rocksdb::Status& status, absl::string_view doing) {
  if (status.ok()) return;
  // After a failed sync nobody knows what the disk has: the file is made anew.
  file_.reset();
  if (std::exchange(troubled_, true) || log_ == nullptr) return;
  log_(absl::StrCat("cannot ", doing, " ", path_, ": ", status.ToString(),
                    "; until it can be written, a missing end of the write-ahead log may not be "
                    "noticed"));
}

}  // namespace tacho::storage
