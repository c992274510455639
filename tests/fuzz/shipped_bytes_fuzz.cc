// What a restore takes from a bucket besides the objects' own frames: records of segments and the
// metadata of state files, over any bytes. They are refused or read, never a crash. What a record
// changes is what the filter of writes lets into a record, so nothing comes back that was left out.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/metadata.h"
#include "rocksdb/write_batch.h"
#include "storage/shipping/shipped_batch.h"
#include "storage/shipping/state_export.h"
#include "storage/shipping/state_restore.h"

namespace tacho::storage {
namespace {

void Expect(bool holds) {
  if (!holds) std::abort();
}

class Family final : public rocksdb::ColumnFamilyHandle {
 public:
  explicit Family(uint32_t id) : id_(id) {}

  const std::string& GetName() const override { return name_; }
  uint32_t GetID() const override { return id_; }
  rocksdb::Status GetDescriptor(rocksdb::ColumnFamilyDescriptor* /*descriptor*/) override {
    return rocksdb::Status::NotSupported();
  }
  const rocksdb::Comparator* GetComparator() const override {
    return rocksdb::BytewiseComparator();
  }

 private:
  const uint32_t id_;
  const std::string name_;
};

void FuzzRecord(absl::string_view bytes) {
  // The numbers of a database, which differ from those of a record.
  Family journal(7);
  Family index(5);
  Family state(300);
  Family events(1);
  const ShippedFamilies families = {
      .journal = &journal, .index = &index, .state = &state, .events = &events};
  rocksdb::WriteBatch write;
  const auto first = ApplyRecord(bytes, families, &write);
  const auto checked = CheckRecord(bytes);
  Expect(checked.status() == first.status() && (!first.ok() || *first == *checked));
  if (!first.ok()) return;
  const auto shipped = FilterBatch(write, families);
  Expect(shipped.ok() && shipped->first_position == *first);
  Expect(shipped->record.empty() == (write.Count() == 0));
  if (write.Count() == 0) return;
  rocksdb::WriteBatch again;
  Expect(ApplyRecord(shipped->record, families, &again).ok());
  Expect(again.Data() == write.Data());
}

void FuzzMetadata(absl::string_view bytes) {
  const auto table = DecodeStateMetadata(bytes);
  if (!table.ok()) return;
  rocksdb::LiveFileMetaData file;
  file.column_family_name = table->family;
  file.level = table->level;
  file.file_number = table->number;
  file.size = table->bytes;
  file.smallest_seqno = table->first_sequence;
  file.largest_seqno = table->last_sequence;
  file.oldest_ancester_time = table->oldest_time;
  file.file_creation_time = table->file_time;
  file.smallestkey = table->first_key;
  file.largestkey = table->last_key;
  const auto again = DecodeStateMetadata(EncodeStateMetadata(file, table->comparator));
  Expect(again.ok() && again->family == table->family && again->comparator == table->comparator);
  Expect(again->level == table->level && again->number == table->number);
  Expect(again->bytes == table->bytes && again->first_sequence == table->first_sequence);
  Expect(again->last_sequence == table->last_sequence && again->file_time == table->file_time);
  Expect(again->oldest_time == table->oldest_time && again->first_key == table->first_key);
  Expect(again->last_key == table->last_key);
}

}  // namespace
}  // namespace tacho::storage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacho::storage::FuzzRecord(bytes);
  tacho::storage::FuzzMetadata(bytes);
  if (const auto position = tacho::storage::DecodePositions(bytes); position.ok()) {
    if (tacho::storage::EncodePositions(*position) != bytes) std::abort();
  }
  return 0;
}
