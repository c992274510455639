#include "tests/bench/agents/http2_call.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "interop/google_rpc.pb.h"

namespace tacho::bench {
namespace {

constexpr uint32_t kStream = 1;
constexpr size_t kFrameHead = 9;
constexpr size_t kMaxFrame = 16384;  // The default of both sides, which we keep.
constexpr size_t kMessageHead = 5;   // gRPC's: a flag for compression, and the length.
constexpr uint32_t kUpdateAfter = 16384;

enum Type : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
constexpr uint8_t kAck = 1, kEndStream = 1, kEndHeaders = 4, kPadded = 8, kPriority = 0x20;
constexpr uint16_t kHeaderTableSize = 1, kEnablePush = 2, kInitialWindowSize = 4;

void AppendBigEndian(uint64_t number, int bytes, std::string* out) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(number >> shift));
  }
}

uint32_t BigEndian(absl::string_view bytes) {
  uint32_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

void AppendFrameHead(size_t length, Type type, uint8_t flags, uint32_t stream, std::string* out) {
  AppendBigEndian(length, 3, out);
  out->push_back(static_cast<char>(type));
  out->push_back(static_cast<char>(flags));
  AppendBigEndian(stream, 4, out);
}

void AppendWindowUpdate(uint32_t stream, uint32_t bytes, std::string* out) {
  AppendFrameHead(4, kWindowUpdate, 0, stream, out);
  AppendBigEndian(bytes, 4, out);
}

// HPACK (RFC 7541, 5.1): an integer whose first byte has `prefix` bits for it.
void AppendInteger(uint8_t first, int prefix, size_t number, std::string* out) {
  const size_t max = (size_t{1} << prefix) - 1;
  if (number < max) return out->push_back(static_cast<char>(first | number));
  out->push_back(static_cast<char>(first | max));
  for (number -= max; number >= 128; number >>= 7) {
    out->push_back(static_cast<char>(number | 128));
  }
  out->push_back(static_cast<char>(number));
}

void AppendText(absl::string_view text, std::string* out) {
  AppendInteger(0, 7, text.size(), out);
  out->append(text.data(), text.size());
}

// A header that enters no table. `name` is its place in the static table.
void AppendHeader(size_t name, absl::string_view value, std::string* out) {
  AppendInteger(0, 4, name, out);
  AppendText(value, out);
}

std::string HeaderBlock(absl::string_view authority, absl::string_view path,
                        absl::string_view token) {
  constexpr size_t kAuthority = 1, kPath = 4, kAuthorization = 23, kContentType = 31;
  std::string block = "\x83\x86";  // :method POST, :scheme http
  AppendHeader(kPath, path, &block);
  AppendHeader(kAuthority, authority, &block);
  AppendHeader(kContentType, "application/grpc", &block);
  AppendInteger(0, 4, 0, &block);
  AppendText("te", &block);
  AppendText("trailers", &block);
  if (!token.empty()) AppendHeader(kAuthorization, absl::StrCat("Bearer ", token), &block);
  return block;
}

struct InflaterDelete {
  void operator()(nghttp2_hd_inflater* inflater) const { nghttp2_hd_inflate_del(inflater); }
};

// Calls on_header(name, value) for each. Since the peer was told to keep no dynamic table, blocks
// do not depend on each other.
template <typename OnHeader>
absl::Status Inflate(absl::string_view block, OnHeader on_header) {
  nghttp2_hd_inflater* made = nullptr;
  if (nghttp2_hd_inflate_new(&made) != 0) return absl::ResourceExhaustedError("no memory");
  const std::unique_ptr<nghttp2_hd_inflater, InflaterDelete> inflater(made);
  const auto* next = reinterpret_cast<const uint8_t*>(block.data());
  size_t left = block.size();
  for (;;) {
    nghttp2_nv header;
    int flags = 0;
    const ssize_t used = nghttp2_hd_inflate_hd2(inflater.get(), &header, &flags, next, left, 1);
    if (used < 0) return absl::InvalidArgumentError("a header block that cannot be decoded");
    next += used;
    left -= static_cast<size_t>(used);
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
      on_header(absl::string_view(reinterpret_cast<const char*>(header.name), header.namelen),
                absl::string_view(reinterpret_cast<const char*>(header.value), header.valuelen));
    }
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) return absl::OkStatus();
    if (left == 0 && (flags & NGHTTP2_HD_INFLATE_EMIT) == 0) {
      return absl::InvalidArgumentError("a header block that ends early");
    }
  }
}

