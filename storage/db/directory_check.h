// Files without which RocksDB would take a directory for a new one, or for an older one, and delete
// what it does not know of.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace rocksdb {
class Env;
}

namespace tacho::storage {

// To be called before a database is opened.
//   DATA_LOSS  there are tables, logs or manifests, but CURRENT is missing; or there are column
//              families (`families`, as the manifest lists them), but no log.
absl::Status CheckDirectory(rocksdb::Env* env, const std::string& path,
                            const std::vector<std::string>& families);

}  // namespace tacho::storage
