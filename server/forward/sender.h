// The way to a receiver: one request at a time, and what its answer means.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/base/log.h"
#include "server/forward/write_answer.h"
#include "server/forward/write_request.h"
#include "tacho/config/v1/forward.pb.h"

namespace tacho::server::forward {

struct SenderOptions {
  config::v1::Forward config;  // Durations in ns; CheckForward() has seen it.
  std::function<absl::Time()> now;
  std::string version;  // The collector's, for User-Agent.
  log::Log log;
};

struct Answer {
  Verdict verdict;
  std::string code;  // The status of HTTP, or the name of gRPC's; empty: nothing was sent.
  std::string why;   // What the receiver says, or why it says nothing; not for good news.
  size_t bytes = 0;  // Of the request.
};

// A batch as it is sent, kept from try to try.
struct PackedBatch {
  std::optional<WriteVersion> version;  // Of remote write. None: nothing is packed yet.
  std::string bytes;
};

// Thread-safe: several requests may be under way.
class Sender {
 public:
  virtual ~Sender() = default;
  // `batch` is finished, and `packed` empty before its first try, which is number 1. Blocks no
  // longer than `timeout`.
  virtual Answer Send(const WriteBatch& batch, int number, PackedBatch* packed) = 0;
};

std::unique_ptr<Sender> NewRemoteWriteSender(SenderOptions options);
std::unique_ptr<Sender> NewOtlpSender(SenderOptions options);

}  // namespace tacho::server::forward
