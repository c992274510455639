#include "storage/history_record.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/crc32c.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

constexpr absl::string_view kPrefix = "bucket/";
constexpr char kManifest[] = "bucket/manifest";
constexpr char kPending[] = "bucket/pending";
constexpr char kWholeFrom[] = "bucket/whole_from";
constexpr absl::string_view kDay = "bucket/day/";
// Writes without an answer, of one process: more than there are tries before somebody looks.
constexpr size_t kMaxPending = 64;

std::string DayKey(int64_t day) {
  std::string key(kDay);
  PutBeTime(day, &key);
  return key;
}

}  // namespace

void DayDigest::Add(absl::string_view key, absl::string_view value) {
  ++keys_;
  bytes_ += key.size() + value.size();
  const uint64_t sizes[] = {key.size(), value.size()};
  crc32c_ = ExtendCrc32c(crc32c_, sizes, sizeof(sizes));
  crc32c_ = ExtendCrc32c(crc32c_, key.data(), key.size());
  crc32c_ = ExtendCrc32c(crc32c_, value.data(), value.size());
}

absl::Status HistoryRecord::Load() {
  const std::unique_ptr<rocksdb::Iterator> it(
      database_->db->NewIterator(rocksdb::ReadOptions(), database_->default_family));
  for (it->Seek(rocksdb::Slice(kPrefix.data(), kPrefix.size()));
       it->Valid() && absl::StartsWith(View(it->key()), kPrefix); it->Next()) {
    TACHO_RETURN_IF_ERROR(Read(View(it->key()), View(it->value())));
  }
  return FromRocksDb(it->status(), "read what is known of the bucket");
}

absl::Status HistoryRecord::Read(absl::string_view key, absl::string_view value) {
  const absl::Status damaged = absl::DataLossError(absl::StrCat(
      "the record ", rocksdb::Slice(key.data(), key.size()).ToString(), " is damaged"));
  ByteReader reader(value);
  if (key == kManifest) {
    TACHO_ASSIGN_OR_RETURN(known_, DecodeManifest(value));
    return absl::OkStatus();
  }
  if (key == kPending) {
    while (reader.ok() && !reader.AtEnd()) pending_.push_back(reader.Le64());
  } else if (key == kWholeFrom) {
    whole_from_ = UnZigZag(reader.Varint());
  } else if (absl::StartsWith(key, kDay)) {
    ByteReader day(key.substr(kDay.size()));
    const int64_t number = day.BeTime();
    const uint32_t crc = reader.Le32();
    const uint64_t keys = reader.Varint();
    const uint64_t bytes = reader.Varint();
    if (!day.AtEnd() || !reader.ok()) return damaged;
    sent_[number] = {DayDigest(keys, bytes, crc), std::string(reader.rest())};
    return absl::OkStatus();
  } else {
    return damaged;
  }
  return reader.AtEnd() ? absl::OkStatus() : damaged;
}

const SentDay* HistoryRecord::FindSent(int64_t day) const {
  const auto found = sent_.find(day);
  return found == sent_.end() ? nullptr : &found->second;
}

bool HistoryRecord::IsMine(uint64_t nonce) const {
  return (known_.has_value() && known_->nonce == nonce) ||
         std::find(pending_.begin(), pending_.end(), nonce) != pending_.end();
}

absl::Status HistoryRecord::AddPending(uint64_t nonce) {
  std::vector<uint64_t> next = pending_;
  next.push_back(nonce);
  if (next.size() > kMaxPending) next.erase(next.begin());
  std::string value;
  for (const uint64_t each : next) PutLe64(each, &value);
  rocksdb::WriteBatch write;
  write.Put(database_->default_family, kPending, value);
  TACHO_RETURN_IF_ERROR(database_->WriteSynced(&write, "note a write to the bucket"));
  pending_ = std::move(next);
  return absl::OkStatus();
}

absl::Status HistoryRecord::SetKnown(const Manifest& manifest) {
  rocksdb::WriteBatch write;
  write.Put(database_->default_family, kManifest, EncodeManifest(manifest));
  write.Delete(database_->default_family, kPending);
  std::map<int64_t, SentDay> kept;
  for (const auto& [day, sent] : sent_) {
    if (manifest.closed_days.contains(day)) {
      kept.emplace(day, sent);
    } else {
      write.Delete(database_->default_family, DayKey(day));
    }
  }
  TACHO_RETURN_IF_ERROR(database_->WriteSynced(&write, "note what is in the bucket"));
  known_ = manifest;
  pending_.clear();
  sent_ = std::move(kept);
  return absl::OkStatus();
}

absl::Status HistoryRecord::SetSent(int64_t day, SentDay sent) {
  std::string value;
  PutLe32(sent.digest.crc32c(), &value);
  PutVarint(sent.digest.keys(), &value);
  PutVarint(sent.digest.bytes(), &value);
  value += sent.list;
  rocksdb::WriteBatch write;
  write.Put(database_->default_family, DayKey(day), value);
  TACHO_RETURN_IF_ERROR(database_->WriteSynced(&write, "note a day that was sent"));
  sent_[day] = std::move(sent);
  return absl::OkStatus();
}

absl::Status HistoryRecord::SetWholeFrom(int64_t day) {
  if (day <= whole_from_) return absl::OkStatus();
  std::string value;
  PutVarint(ZigZag(day), &value);
  rocksdb::WriteBatch write;
  write.Put(database_->default_family, kWholeFrom, value);
  TACHO_RETURN_IF_ERROR(database_->WriteSynced(&write, "note a day that leaves the disk"));
  whole_from_ = day;
  return absl::OkStatus();
}

}  // namespace tacho::storage
