// Pieces of an answer, put together into messages: a message costs more than the samples of a short
// series in it.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace tacho::server::query {

// Of RangeResponse, CompareResponse: those with a field `more` for the pieces after the first. One
// thread. Statuses are those of `write`.
template <typename Message>
class MessagePacking {
 public:
  // Without `packed` every piece is a message. `write` must outlive it.
  MessagePacking(bool packed, absl::FunctionRef<absl::Status(Message)> write)
      : packed_(packed), write_(write) {}

  absl::Status Add(Message piece) {
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

  // To be called after the last piece.
  absl::Status Flush() {
    if (bytes_ == 0) return absl::OkStatus();
    bytes_ = 0;
    return write_(std::exchange(message_, {}));
  }

 private:
  // A message costs about what it costs to send 100 KiB; the first bytes do not wait for long.
  static constexpr size_t kMessageBytes = size_t{512} << 10;

  const bool packed_;
  const absl::FunctionRef<absl::Status(Message)> write_;
  Message message_;
  size_t bytes_ = 0;  // Of message_; 0: it holds no piece.
};

}  // namespace tacho::server::query
