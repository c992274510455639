#include "storage/history/block_readers.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "rocksdb/cache.h"
#include "rocksdb/env.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/table.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

rocksdb::Options ReaderOptions(rocksdb::Env* env, const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.cache_index_and_filter_blocks = true;
  rocksdb::Options options;
  options.env = env;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace

BlockReaders::BlockReaders(const Options& options)
    : max_open_(options.max_open),
      cache_(rocksdb::NewLRUCache(options.cache_bytes)),
      files_(std::make_shared<RemoteFiles>(options.bucket, options.pieces)),
      env_(rocksdb::NewCompositeEnv(files_)) {}

BlockReaders::~BlockReaders() = default;

BlockReaders::ReaderPtr BlockReaders::Find(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(name);
  if (found == open_.end()) return nullptr;
  order_.splice(order_.begin(), order_, found->second.used);
  return found->second.reader;
}

BlockReaders::ReaderPtr BlockReaders::Insert(const std::string& name, ReaderPtr reader) {
  std::vector<ReaderPtr> closed;  // Behind the lock.
  absl::MutexLock lock(&mutex_);
  // Two threads may have opened it; the second finds the pieces in the cache.
  if (const auto found = open_.find(name); found != open_.end()) return found->second.reader;
  order_.push_front(name);
  open_[name] = {reader, order_.begin()};
  while (open_.size() > max_open_) {
    const auto oldest = open_.find(order_.back());
    TACHO_CHECK(oldest != open_.end());
    closed.push_back(std::move(oldest->second.reader));
    open_.erase(oldest);
    order_.pop_back();
  }
  return reader;
}

absl::StatusOr<std::unique_ptr<rocksdb::Iterator>> BlockReaders::NewIterator(const StoredFile& file,
                                                                             ReadAmount amount) {
  const std::string name = RemoteFiles::NameOf(file.key, file.bytes, amount);
  ReaderPtr reader = Find(name);
  if (reader == nullptr) {
    reader = std::make_shared<rocksdb::SstFileReader>(ReaderOptions(env_.get(), cache_));
    const rocksdb::Status opened = reader->Open(name);
    if (!opened.ok()) return FromRocksDb(opened, absl::StrCat("open the block ", file.key));
    reader = Insert(name, std::move(reader));
  }
  auto* const iterator = reader->NewIterator(rocksdb::ReadOptions());
  // The reader must be there as long as the iterator is.
  iterator->RegisterCleanup([](void* held, void*) { delete static_cast<ReaderPtr*>(held); },
                            new ReaderPtr(reader), nullptr);
  return std::unique_ptr<rocksdb::Iterator>(iterator);
}

size_t BlockReaders::open() const {
  absl::MutexLock lock(&mutex_);
  return open_.size();
}

}  // namespace tacho::storage
