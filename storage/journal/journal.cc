// Entries lie under ascending positions without gaps, each with a checksum of its own: a gap or a
// wrong checksum is damage, and never taken for the end.
#include "storage/journal/journal.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status_macros.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/write_batch.h"

namespace tacho::storage {
namespace {

constexpr size_t kChecksumSize = 4;
constexpr uint64_t kTrimMark = 0;  // Its key is that of a position that no entry has.
// Up to here a trim deletes key by key: a range tombstone costs every later read more than that.
constexpr uint64_t kMaxSingleDeletes = 16;

using Key = std::array<char, sizeof(uint64_t)>;

Key EncodeKey(uint64_t position) {
  Key key;
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<char>(position >> (56 - 8 * i));
  return key;
}

std::optional<uint64_t> DecodeKey(const rocksdb::Slice& key) {
  if (key.size() != sizeof(uint64_t)) return std::nullopt;
  uint64_t position = 0;
  for (size_t i = 0; i < key.size(); ++i) {
    position = (position << 8) | static_cast<unsigned char>(key[i]);
  }
  return position;
}

rocksdb::Slice AsSlice(const Key& key) { return {key.data(), key.size()}; }

template <typename T>
std::array<char, sizeof(T)> LittleEndian(T value) {
  std::array<char, sizeof(T)> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

template <typename T>
T FromLittleEndian(absl::string_view bytes) {
  TACHO_CHECK(bytes.size() >= sizeof(T));
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

// What a value holds after its checksum; nullopt if the two do not match.
std::optional<absl::string_view> Checked(const rocksdb::Slice& value) {
  const absl::string_view bytes(value.data(), value.size());
  if (bytes.size() < kChecksumSize) return std::nullopt;
  const absl::string_view content = bytes.substr(kChecksumSize);
  if (FromLittleEndian<uint32_t>(bytes) != ExtendCrc32c(0, content.data(), content.size()))
    return std::nullopt;
  return content;
}

void PutChecked(rocksdb::ColumnFamilyHandle* column_family, uint64_t position,
                absl::string_view content, rocksdb::WriteBatch* write) {
  const Key key = EncodeKey(position);
  const auto checksum = LittleEndian(ExtendCrc32c(0, content.data(), content.size()));
  const std::array<rocksdb::Slice, 1> key_parts = {AsSlice(key)};
  const std::array<rocksdb::Slice, 2> value_parts = {
      rocksdb::Slice(checksum.data(), checksum.size()),
      rocksdb::Slice(content.data(), content.size())};
  write->Put(column_family, rocksdb::SliceParts(key_parts.data(), key_parts.size()),
             rocksdb::SliceParts(value_parts.data(), value_parts.size()));
}

absl::Status JournalStatus(const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrCat("journal: ", status.ToString());
  if (status.IsCorruption()) return absl::DataLossError(message);
  return absl::UnavailableError(message);
}

// Position of the oldest entry kept, from the mark if `it` finds one.
absl::StatusOr<uint64_t> ReadTrimMark(rocksdb::Iterator* it) {
  const Key key = EncodeKey(kTrimMark);
  it->Seek(AsSlice(key));
  if (!it->Valid()) {
    if (!it->status().ok()) return JournalStatus(it->status());
    return 1;
  }
  if (it->key() != AsSlice(key)) return 1;
  const auto content = Checked(it->value());
  if (!content || content->size() != sizeof(uint64_t)) {
    return absl::DataLossError("journal: the trim mark is damaged");
  }
  return std::max<uint64_t>(FromLittleEndian<uint64_t>(*content), 1);
}

rocksdb::ReadOptions ScanOptions() {
  rocksdb::ReadOptions options;
  options.fill_cache = false;  // Entries are read once.
  return options;
}

// Calls `visit` with the raw value of each entry from `position` on, in one view of the database.
using VisitValue = std::function<absl::Status(uint64_t position, const rocksdb::Slice& value)>;
absl::Status Scan(rocksdb::Iterator* it, uint64_t position, const VisitValue& visit) {
  const Key key = EncodeKey(position);
  for (it->Seek(AsSlice(key)); it->Valid(); it->Next(), ++position) {
    if (DecodeKey(it->key()) != position) {
      return absl::DataLossError(absl::StrCat("journal: entry ", position, " is missing"));
    }
    if (absl::Status status = visit(position, it->value()); !status.ok()) return status;
  }
  return JournalStatus(it->status());
}

absl::Status VisitChecked(uint64_t position, const rocksdb::Slice& value,
                          const Journal::Visit& visit) {
  const auto entry = Checked(value);
  if (!entry) {
    return absl::DataLossError(
        absl::StrCat("journal: entry ", position, " does not match its checksum"));
  }
  return visit(position, *entry);
}

}  // namespace

Journal::Journal(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family)
    : db_(db), column_family_(column_family) {}

absl::Status Journal::Recover(const Visit& visit) {
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(ScanOptions(), column_family_));
  TACHO_ASSIGN_OR_RETURN(const auto begin, ReadTrimMark(it.get()));

  uint64_t end = begin;
  EntrySizes sizes;
  absl::Status status =
      Scan(it.get(), begin, [&](uint64_t position, const rocksdb::Slice& value) -> absl::Status {
        if (value.size() < kChecksumSize) {
          return absl::DataLossError(absl::StrCat("journal: entry ", position, " has no checksum"));
        }
        sizes.PushBack(static_cast<uint32_t>(value.size() - kChecksumSize));
        ++end;
        return visit == nullptr ? absl::OkStatus() : VisitChecked(position, value, visit);
      });
  if (!status.ok()) return status;
  begin_ = begin;
  end_ = end;
  sizes_ = std::move(sizes);
  return absl::OkStatus();
}

uint64_t Journal::Stage(absl::string_view entry, rocksdb::WriteBatch* write) {
  TACHO_CHECK(begin_ > kTrimMark && begin_ <= end_ && entry.size() <= UINT32_MAX);
  PutChecked(column_family_, end_, entry, write);
  sizes_.PushBack(static_cast<uint32_t>(entry.size()));
  return end_++;
}

void Journal::StageReplace(uint64_t position, absl::string_view entry, rocksdb::WriteBatch* write) {
  TACHO_CHECK(begin_ <= position && position < end_);
  PutChecked(column_family_, position, entry, write);
}

void Journal::StageTrim(uint64_t position, rocksdb::WriteBatch* write) {
  position = std::min(position, end_);
  if (position <= begin_) return;

  if (position - begin_ <= kMaxSingleDeletes) {
    for (uint64_t old = begin_; old < position; ++old) {
      write->Delete(column_family_, AsSlice(EncodeKey(old)));
    }
  } else {
    const Key first = EncodeKey(begin_);
    const Key last = EncodeKey(position);
    write->DeleteRange(column_family_, AsSlice(first), AsSlice(last));
  }
  StageMark(column_family_, position, write);

  for (; begin_ < position; ++begin_) sizes_.PopFront();
}

void Journal::StageMark(rocksdb::ColumnFamilyHandle* column_family, uint64_t position,
                        rocksdb::WriteBatch* write) {
  const auto mark = LittleEndian(position);
  PutChecked(column_family, kTrimMark, absl::string_view(mark.data(), mark.size()), write);
}

void Journal::StageRollback(uint64_t position, rocksdb::WriteBatch* write) {
  for (position = std::max(position, begin_); end_ > position; --end_) {
    write->Delete(column_family_, AsSlice(EncodeKey(end_ - 1)));
    sizes_.PopBack();
  }
}

absl::Status Journal::DeleteTrimmedFiles(uint64_t position) const {
  const Key first = EncodeKey(kTrimMark + 1);
  const Key last = EncodeKey(position);
  const rocksdb::Slice begin = AsSlice(first);
  const rocksdb::Slice end = AsSlice(last);
  return JournalStatus(
      rocksdb::DeleteFilesInRange(db_, column_family_, &begin, &end, /*include_end=*/false));
}

absl::Status Journal::Read(uint64_t position, const Visit& visit) const {
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(ScanOptions(), column_family_));
  // From the mark rather than begin_, which another thread may be moving: the iterator sees both
  // the mark and the entries of one moment.
  TACHO_ASSIGN_OR_RETURN(const auto begin, ReadTrimMark(it.get()));
  return Scan(it.get(), std::max(position, begin),
              [&visit](uint64_t at, const rocksdb::Slice& value) {
                return VisitChecked(at, value, visit);
              });
}

}  // namespace tacho::storage
