#include "server/http/gzip.h"

#include <zlib.h>

#include <limits>

namespace tacho::server {

std::optional<std::string> Gzip(absl::string_view bytes) {
  if (bytes.size() > std::numeric_limits<uInt>::max()) return std::nullopt;
  constexpr int kGzipWindow = MAX_WBITS + 16;  // + 16: a gzip header, not zlib's.
  constexpr int kMemoryLevel = 8;              // zlib's default.
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return std::nullopt;
  }
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  // zlib does not write through next_in; its type lacks the const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);  // One call: the bound holds it all.
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return std::nullopt;
  return packed;
}

}  // namespace tacho::server
