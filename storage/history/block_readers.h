// Open blocks of the bucket. Opening one costs a request, and its index memory, so the blocks that
// were read last stay open, up to a number. A block of which some read little and others much is
// open twice; the second time costs no request.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "storage/history/remote_files.h"
#include "storage/shard/manifest.h"

namespace rocksdb {
class Cache;
class Env;
class Iterator;
class SstFileReader;
}  // namespace rocksdb

namespace tacho::storage {

// Thread-safe.
class BlockReaders {
 public:
  struct Options {
    Bucket* bucket = nullptr;  // Not owned; both must outlive this and every iterator.
    PieceCache* pieces = nullptr;
    size_t max_open = 1000;
    // What RocksDB keeps of the blocks in memory, their indexes included.
    size_t cache_bytes = 32u << 20;
  };
  explicit BlockReaders(const Options& options);
  ~BlockReaders();

  // Over all keys of a block; not yet positioned. It keeps the block open.
  //   DATA_LOSS    the object is gone, cut or damaged; the message names its key.
  //   UNAVAILABLE  the bucket does not answer, or refuses. So also later, as the iterator's status:
  //                see FromRocksDb().
  absl::StatusOr<std::unique_ptr<rocksdb::Iterator>> NewIterator(const StoredFile& file,
                                                                 ReadAmount amount)
      ABSL_LOCKS_EXCLUDED(mutex_);

  size_t open() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using ReaderPtr = std::shared_ptr<rocksdb::SstFileReader>;
  struct Open {
    ReaderPtr reader;
    std::list<std::string>::iterator used;
  };

  // By the name in RemoteFiles.
  ReaderPtr Find(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  ReaderPtr Insert(const std::string& name, ReaderPtr reader) ABSL_LOCKS_EXCLUDED(mutex_);

  const size_t max_open_;
  const std::shared_ptr<rocksdb::Cache> cache_;
  const std::shared_ptr<RemoteFiles> files_;
  const std::unique_ptr<rocksdb::Env> env_;
  mutable absl::Mutex mutex_;
  std::list<std::string> order_ ABSL_GUARDED_BY(mutex_);  // Names, the last used in front.
  absl::flat_hash_map<std::string, Open> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::storage
