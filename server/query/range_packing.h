// Pieces of a Range answer, put together into messages: a message costs more than the samples of a
// short series in it.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server {

// One thread. Statuses are those of `write`.
class RangePacking {
 public:
  // Without `packed` every piece is a message. `write` must outlive it.
  RangePacking(bool packed, absl::FunctionRef<absl::Status(v1::RangeResponse)> write)
      : packed_(packed), write_(write) {}

  absl::Status Add(v1::RangeResponse piece);
  // To be called after the last piece.
  absl::Status Flush();

 private:
  // A message costs about what it costs to send 100 KiB; the first bytes do not wait for long.
  static constexpr size_t kMessageBytes = size_t{512} << 10;

  const bool packed_;
  const absl::FunctionRef<absl::Status(v1::RangeResponse)> write_;
  v1::RangeResponse message_;
  size_t bytes_ = 0;  // Of message_; 0: it holds no piece.
};

}  // namespace tacho::server
