#include "server/interop/formats/packed_body.h"

#include <snappy.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"

namespace tacho::server::interop {
namespace {

absl::Status TooLarge(absl::string_view bytes, size_t max_bytes) {
  return errors::ErrorOf(
      errors::Failure::kTooLarge,
      absl::StrCat("the body has ", bytes, " bytes when unpacked; at most ", max_bytes,
                   " (interop.max_request_bytes) are allowed: send fewer samples a request"));
}

}  // namespace

absl::StatusOr<std::string> UnpackSnappy(absl::string_view body, size_t max_bytes) {
  size_t bytes = 0;
  const auto damaged = [] {
    return errors::ErrorOf(errors::Failure::kMalformed,
                           "the body is not in Snappy's block format, or is damaged");
  };
  if (!snappy::GetUncompressedLength(body.data(), body.size(), &bytes)) return damaged();
  if (bytes > max_bytes) return TooLarge(absl::StrCat(bytes), max_bytes);
  std::string unpacked;
  if (!snappy::Uncompress(body.data(), body.size(), &unpacked)) return damaged();
  return unpacked;
}

absl::StatusOr<std::string> UnpackGzip(absl::string_view body, size_t max_bytes) {
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  constexpr size_t kStep = size_t{64} << 10;
  z_stream stream = {};
  if (body.size() > std::numeric_limits<uInt>::max() || inflateInit2(&stream, kGzipOnly) != Z_OK) {
    return TooLarge("too many", max_bytes);
  }
  const absl::Cleanup end = [&stream] { inflateEnd(&stream); };
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  std::string unpacked;
  while (true) {
    const size_t before = unpacked.size();
    unpacked.resize(std::min(before + kStep, max_bytes + 1));
    stream.next_out = reinterpret_cast<Bytef*>(unpacked.data() + before);
    stream.avail_out = static_cast<uInt>(unpacked.size() - before);
    const int result = inflate(&stream, Z_NO_FLUSH);
    unpacked.resize(unpacked.size() - stream.avail_out);
    if (unpacked.size() > max_bytes) return TooLarge("more", max_bytes);
    if (result == Z_STREAM_END) {
      if (stream.avail_in == 0) return unpacked;
      if (inflateReset(&stream) == Z_OK) continue;  // Another member.
    }
    if (result != Z_OK && result != Z_STREAM_END) break;
    if (result == Z_OK && stream.avail_in == 0 && unpacked.size() == before) break;  // Cut.
  }
  return errors::ErrorOf(errors::Failure::kMalformed, "the body is not gzip, or is damaged");
}

absl::StatusOr<std::string> UnpackEncoded(absl::string_view encoding, absl::string_view body,
                                          size_t max_bytes) {
  if (absl::EqualsIgnoreCase(encoding, "gzip")) return UnpackGzip(body, max_bytes);
  if (!encoding.empty() && !absl::EqualsIgnoreCase(encoding, "identity")) {
    return errors::ErrorOf(errors::Failure::kUnsupported,
                           "Content-Encoding: gzip, or none, is taken here");
  }
  if (body.size() > max_bytes) return TooLarge(absl::StrCat(body.size()), max_bytes);
  return std::string(body);
}

}  // namespace tacho::server::interop
