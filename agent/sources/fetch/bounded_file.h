// Whole small files.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tacho::agent {

//   NOT_FOUND, PERMISSION_DENIED, …  as the system says.
//   INVALID_ARGUMENT                 it is no regular file.
//   RESOURCE_EXHAUSTED               it has more bytes than that.
absl::StatusOr<std::string> ReadBoundedFile(const std::string& path, uint64_t max_bytes);

}  // namespace tacho::agent
