// Records of the index, of jobs and of the journal over any bytes: what is in the database is
// refused or read, never a crash. A job "j" with one series and one layout is there, so that
// damaged records have something right to refer to.
//
// Input: pieces, each a byte that chooses the column family and the kind of key, a byte with the
// length of the rest of the key, a byte with the length of the value, then both.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "storage/index/job_table.h"
#include "storage/index/series_index.h"
#include "storage/journal/journal.h"

namespace tacho::storage {
namespace {

// Made once; every run removes what it wrote.
struct Disk {
  Disk() : env(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    rocksdb::Options options;
    options.env = env.get();
    options.create_if_missing = true;
    rocksdb::DB* opened = nullptr;
    Check(rocksdb::DB::Open(options, "/fuzz", &opened));
    db.reset(opened);
    for (const char* name : {"index", "state", "journal"}) {
      rocksdb::ColumnFamilyHandle* family = nullptr;
      Check(db->CreateColumnFamily({}, name, &family));
      families.push_back(family);
    }
  }
  static void Check(const rocksdb::Status& status) {
    if (!status.ok()) std::abort();
  }
  void Clear() const {
    for (auto* family : families) {
      std::vector<std::string> keys;
      const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator({}, family));
      for (it->SeekToFirst(); it->Valid(); it->Next()) keys.push_back(it->key().ToString());
      for (const std::string& key : keys) Check(db->Delete({}, family, key));
    }
  }

  std::unique_ptr<rocksdb::Env> env;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
};

const SeriesIndex::Options kOptions = {LimitPolicy::Default(), absl::Now};

void Read(const Disk& disk) {
  SeriesIndex index(disk.db.get(), disk.families[0], kOptions);
  JobTable jobs(disk.db.get(), disk.families[1]);
  Journal journal(disk.db.get(), disk.families[2]);
  journal.Recover([](uint64_t, absl::string_view) { return absl::OkStatus(); }).IgnoreError();
  if (!jobs.Load().ok() || !index.Load().ok()) return;
  for (const SeriesIndex::JobInfo& job : index.Jobs()) {
    index.Metrics(job.id).IgnoreError();
    index.SourceCounts(job.id).IgnoreError();
    index.Find({.job = job.name}, 1000).IgnoreError();
    index.FindLayout(job.id, 1).IgnoreError();
    index.CountColumns(job.id, 1).IgnoreError();
    jobs.Use(job.id).IgnoreError();
    jobs.Describe(job.id).IgnoreError();
  }
}

}  // namespace
}  // namespace tacho::storage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tacho::storage::Disk;
  static const Disk* const disk = new Disk;
  {
    tacho::storage::SeriesIndex index(disk->db.get(), disk->families[0], tacho::storage::kOptions);
    tacho::storage::LayoutDefinition definition;
    definition.source = {"j", 1, 0, "h"};
    definition.series.push_back({{"m", tacho::storage::MetricType::kGauge, "1", ""}, {{"a", "b"}}});
    if (!index.Register(definition).ok()) std::abort();
  }
  constexpr char kKinds[] = "JLMNSABJKOP";  // Kinds of the index, then of "state".
  while (size >= 3) {
    const size_t family = data[0] % 3;
    const char kind = kKinds[data[0] / 3 % (sizeof(kKinds) - 1)];
    const size_t key_size = data[1] % 24;
    const size_t value_size = data[2];
    data += 3;
    size -= 3;
    if (size < key_size + value_size) break;
    const std::string rest(reinterpret_cast<const char*>(data), key_size);
    const rocksdb::Slice value(reinterpret_cast<const char*>(data) + key_size, value_size);
    Disk::Check(disk->db->Put({}, disk->families[family], family == 2 ? rest : kind + rest, value));
    data += key_size + value_size;
    size -= key_size + value_size;
  }
  tacho::storage::Read(*disk);
  disk->Clear();
  return 0;
}
