// Files without which RocksDB would take a directory for a new one, or for an older one, and delete
// what it does not know of.
#pragma once

#include <cstdarg>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rocksdb/env.h"

namespace rocksdb {
class Env;
}

namespace tacho::storage {

// A file in a directory that is being made from a bucket. It goes when the directory is whole.
inline constexpr char kHalfRestoredFile[] = "bucket-restore-begun";
// Whether a restore into this directory was begun and did not end. What is there is worth nothing.
bool IsHalfRestored(rocksdb::Env* env, const std::string& path);

// Call it before a database is opened.
//   FAILED_PRECONDITION  IsHalfRestored(); the message says what to do.
//   DATA_LOSS  there are tables, logs or manifests, but CURRENT is missing; or there are column
//              families (`families`, as the manifest lists them), but no log; or a table is damaged
//              so that RocksDB would end the process (table_check.h).
absl::Status CheckDirectory(rocksdb::Env* env, const std::string& path,
                            const std::vector<std::string>& families);

// The logs in a directory, as "000004.log, 000007.log": RocksDB names a table or manifest that is
// damaged, but not the log.
std::string LogsIn(rocksdb::Env* env, const std::string& path);

// RocksDB's own log is a file beside the data, so it is on the full disk when the disk is full; and
// in a library that was built with assertions, as Debian's is, the second line that cannot be
// written ends the process. What goes wrong reaches us as a status anyway.
class SilentLogger : public rocksdb::Logger {
 public:
  SilentLogger() : rocksdb::Logger(rocksdb::InfoLogLevel::NUM_INFO_LOG_LEVELS) {}

  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

}  // namespace tacho::storage