std::optional<absl::Duration> RetryAfter(absl::string_view details_base64) {
  std::string details;
  google::rpc::Status status;
  if (!absl::Base64Unescape(details_base64, &details)) return std::nullopt;
  if (!status.ParseFromString(details)) return std::nullopt;
  for (const auto& detail : status.details()) {
    google::rpc::RetryInfo info;
    if (!detail.Is<google::rpc::RetryInfo>() || !detail.UnpackTo(&info)) continue;
    return absl::Seconds(info.retry_delay().seconds()) +
           absl::Nanoseconds(info.retry_delay().nanos());
  }
  return std::nullopt;
}

// Without padding and priority; nullopt if there is less than they claim.
std::optional<absl::string_view> Strip(uint8_t flags, absl::string_view payload) {
  size_t padding = 0;
  if ((flags & kPadded) != 0) {
    if (payload.empty()) return std::nullopt;
    padding = static_cast<uint8_t>(payload[0]);
    payload.remove_prefix(1);
  }
  const size_t priority = (flags & kPriority) != 0 ? 5 : 0;
  if (payload.size() < priority + padding) return std::nullopt;
  payload.remove_prefix(priority);
  payload.remove_suffix(padding);
  return payload;
}

}  // namespace

std::string OpenCall(absl::string_view authority, absl::string_view path, absl::string_view token) {
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  AppendFrameHead(12, kSettings, 0, 0, &bytes);
  AppendBigEndian(kHeaderTableSize, 2, &bytes);
  AppendBigEndian(0, 4, &bytes);
  AppendBigEndian(kEnablePush, 2, &bytes);
  AppendBigEndian(0, 4, &bytes);
  const std::string block = HeaderBlock(authority, path, token);
  AppendFrameHead(block.size(), kHeaders, kEndHeaders, kStream, &bytes);
  bytes += block;
  return bytes;
}

absl::Status Http2Call::Receive(absl::string_view bytes, const Handler& handler, std::string* out) {
  if (!in_.empty()) {
    in_.append(bytes.data(), bytes.size());
    bytes = in_;
  }
  while (bytes.size() >= kFrameHead) {
    const size_t length = BigEndian(bytes.substr(0, 3));
    if (length > kMaxFrame) return absl::InvalidArgumentError("a frame above 16 KiB");
    if (bytes.size() < kFrameHead + length) break;
    const auto type = static_cast<uint8_t>(bytes[3]);
    const auto flags = static_cast<uint8_t>(bytes[4]);
    const uint32_t stream = BigEndian(bytes.substr(5, 4)) & 0x7fffffff;
    const absl::Status status =
        OnFrame(type, flags, stream, bytes.substr(kFrameHead, length), handler, out);
    if (!status.ok()) return status;
    bytes.remove_prefix(kFrameHead + length);
  }
  std::string rest(bytes);  // `bytes` may be a view of in_.
  in_.swap(rest);
  return absl::OkStatus();
}

absl::Status Http2Call::OnFrame(uint8_t type, uint8_t flags, uint32_t stream,
                                absl::string_view payload, const Handler& handler,
                                std::string* out) {
  switch (type) {
    case kData:
      return OnData(flags, payload, handler, out);
    case kHeaders:
      headers_end_stream_ = (flags & kEndStream) != 0;
      return OnHeaders(flags, payload, handler);
    case kContinuation:
      return OnHeaders(static_cast<uint8_t>(flags & kEndHeaders), payload, handler);
    case kSettings:
      return OnSettings(flags, payload, out);
    case kWindowUpdate:
      return OnWindowUpdate(stream, payload, out);
    case kPing:
      if ((flags & kAck) != 0) return absl::OkStatus();
      AppendFrameHead(payload.size(), kPing, kAck, 0, out);
      out->append(payload.data(), payload.size());
      return absl::OkStatus();
    case kReset:
      return absl::CancelledError(
          absl::StrCat("RST_STREAM, error ", payload.size() == 4 ? BigEndian(payload) : 0));
    case kGoAway:
      if (payload.size() < 8) return absl::InvalidArgumentError("a short GOAWAY");
      // Error 0 lets the call go on to its end.
      if (BigEndian(payload.substr(4, 4)) == 0) return absl::OkStatus();
      return absl::UnavailableError(
          absl::StrCat("GOAWAY, error ", BigEndian(payload.substr(4, 4)), ": ", payload.substr(8)));
    default:
      return absl::OkStatus();
  }
}

