#include "server/interop/snappy_body.h"

#include <snappy.h>

#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"

namespace tacho::server::interop {

absl::StatusOr<std::string> UnpackSnappy(absl::string_view body, size_t max_bytes) {
  size_t bytes = 0;
  const auto damaged = [] {
    return errors::ErrorOf(errors::Failure::kMalformed,
                           "the body is not in Snappy's block format, or is damaged");
  };
  if (!snappy::GetUncompressedLength(body.data(), body.size(), &bytes)) return damaged();
  if (bytes > max_bytes) {
    return errors::ErrorOf(
        errors::Failure::kTooLarge,
        absl::StrCat("the body has ", bytes, " bytes when unpacked; at most ", max_bytes,
                     " (interop.max_request_bytes) are allowed: send fewer samples a request"));
  }
  std::string unpacked;
  if (!snappy::Uncompress(body.data(), body.size(), &unpacked)) return damaged();
  return unpacked;
}

}  // namespace tacho::server::interop
