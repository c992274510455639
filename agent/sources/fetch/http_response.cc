// Parses an HTTP/1.1 response that arrives in pieces, within bounds on headers and body.
#include "agent/sources/fetch/http_response.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tacho::agent {
namespace {

absl::Status Broken(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the answer is not HTTP that is read here: ", what));
}

}  // namespace

absl::Status HttpResponseReader::Feed(absl::string_view bytes) {
  buffer_.append(bytes.data(), bytes.size());
  bool progress = true;
  while (progress && !done()) {
    progress = false;
    if (absl::Status status = Step(&progress); !status.ok()) return status;
  }
  buffer_.erase(0, at_);
  at_ = 0;
  return absl::OkStatus();
}

absl::Status HttpResponseReader::End() {
  if (state_ == State::kBodyToEnd) state_ = State::kDone;
  return done() ? absl::OkStatus()
                : absl::InvalidArgumentError("the connection ended within the answer");
}

absl::Status HttpResponseReader::Step(bool* progress) {
  if (state_ == State::kBody || state_ == State::kBodyToEnd || state_ == State::kChunk) {
    return TakeBody(progress);
  }
  absl::string_view line;
  absl::Status status;
  if (!TakeLine(&line, &status)) return status;
  *progress = true;
  switch (state_) {
    case State::kStatusLine:
      return ReadStatusLine(line);
    case State::kHeader:
      return line.empty() ? EndHeader() : ReadHeaderLine(line);
    case State::kChunkSize:
      return ReadChunkSize(line);
    case State::kChunkEnd:
      state_ = State::kChunkSize;
      return line.empty() ? absl::OkStatus() : Broken("a chunk is longer than it says");
    default:  // kTrailer
      if (line.empty()) state_ = State::kDone;
      return absl::OkStatus();
  }
}

bool HttpResponseReader::TakeLine(absl::string_view* line, absl::Status* status) {
  const size_t end = buffer_.find('\n', at_);
  const size_t length = (end == std::string::npos ? buffer_.size() : end + 1) - at_;
  if (head_bytes_ + length > kMaxHeadBytes) {
    *status = absl::ResourceExhaustedError(
        absl::StrCat("the answer's header has more than ", kMaxHeadBytes, " bytes"));
    return false;
  }
  if (end == std::string::npos) return false;
  *line = absl::string_view(buffer_).substr(at_, length - 1);
  absl::ConsumeSuffix(line, "\r");
  at_ += length;
  // Lines between chunks are small and bounded by the body that they come with.
  if (state_ != State::kChunkSize && state_ != State::kChunkEnd) head_bytes_ += length;
  return true;
}

absl::Status HttpResponseReader::ReadStatusLine(absl::string_view line) {
  constexpr size_t kCodeAt = 9;
  constexpr size_t kCodeDigits = 3;
  if (!absl::StartsWith(line, "HTTP/1.") || line.size() < kCodeAt + kCodeDigits ||
      !absl::SimpleAtoi(line.substr(kCodeAt, kCodeDigits), &response_.status)) {
    return Broken("no status line of HTTP/1.x");
  }
  state_ = State::kHeader;
  return absl::OkStatus();
}

absl::Status HttpResponseReader::ReadHeaderLine(absl::string_view line) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos) return Broken("a line of the header without a colon");
  const absl::string_view name = line.substr(0, colon);
  const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
  response_.headers[absl::AsciiStrToLower(name)] = std::string(value);
  if (absl::EqualsIgnoreCase(name, "content-type")) {
    response_.content_type = std::string(value);
  } else if (absl::EqualsIgnoreCase(name, "content-length")) {
    uint64_t length = 0;
    if (!absl::SimpleAtoi(value, &length) || (has_length_ && length != left_)) {
      return Broken("a Content-Length that is no number");
    }
    has_length_ = true;
    left_ = length;
  } else if (absl::EqualsIgnoreCase(name, "transfer-encoding")) {
    if (!absl::EqualsIgnoreCase(value, "chunked")) return Broken("a Transfer-Encoding");
    chunked_ = true;
  } else if (absl::EqualsIgnoreCase(name, "content-encoding") &&
             !absl::EqualsIgnoreCase(value, "identity")) {
    return Broken("compressed, though that was not asked for");
  }
  return absl::OkStatus();
}

absl::Status HttpResponseReader::EndHeader() {
  constexpr int kFirstFinalStatus = 200;
  constexpr int kNoContent = 204;
  if (response_.status < kFirstFinalStatus) {  // "100 Continue": another one follows.
    response_ = {};
    state_ = State::kStatusLine;
  } else if (response_.status == kNoContent) {
    state_ = State::kDone;
  } else if (chunked_) {
    state_ = State::kChunkSize;
  } else if (!has_length_) {
    left_ = std::numeric_limits<uint64_t>::max();
    state_ = State::kBodyToEnd;
  } else {
    state_ = left_ == 0 ? State::kDone : State::kBody;
  }
  response_.has_end = state_ != State::kBodyToEnd;
  return absl::OkStatus();
}

absl::Status HttpResponseReader::ReadChunkSize(absl::string_view line) {
  constexpr size_t kMaxDigits = 15;
  const absl::string_view digits = absl::StripAsciiWhitespace(line.substr(0, line.find(';')));
  if (digits.empty() || digits.size() > kMaxDigits || !absl::SimpleHexAtoi(digits, &left_)) {
    return Broken("a chunk without a length");
  }
  state_ = left_ == 0 ? State::kTrailer : State::kChunk;
  return absl::OkStatus();
}

absl::Status HttpResponseReader::TakeBody(bool* progress) {
  const size_t bytes = std::min<uint64_t>(left_, buffer_.size() - at_);
  if (response_.body.size() + bytes > max_body_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the answer has more than ", max_body_bytes_, " bytes (max_body_bytes)"));
  }
  response_.body.append(buffer_, at_, bytes);
  at_ += bytes;
  left_ -= bytes;
  *progress = bytes > 0;
  if (left_ > 0) return absl::OkStatus();
  state_ = state_ == State::kChunk ? State::kChunkEnd : State::kDone;
  *progress = true;
  return absl::OkStatus();
}

}  // namespace tacho::agent
