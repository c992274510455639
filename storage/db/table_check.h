// One bit of a table that RocksDB looks at before it has compared the checksum that covers it.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace rocksdb {
class Env;
}

namespace tacho::storage {

// RocksDB parses the properties of a table first and compares their checksum afterwards. The
// highest bit of their last four bytes says that a hash index precedes; if damage has set it, a
// library that was built with assertions, as Debian's is, ends the process without naming the file.
// All other damage is left to RocksDB.
//   DATA_LOSS  the bit is set; the text names the file.
absl::Status CheckTable(rocksdb::Env* env, const std::string& path);

}  // namespace tacho::storage
