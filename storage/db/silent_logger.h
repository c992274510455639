// Keeps RocksDB from writing its information log.
#pragma once

#include <cstdarg>

#include "rocksdb/env.h"

namespace tacho::storage {

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
