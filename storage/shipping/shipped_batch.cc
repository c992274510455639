#include "storage/shipping/shipped_batch.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

constexpr uint32_t kJournalNumber = 1;
constexpr uint32_t kIndexNumber = 2;
constexpr uint32_t kStateNumber = 3;
constexpr uint32_t kEventsNumber = 4;
constexpr char kSealedKind = 'P';  // Of SealedKey().

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

// The kinds of change that Filter leaves, as RocksDB writes them: the kind, varint of the column
// family, varint length and key, and the same of the value, or of the end of the range.
constexpr uint8_t kDeletion = 0x04;
constexpr uint8_t kPut = 0x05;
constexpr uint8_t kRangeDeletion = 0x0e;

// Takes exactly what Filter leaves: what it leaves out must not come in by a damaged record.
// RocksDB reads batches, too, but takes them for its own: damaged ones end the process.
class Replay {
 public:
  Replay(const ShippedFamilies& families, rocksdb::WriteBatch* write)
      : families_({families.journal, families.index, families.state, families.events}),
        write_(write) {}

  absl::Status Apply(absl::string_view record) {
    ByteReader in(record);
    in.Le64();  // The sequence that it had in its database.
    const uint32_t count = in.Le32();
    if (!in.ok()) return Damaged("it is too short");
    for (uint32_t i = 0; i < count; ++i) {
      const uint8_t kind = in.Byte();
      const uint64_t number = in.Varint();
      const absl::string_view key = in.String();
      const absl::string_view value = kind == kDeletion ? "" : in.String();
      if (!in.ok()) return Damaged("it ends within a change");
      TACHO_RETURN_IF_ERROR(ApplyOne(kind, number, key, value));
    }
    return in.AtEnd() ? absl::OkStatus() : Damaged("it has more than its changes");
  }

  uint64_t first() const { return first_; }

 private:
  static absl::Status Damaged(absl::string_view what) {
    return absl::DataLossError(absl::StrCat("a record is no write: ", what));
  }
  static rocksdb::Slice Slice(absl::string_view bytes) { return {bytes.data(), bytes.size()}; }

  absl::Status ApplyOne(uint8_t kind, uint64_t number, absl::string_view key,
                        absl::string_view value) {
    if (number < 1 || number > families_.size()) {
      return Damaged(absl::StrCat("no column family has the number ", number));
    }
    rocksdb::ColumnFamilyHandle* const family = families_[number - 1];
    rocksdb::Status status;
    if (kind == kPut) {
      if (number == kStateNumber && !key.empty() && key[0] == kSealedKind) {
        return Damaged("it has a sealed position");
      }
      if (number == kJournalNumber) {
        const uint64_t position = PositionOf(Slice(key));
        if (position == 0) return Damaged("an entry of the journal has no position");
        if (first_ == 0) first_ = position;
      }
      status = write_->Put(family, Slice(key), Slice(value));
    } else if (kind != kDeletion && kind != kRangeDeletion) {
      return Damaged(absl::StrCat("it has a change of the kind ", kind));
    } else if (number == kJournalNumber) {
      return Damaged("it trims the journal");
    } else if (kind == kDeletion) {
      status = write_->Delete(family, Slice(key));
    } else {
      // The database would refuse it, and that would look as if the disk did.
      if (value < key) return Damaged("a range ends before it begins");
      status = write_->DeleteRange(family, Slice(key), Slice(value));
    }
    return status.ok() ? absl::OkStatus() : Damaged(status.ToString());
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
  Replay replay(families, write);
  TACHO_RETURN_IF_ERROR(replay.Apply(record));
  return replay.first();
}

absl::StatusOr<uint64_t> CheckRecord(absl::string_view record) {
  NumberedFamily journal(kJournalNumber);
  NumberedFamily index(kIndexNumber);
  NumberedFamily state(kStateNumber);
  NumberedFamily events(kEventsNumber);
  rocksdb::WriteBatch nowhere;
  return ApplyRecord(
      record, {.journal = &journal, .index = &index, .state = &state, .events = &events}, &nowhere);
}

}  // namespace tacho::storage
