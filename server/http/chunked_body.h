// The body of a request whose length is not told (RFC 9112, 7.1), as it arrives.
//
//   5;ignored CR LF h e l l o CR LF  0 CR LF  Trailer: ignored CR LF  CR LF
//
// Strict, because a proxy that reads other bounds than this would let one request hide in another:
// sizes have one to eight hexadecimal digits, and every line ends in CRLF.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::server::http {

class ChunkedBody {
 public:
  enum class State {
    kMore,      // More bytes are needed.
    kDone,      // What follows the body is another request.
    kDamaged,   // The bytes break a rule; where a next request begins is not known.
    kTooLarge,  // The same, because the body has more than `max_bytes`.
  };
  // Of one line with a size, and of all trailers.
  static constexpr size_t kMaxLineBytes = 256;
  static constexpr size_t kMaxTrailerBytes = 8 << 10;

  explicit ChunkedBody(size_t max_bytes) : max_bytes_(max_bytes) {}

  // `in` holds the body from `begin` on, of which the first bytes() were read by earlier calls, and
  // then bytes as they arrived. Reads as many of those as it can, and leaves no framing of theirs
  // in `in`. Takes time and memory that are linear in the bytes that are new.
  State Read(size_t begin, std::string* in);
  size_t bytes() const { return bytes_; }
  State state() const { return state_; }

 private:
  enum class Next { kSize, kData, kDataEnd, kTrailer };

  // Each reads at `*at`, and goes on from there; false if more bytes are needed, or state_ says
  // that all is over.
  bool ReadSize(absl::string_view in, size_t* at);
  bool ReadTrailer(absl::string_view in, size_t* at);
  bool End(State state);

  const size_t max_bytes_;
  State state_ = State::kMore;
  Next next_ = Next::kSize;
  size_t bytes_ = 0;
  size_t left_ = 0;  // Of the chunk.
  size_t trailer_bytes_ = 0;
};

}  // namespace tacho::server::http
