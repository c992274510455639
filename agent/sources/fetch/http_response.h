// Reads an HTTP/1.x response from bytes as they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tacho::agent {

struct HttpResponse {
  int status = 0;
  std::string content_type;
  std::map<std::string, std::string> headers;  // Names in lower case; the last of equal ones.
  std::string body;
  // Whether a length or chunks mark the body's end. Without them it ends where the connection did,
  // which may have been cut.
  bool has_end = false;
};

// One thread.
class HttpResponseReader {
 public:
  static constexpr size_t kMaxHeadBytes = 64
                                          << 10;  // Status line and header; no exporter has more.

  explicit HttpResponseReader(uint64_t max_body_bytes) : max_body_bytes_(max_body_bytes) {}

  //   INVALID_ARGUMENT    it is not HTTP/1.x, or has a form that is not read (compressed, …).
  //   RESOURCE_EXHAUSTED  head or body are longer than allowed.
  absl::Status Feed(absl::string_view bytes);
  // The connection has ended. INVALID_ARGUMENT if the response has not.
  absl::Status End();
  // Nothing more is expected.
  bool done() const { return state_ == State::kDone; }
  const HttpResponse& response() const { return response_; }

 private:
  enum class State {
    kStatusLine,
    kHeader,
    kBody,       // left_ bytes are missing.
    kBodyToEnd,  // Up to the end of the connection.
    kChunkSize,
    kChunk,     // left_ bytes are missing.
    kChunkEnd,  // The line feed behind a chunk.
    kTrailer,
    kDone,
  };

  bool TakeLine(absl::string_view* line, absl::Status* status);
  absl::Status ReadStatusLine(absl::string_view line);
  absl::Status ReadHeaderLine(absl::string_view line);
  absl::Status EndHeader();
  absl::Status ReadChunkSize(absl::string_view line);
  absl::Status TakeBody(bool* progress);
  absl::Status Step(bool* progress);

  const uint64_t max_body_bytes_;
  State state_ = State::kStatusLine;
  std::string buffer_;
  size_t at_ = 0;  // In buffer_.
  size_t head_bytes_ = 0;
  bool chunked_ = false;
  bool has_length_ = false;
  uint64_t left_ = 0;
  HttpResponse response_;
};

}  // namespace tacho::agent
