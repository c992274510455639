// Reads the small files that a configuration names: keys, certificates, tokens.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tacho::config {

// What others than its owner may do with a file. The group may always read: that is how a service
// that runs as a user of its own gets its files.
enum class FileTrust {
  kPublic,   // Anybody may read it.
  kTrusted,  // Nobody but owner and group may write it: it decides who is let in.
  kSecret,   // As kTrusted, and nobody but they may read it.
};

// The bytes of `path`; links are followed.
//   NOT_FOUND            there is no such file.
//   PERMISSION_DENIED    we may not read it, or others may do what `trust` forbids.
//   INVALID_ARGUMENT     no regular file, empty, or larger than `max_bytes`.
// Each text names the path, and says what to do.
absl::StatusOr<std::string> ReadCheckedFile(const std::string& path, FileTrust trust,
                                            size_t max_bytes = size_t{4} << 20);

}  // namespace tacho::config
