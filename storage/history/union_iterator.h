// The columns of a day that lie in several places, as one ordered map: blocks in the bucket, and
// the column family of late rows on the disk. A key that is in several of them has the same value
// everywhere and is shown once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rocksdb/iterator.h"
#include "storage/history/block_readers.h"
#include "storage/shard/manifest.h"

namespace tacho::storage {

// Blocks in the order of their keys that do not overlap.
using BlockRun = std::vector<Block>;

// Divides blocks into runs: few, if most of them were written one after the other.
std::vector<BlockRun> MakeRuns(std::vector<Block> blocks);

// One thread. Goes forward only. Its status is OK, Corruption or another one, as FromRocksDb() has
// them; seeking again tries again.
class UnionIterator final : public rocksdb::Iterator {
 public:
  // `runs` and `readers` are not owned and must outlive this. `local` may be null.
  UnionIterator(const std::vector<BlockRun>* runs, BlockReaders* readers,
                std::unique_ptr<rocksdb::Iterator> local, ReadAmount amount);
  ~UnionIterator() override;

  // Shows the keys that begin with `prefix`, and no others: a block that has none of them is not
  // read. An empty prefix shows all.
  void Seek(const rocksdb::Slice& prefix) override;
  void SeekToFirst() override { Seek(rocksdb::Slice()); }
  void Next() override;
  bool Valid() const override { return front_ != nullptr; }
  rocksdb::Slice key() const override;
  rocksdb::Slice value() const override;
  rocksdb::Status status() const override { return status_; }

  // Not offered: they show nothing and have the status NotSupported.
  void SeekToLast() override { Refuse(); }
  void SeekForPrev(const rocksdb::Slice& /*target*/) override { Refuse(); }
  void Prev() override { Refuse(); }

 private:
  class Source;
  class LocalSource;
  class RunSource;

  void Refuse();
  // Chooses the source with the lowest key.
  void Settle();

  std::vector<std::unique_ptr<Source>> sources_;
  Source* front_ = nullptr;  // Null: there is no key left, or an error.
  std::string prefix_;
  std::string passed_;
  rocksdb::Status status_;
};

}  // namespace tacho::storage