absl::Status Http2Call::OnData(uint8_t flags, absl::string_view payload, const Handler& handler,
                               std::string* out) {
  received_since_update_ += static_cast<uint32_t>(payload.size());
  const auto data = Strip(flags, payload);
  if (!data.has_value()) return absl::InvalidArgumentError("padding beyond a frame");
  messages_.append(data->data(), data->size());
  DeliverMessages(handler);
  if (received_since_update_ < kUpdateAfter) return absl::OkStatus();
  AppendWindowUpdate(0, received_since_update_, out);
  AppendWindowUpdate(kStream, received_since_update_, out);
  received_since_update_ = 0;
  return absl::OkStatus();
}

void Http2Call::DeliverMessages(const Handler& handler) {
  absl::string_view rest = messages_;
  while (rest.size() >= kMessageHead) {
    const size_t length = BigEndian(rest.substr(1, 4));
    if (rest.size() < kMessageHead + length) break;
    handler.on_message(rest.substr(kMessageHead, length));
    rest.remove_prefix(kMessageHead + length);
  }
  std::string partial(rest);
  messages_.swap(partial);
}

absl::Status Http2Call::OnHeaders(uint8_t flags, absl::string_view payload,
                                  const Handler& handler) {
  const auto block = Strip(flags, payload);
  if (!block.has_value()) return absl::InvalidArgumentError("padding beyond a frame");
  header_block_.append(block->data(), block->size());
  if ((flags & kEndHeaders) == 0) return absl::OkStatus();
  const absl::Status status = OnHeaderBlock(headers_end_stream_, handler);
  std::string().swap(header_block_);
  return status;
}

absl::Status Http2Call::OnHeaderBlock(bool ends_stream, const Handler& handler) {
  CallEnd end;
  absl::Status status =
      Inflate(header_block_, [&end](absl::string_view name, absl::string_view value) {
        if (name == "grpc-status" && !absl::SimpleAtoi(value, &end.code)) end.code = 2;
        if (name == "grpc-message") end.message = std::string(value);
        if (name == "grpc-status-details-bin") end.retry_after = RetryAfter(value);
        if (name == ":status" && value != "200") end.message = absl::StrCat("HTTP status ", value);
      });
  if (status.ok() && ends_stream) handler.on_end(end);
  return status;
}

absl::Status Http2Call::OnSettings(uint8_t flags, absl::string_view payload, std::string* out) {
  if ((flags & kAck) != 0) return absl::OkStatus();
  for (; payload.size() >= 6; payload.remove_prefix(6)) {
    if (BigEndian(payload.substr(0, 2)) != kInitialWindowSize) continue;
    const int64_t window = BigEndian(payload.substr(2, 4));
    stream_window_ += window - initial_stream_window_;
    initial_stream_window_ = window;
  }
  AppendFrameHead(0, kSettings, kAck, 0, out);
  SendUnsent(out);
  return absl::OkStatus();
}

absl::Status Http2Call::OnWindowUpdate(uint32_t stream, absl::string_view payload,
                                       std::string* out) {
  if (payload.size() != 4) return absl::InvalidArgumentError("a malformed WINDOW_UPDATE");
  (stream == 0 ? connection_window_ : stream_window_) += BigEndian(payload) & 0x7fffffff;
  SendUnsent(out);
  return absl::OkStatus();
}

void Http2Call::Send(absl::string_view message, std::string* out) {
  unsent_.push_back(0);
  AppendBigEndian(message.size(), 4, &unsent_);
  unsent_.append(message.data(), message.size());
  SendUnsent(out);
}

void Http2Call::SendUnsent(std::string* out) {
  size_t sent = 0;
  while (sent < unsent_.size()) {
    const int64_t window = std::min(connection_window_, stream_window_);
    if (window <= 0) break;
    const size_t size = std::min({unsent_.size() - sent, kMaxFrame, static_cast<size_t>(window)});
    AppendFrameHead(size, kData, 0, kStream, out);
    out->append(unsent_, sent, size);
    sent += size;
    connection_window_ -= static_cast<int64_t>(size);
    stream_window_ -= static_cast<int64_t>(size);
  }
  if (sent == 0) return;
  std::string rest = unsent_.substr(sent);
  unsent_.swap(rest);
}

void Http2Call::SendEnd(std::string* out) { AppendFrameHead(0, kData, kEndStream, kStream, out); }

}  // namespace tacho::bench
