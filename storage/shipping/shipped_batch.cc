#include "storage/shipping/shipped_batch.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

constexpr uint32_t kJournalNumber = 1;
constexpr uint32_t kStateNumber = 3;
constexpr char kSealedKind = 'P';  // Of SealedKey().
// Of a batch that changes nothing: its header.
constexpr size_t kBatchHeader = 12;

// A column family that has nothing but a number, to build a batch with.
class NumberedFamily final : public rocksdb::ColumnFamilyHandle {
 public:
  explicit NumberedFamily(uint32_t number) : number_(number) {}

  const std::string& GetName() const override { return name_; }
  uint32_t GetID() const override { return number_; }
  rocksdb::Status GetDescriptor(rocksdb::ColumnFamilyDescriptor* /*descriptor*/) override {
    return rocksdb::Status::NotSupported();
  }
  const rocksdb::Comparator* GetComparator() const override {
    return rocksdb::BytewiseComparator();
  }

 private:
  const uint32_t number_;
  const std::string name_;
};

// The position of an entry; 0 for the trim mark and for what is no entry.
uint64_t PositionOf(const rocksdb::Slice& key) {
  ByteReader in(View(key));
  const uint64_t position = in.Be64();
  return in.AtEnd() ? position : 0;
}

// Goes through a batch. What it does not know ends the walk, by the base's own answers.
class Filter final : public rocksdb::WriteBatch::Handler {
 public:
  explicit Filter(const ShippedFamilies& families)
      : ids_({families.journal->GetID(), families.index->GetID(), families.state->GetID(),
              families.events->GetID()}) {}

  rocksdb::Status PutCF(uint32_t id, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    const uint32_t number = NumberOf(id);
    if (number == 0) return rocksdb::Status::OK();
    if (number == kStateNumber && key.starts_with(rocksdb::Slice(&kSealedKind, 1))) {
      return rocksdb::Status::OK();
    }
    if (number == kJournalNumber) {
      const uint64_t position = PositionOf(key);
      if (position == 0) return rocksdb::Status::OK();
      if (first_ == 0) first_ = position;
      last_ = std::max(last_, position);
    }
    return kept_.Put(&families_[number - 1], key, value);
  }
  rocksdb::Status DeleteCF(uint32_t id, const rocksdb::Slice& key) override {
    const uint32_t number = NumberOf(id);
    if (number == 0 || number == kJournalNumber) return rocksdb::Status::OK();
    return kept_.Delete(&families_[number - 1], key);
  }
  rocksdb::Status DeleteRangeCF(uint32_t id, const rocksdb::Slice& begin,
                                const rocksdb::Slice& end) override {
    const uint32_t number = NumberOf(id);
    if (number == 0 || number == kJournalNumber) return rocksdb::Status::OK();
    return kept_.DeleteRange(&families_[number - 1], begin, end);
  }
  void LogData(const rocksdb::Slice& /*blob*/) override {}
  rocksdb::Status MarkNoop(bool /*empty_batch*/) override { return rocksdb::Status::OK(); }

  ShippedBatch Take() {
    ShippedBatch shipped{.first_position = first_, .last_position = last_};
    if (kept_.Count() > 0) shipped.record = kept_.Data();
    return shipped;
  }

 private:
  // 0: it stays on the disk.
  uint32_t NumberOf(uint32_t id) const {
    const auto found = std::find(ids_.begin(), ids_.end(), id);
    return found == ids_.end() ? 0 : static_cast<uint32_t>(found - ids_.begin()) + 1;
  }

  const std::array<uint32_t, 4> ids_;
  std::array<NumberedFamily, 4> families_ = {NumberedFamily(1), NumberedFamily(2),
                                             NumberedFamily(3), NumberedFamily(4)};
  rocksdb::WriteBatch kept_;
  uint64_t first_ = 0;
  uint64_t last_ = 0;
};

class Replay final : public rocksdb::WriteBatch::Handler {
 public:
  Replay(const ShippedFamilies& families, rocksdb::WriteBatch* write)
      : families_({families.journal, families.index, families.state, families.events}),
        write_(write) {}

  rocksdb::Status PutCF(uint32_t number, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    rocksdb::ColumnFamilyHandle* const family = Find(number);
    if (family == nullptr) return Unknown(number);
    if (number == kJournalNumber && first_ == 0) first_ = PositionOf(key);
    return write_->Put(family, key, value);
  }
  rocksdb::Status DeleteCF(uint32_t number, const rocksdb::Slice& key) override {
    rocksdb::ColumnFamilyHandle* const family = Find(number);
    return family == nullptr ? Unknown(number) : write_->Delete(family, key);
  }
  rocksdb::Status DeleteRangeCF(uint32_t number, const rocksdb::Slice& begin,
                                const rocksdb::Slice& end) override {
    rocksdb::ColumnFamilyHandle* const family = Find(number);
    return family == nullptr ? Unknown(number) : write_->DeleteRange(family, begin, end);
  }

  uint64_t first() const { return first_; }

 private:
  rocksdb::ColumnFamilyHandle* Find(uint32_t number) const {
    return number >= 1 && number <= families_.size() ? families_[number - 1] : nullptr;
  }
  static rocksdb::Status Unknown(uint32_t number) {
    return rocksdb::Status::Corruption(absl::StrCat("no column family has the number ", number));
  }

  const std::array<rocksdb::ColumnFamilyHandle*, 4> families_;
  rocksdb::WriteBatch* const write_;
  uint64_t first_ = 0;
};

}  // namespace

absl::StatusOr<ShippedBatch> FilterBatch(const rocksdb::WriteBatch& batch,
                                         const ShippedFamilies& families) {
  Filter filter(families);
  const rocksdb::Status status = batch.Iterate(&filter);
  if (!status.ok()) {
    return absl::InternalError(
        absl::StrCat("a write cannot go into the bucket: ", status.ToString()));
  }
  return filter.Take();
}

absl::StatusOr<uint64_t> ApplyRecord(absl::string_view record, const ShippedFamilies& families,
                                     rocksdb::WriteBatch* write) {
  if (record.size() < kBatchHeader) return absl::DataLossError("a record is too short");
  const rocksdb::WriteBatch batch{std::string(record)};
  Replay replay(families, write);
  const rocksdb::Status status = batch.Iterate(&replay);
  if (!status.ok()) {
    return absl::DataLossError(absl::StrCat("a record is no write: ", status.ToString()));
  }
  return replay.first();
}

}  // namespace tacho::storage
