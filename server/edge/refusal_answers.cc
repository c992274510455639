#include "server/edge/refusal_answers.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::server::edge {
namespace {

// RFC 9113: 9 bytes before each frame, 24 before a client's first one.
constexpr size_t kFrameHead = 9;
constexpr size_t kPreface = 24;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kAck = 1;
constexpr uint8_t kEndStreamAndHeaders = 5;
// RFC 7541: entry 8 of the static table, indexed.
constexpr char kStatus200 = '\x88';
// RFC 7541, 5.1, with a prefix of 7 bits: smaller integers take one byte.
constexpr uint64_t kOwnByteBelow = 127;

uint8_t ByteAt(absl::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

uint32_t BigEndian(absl::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes) value = (value << 8) | static_cast<uint8_t>(byte);
  return value;
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, absl::string_view payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame.push_back(static_cast<char>(payload.size() >> shift));
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> shift));
  absl::StrAppend(&frame, payload);
  return frame;
}

void AppendText(absl::string_view text, std::string* out) {
  uint64_t left = text.size();
  out->push_back(static_cast<char>(left < kOwnByteBelow ? left : kOwnByteBelow));
  if (left >= kOwnByteBelow) {
    for (left -= kOwnByteBelow; left >= 0x80; left >>= 7) {
      out->push_back(static_cast<char>(0x80 | (left & 0x7f)));
    }
    out->push_back(static_cast<char>(left));
  }
  absl::StrAppend(out, text);
}

std::string Answer(uint32_t stream, absl::string_view reason) {
  using Header = std::pair<absl::string_view, absl::string_view>;
  std::string headers(1, kStatus200);
  for (const auto& [name, value] :
       std::array<Header, 3>{Header{"content-type", "application/grpc"},
                             Header{"grpc-status", "14"}, Header{"grpc-message", reason}}) {
    headers.push_back('\0');  // Literal, with a new name.
    AppendText(name, &headers);
    AppendText(value, &headers);
  }
  return Frame(kHeaders, kEndStreamAndHeaders, stream, headers);
}

void Send(int fd, absl::string_view bytes) {
  // More than the kernel takes at once would be too much for a client that reads.
  [[maybe_unused]] const ssize_t sent =
      send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// The listener has set the socket so that closing it resets the connection: an answer that is still
// on its way would be lost.
void CloseInOrder(int fd) {
  const linger off = {0, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
  close(fd);
}

}  // namespace

RefusalAnswers::~RefusalAnswers() {
  for (const Waiting& waiting : waiting_) close(waiting.fd);
}

void RefusalAnswers::Start(int fd, absl::string_view reason, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (waiting_.size() >= kMost) return;
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return;
  Send(own, Frame(kSettings, 0, 0, ""));
  waiting_.push_back({.fd = own, .reason = std::string(reason), .until = now + kPatience});
}

bool RefusalAnswers::StepOne(Waiting* waiting, absl::Time now) {
  std::array<char, 4096> bytes;
  const ssize_t read = recv(waiting->fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (read == 0 || (read < 0 && errno != EAGAIN && errno != EINTR)) return true;
  if (read > 0) waiting->received.append(bytes.data(), static_cast<size_t>(read));
  const absl::string_view all = waiting->received;
  if (waiting->at == 0 && all.size() >= kPreface) waiting->at = kPreface;
  std::string answers;
  while (waiting->at >= kPreface && all.size() - waiting->at >= kFrameHead) {
    const absl::string_view frame = all.substr(waiting->at);
    const size_t size = kFrameHead + BigEndian(frame.substr(0, 3));
    if (frame.size() < size) break;
    waiting->at += size;
    const uint8_t type = ByteAt(frame, 3);
    const bool is_ack = (ByteAt(frame, 4) & kAck) != 0;
    if (type == kSettings && !is_ack) answers += Frame(kSettings, kAck, 0, "");
    if (type == kHeaders) answers += Answer(BigEndian(frame.substr(5, 4)), waiting->reason);
  }
  if (!answers.empty()) Send(waiting->fd, answers);
  return now >= waiting->until || all.size() > kMaxBytes;
}

void RefusalAnswers::Step(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  for (size_t left = waiting_.size(); left > 0; --left) {
    Waiting waiting = std::move(waiting_.front());
    waiting_.pop_front();
    if (StepOne(&waiting, now)) {
      CloseInOrder(waiting.fd);
    } else {
      waiting_.push_back(std::move(waiting));
    }
  }
}

}  // namespace tacho::server::edge
