// Bodies in Snappy's block format, which is that of remote write and remote read
// (google/snappy, format_description.txt).
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::server::interop {

// `body` is not trusted. Looks at the length that it says of itself before anything is allocated.
//   INVALID_ARGUMENT (MALFORMED)   it is not in this format.
//   RESOURCE_EXHAUSTED (TOO_LARGE)  it has more than `max_bytes` bytes when unpacked.
absl::StatusOr<std::string> UnpackSnappy(absl::string_view body, size_t max_bytes);

}  // namespace tacho::server::interop
