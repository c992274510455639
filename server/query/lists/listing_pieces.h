// A list that is sent in pieces, each when it has grown large enough.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace tacho::server::query {

// A piece is sent when it has grown past this; one entry is at most a few KiB more.
inline constexpr size_t kListingPieceBytes = 256 << 10;

// Takes one piece. Its error ends the listing and is returned.
template <typename Response>
using Send = absl::FunctionRef<absl::Status(Response)>;

// What `send` refers to must outlive this.
template <typename Response>
class ListingPieces {
 public:
  explicit ListingPieces(Send<Response> send) : send_(send) {}

  Response* piece() { return &piece_; }
  // Call after adding an entry of so many bytes.
  absl::Status Added(size_t bytes) {
    bytes_ += bytes;
    return bytes_ < kListingPieceBytes ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    if (bytes_ == 0) return absl::OkStatus();
    bytes_ = 0;
    return send_(std::exchange(piece_, {}));
  }

 private:
  const Send<Response> send_;
  Response piece_;
  size_t bytes_ = 0;
};

}  // namespace tacho::server::query
