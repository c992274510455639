// Objects of a bucket as files that RocksDB can read in place. Nothing else can be done with them:
// other calls fail with NotSupported.
//
// The objects are large, the reads small and mostly one behind the other. So reads go through a
// cache of pieces (piece_cache.h), and a file that is read from one piece to the next fetches twice
// as many pieces each time, up to kMaxRun. The end of a table, which RocksDB reads first, is one
// request.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "rocksdb/file_system.h"
#include "storage/bucket/bucket.h"
#include "storage/history/piece_cache.h"

namespace tacho::storage {

// Thread-safe, and so are its files. An error of the bucket keeps its text; its kind becomes
//   Corruption  the object is gone, or shorter than it was: bytes that were stored are lost;
//   IOError     everything else: try again later. FromRocksDb() makes UNAVAILABLE of it.
class RemoteFiles final : public rocksdb::FileSystemWrapper {
 public:
  // Pieces in one request at most.
  static constexpr uint64_t kMaxRun = 4;

  // Not owned; both must outlive this and its files.
  RemoteFiles(Bucket* bucket, PieceCache* cache);

  const char* Name() const override { return "RemoteFiles"; }

  // How an object of so many bytes is called here: its size need not be asked for.
  static std::string NameOf(absl::string_view key, uint64_t bytes);

  rocksdb::IOStatus NewRandomAccessFile(const std::string& name,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetFileSize(const std::string& name, const rocksdb::IOOptions& options,
                                uint64_t* bytes, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewSequentialFile(const std::string& name, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  class File;

  Bucket* const bucket_;
  PieceCache* const cache_;
};

}  // namespace tacho::storage
