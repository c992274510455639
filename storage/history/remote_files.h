// Objects of a bucket as files that RocksDB can read in place. Nothing else can be done with them:
// other calls fail with NotSupported.
//
// The objects are large, the reads small and mostly one behind the other. So reads go through a
// cache of pieces (piece_cache.h), and where one reads on from piece to piece, each request fetches
// twice as many as the one before, up to kMaxRun. A reader of columns is in two places of a file at
// once, at values and at times, and there are several readers: so a file remembers kPlaces of them.
// The end of a table, which RocksDB reads first, is one request.
//
// A thread that fetches takes memory for the longest run twice, 16 MiB, until the pieces are in the
// cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "rocksdb/file_system.h"
#include "storage/bucket/bucket.h"
#include "storage/history/piece_cache.h"

namespace tacho::storage {

// What a reader of a file is going to ask for, as far as it knows.
enum class ReadAmount : uint8_t {
  kLittle,  // Perhaps one series: it begins with one piece.
  kMuch,    // Many pieces: it begins with kFirstOfMuch. Less would be a request more at each place.
};

// Thread-safe, and so are its files. An error of the bucket keeps its text; its kind becomes
//   Corruption  the object is gone, or shorter than it was: bytes that were stored are lost;
//   IOError     everything else: try again later. FromRocksDb() makes UNAVAILABLE of it.
class RemoteFiles final : public rocksdb::FileSystemWrapper {
 public:
  // Pieces in one request at most. Fewer if the cache could not hold them for long enough.
  static constexpr uint64_t kMaxRun = 8;
  static constexpr uint64_t kFirstOfMuch = 4;
  // Places of one file at which it is known how far was read.
  static constexpr size_t kPlaces = 8;

  // Not owned; both must outlive this and its files.
  RemoteFiles(Bucket* bucket, PieceCache* cache);

  const char* Name() const override { return "RemoteFiles"; }

  // How an object of so many bytes is called here: its size need not be asked for.
  static std::string NameOf(absl::string_view key, uint64_t bytes,
                            ReadAmount amount = ReadAmount::kLittle);

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
