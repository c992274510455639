#include "server/query/range_packing.h"

#include <utility>

namespace tacho::server {

absl::Status RangePacking::Add(v1::RangeResponse piece) {
  if (!packed_) return write_(std::move(piece));
  const size_t bytes = piece.ByteSizeLong();
  absl::Status status;
  if (bytes_ > 0 && bytes_ + bytes > kMessageBytes) status = Flush();
  if (bytes_ == 0) {
    message_ = std::move(piece);
  } else {
    *message_.add_more() = std::move(piece);
  }
  bytes_ += bytes;
  return status;
}

absl::Status RangePacking::Flush() {
  if (bytes_ == 0) return absl::OkStatus();
  bytes_ = 0;
  return write_(std::exchange(message_, {}));
}

}  // namespace tacho::server
