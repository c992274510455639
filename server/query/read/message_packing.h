// Answers in messages of a size that is worth sending: a message costs more than the samples of a
// short series in it, or than an entry of a list.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace tacho::server::query {

// Takes one message. Its error ends the answer and is returned.
template <typename Message>
using Send = absl::FunctionRef<absl::Status(Message)>;

// A message of a list is sent once it has grown past this; one entry is at most a few KiB more.
inline constexpr size_t kListMessageBytes = size_t{256} << 10;
// A message costs about what it costs to send 100 KiB; the first bytes do not wait for long.
inline constexpr size_t kPackedMessageBytes = size_t{512} << 10;

// For one thread. The objects that `send` refers to must outlive it. Statuses are those of `send`.
template <typename Message>
class MessagePacking {
 public:
  // Without `packed` every piece that is added is a message.
  explicit MessagePacking(bool packed, Send<Message> send) : packed_(packed), send_(send) {}

  // --- Lists -----------------------------------------------------------------------------------

  // Add an entry here, then call Added() with its bytes.
  Message* message() { return &message_; }
  absl::Status Added(size_t bytes) {
    bytes_ += bytes;
    return bytes_ < kListMessageBytes ? absl::OkStatus() : Flush();
  }

  // --- Pieces: of messages that have a field `more` for those after the first --------------------

  absl::Status Add(Message piece) {
    if (!packed_) return send_(std::move(piece));
    const size_t bytes = piece.ByteSizeLong();
    absl::Status status;
    if (bytes_ > 0 && bytes_ + bytes > kPackedMessageBytes) status = Flush();
    if (bytes_ == 0) {
      message_ = std::move(piece);
    } else {
      *message_.add_more() = std::move(piece);
    }
    bytes_ += bytes;
    return status;
  }

  // To be called after the last entry or piece.
  absl::Status Flush() {
    if (bytes_ == 0) return absl::OkStatus();
    bytes_ = 0;
    return send_(std::exchange(message_, {}));
  }

 private:
  const bool packed_;
  const Send<Message> send_;
  Message message_;
  size_t bytes_ = 0;  // Size of message_; 0: it holds nothing.
};

}  // namespace tacho::server::query
