// DB::Resume(), and what RocksDB 7.8 leaves undone when a write was refused under atomic_flush.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "rocksdb/status.h"

namespace rocksdb {
class DB;
}

namespace tacho::storage {

// Resumes, and returns what RocksDB says to it. `stopped`: RocksDB has stopped writing; if not,
// there is nothing to resume but what the caller knows of. Nobody may write to the log meanwhile.
// `request_flush` asks for memory of all column families to be written out, without waiting for
// that; it is called on another thread, before this returns. `errors` counts the errors that
// RocksDB has reported to its listeners.
rocksdb::Status ResumeWriting(rocksdb::DB* db, bool stopped,
                              const std::function<void()>& request_flush,
                              const std::atomic<uint64_t>& errors);

}  // namespace tacho::storage
