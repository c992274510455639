// Bodies of requests as senders pack them. The functions look at what is not trusted, and allocate
// no more than `max_bytes` for the result.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::server::interop {

//   INVALID_ARGUMENT (MALFORMED)    it is not in this format.
//   RESOURCE_EXHAUSTED (TOO_LARGE)  it has more than `max_bytes` bytes when unpacked.

// Snappy's block format, which is that of remote write (google/snappy, format_description.txt).
absl::StatusOr<std::string> UnpackSnappy(absl::string_view body, size_t max_bytes);
// gzip (RFC 1952), of one member or several.
absl::StatusOr<std::string> UnpackGzip(absl::string_view body, size_t max_bytes);
// As the header Content-Encoding says: gzip, or nothing.
//   UNIMPLEMENTED (UNSUPPORTED)  it says something else.
absl::StatusOr<std::string> UnpackEncoded(absl::string_view encoding, absl::string_view body,
                                          size_t max_bytes);

}  // namespace tacho::server::interop
