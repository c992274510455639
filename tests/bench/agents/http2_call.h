// One bidirectional gRPC call on a connection of its own: as much of HTTP/2 as that needs, in a few
// hundred bytes. Knows no socket: bytes go in and come out.
//
// A library's session costs 25 KiB and more, which a hundred thousand agents on one machine cannot
// have. What makes this short: one stream, no dynamic header table in either direction, no frame
// larger than the default. Header blocks that come in are decoded by nghttp2.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::bench {

// How a call ended.
struct CallEnd {
  int code = 2;  // gRPC's; 2 is UNKNOWN.
  std::string message;
  std::optional<absl::Duration> retry_after;  // RetryInfo of grpc-status-details-bin.
};

// The bytes that open the connection and the call; the same for every agent. `token` is sent as a
// bearer token unless it is empty.
std::string OpenCall(absl::string_view authority, absl::string_view path, absl::string_view token);

// One thread at a time.
class Http2Call {
 public:
  // What came; views hold until the function returns.
  struct Handler {
    std::function<void(absl::string_view message)> on_message;
    std::function<void(const CallEnd& end)> on_end;
  };

  // Takes bytes as they came from the socket, and appends to `out` what must be answered.
  //   any error  the peer broke the protocol, or said goodbye: close the connection.
  absl::Status Receive(absl::string_view bytes, const Handler& handler, std::string* out);

  // Sends a message: appends to `out` as much as the peer's windows allow; the rest follows with
  // what Receive() appends.
  void Send(absl::string_view message, std::string* out);
  // No message follows. Only when unsent() is 0.
  void SendEnd(std::string* out);
  // Bytes of messages that wait for a window.
  size_t unsent() const { return unsent_.size(); }

 private:
  absl::Status OnFrame(uint8_t type, uint8_t flags, uint32_t stream, absl::string_view payload,
                       const Handler& handler, std::string* out);
  absl::Status OnData(uint8_t flags, absl::string_view payload, const Handler& handler,
                      std::string* out);
  absl::Status OnHeaders(uint8_t flags, absl::string_view payload, const Handler& handler);
  absl::Status OnHeaderBlock(bool ends_stream, const Handler& handler);
  absl::Status OnSettings(uint8_t flags, absl::string_view payload, std::string* out);
  absl::Status OnWindowUpdate(uint32_t stream, absl::string_view payload, std::string* out);
  void DeliverMessages(const Handler& handler);
  void SendUnsent(std::string* out);

  std::string in_;        // A frame that has come in part.
  std::string messages_;  // A message that has come in part.
  std::string unsent_;
  std::string header_block_;  // Until its last CONTINUATION.
  bool headers_end_stream_ = false;
  int64_t connection_window_ = 65535;
  int64_t stream_window_ = 65535;
  int64_t initial_stream_window_ = 65535;
  uint32_t received_since_update_ = 0;
};

}  // namespace tacho::bench
