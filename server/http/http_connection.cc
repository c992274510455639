#include "server/http/http_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "proto/base/check.h"
#include "server/errors/error_table.h"

namespace tacho::server::http {
namespace {

constexpr size_t kReadBytes = 16 << 10;
constexpr char kEndOfHead[] = "\r\n\r\n";
constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";
// Smaller pieces are sent together.
constexpr size_t kMinSendBytes = 16 << 10;
// So much is drained in one go, so that one client does not keep the others waiting.
constexpr size_t kDrainBytes = 16 << 10;
constexpr int kDrainReads = 16;

}  // namespace

HttpConnection::HttpConnection(int fd, const edge::PeerAddress& peer, SSL_CTX* tls)
    : fd_(fd),
      peer_(peer),
      tls_(tls == nullptr ? nullptr : SSL_new(tls), SSL_free),
      events_(POLLIN),
      greeted_(tls == nullptr) {
  // The pieces of a stream must not wait for the client to acknowledge those before.
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (tls == nullptr) return;
  if (tls_ == nullptr || SSL_set_fd(tls_.get(), fd) != 1) {
    Enter(State::kDone);
    return;
  }
  SSL_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_set_accept_state(tls_.get());
}

HttpConnection::~HttpConnection() { close(fd_); }

void HttpConnection::Enter(State state) {
  state_ = state;
  switch (state) {
    case State::kReading:
    case State::kDraining:
      events_ = POLLIN;
      break;
    case State::kServing:
      events_ = watches_peer_ ? POLLRDHUP : 0;
      break;
    case State::kWriting:
      events_ = POLLOUT;
      break;
    case State::kAnswered:
    case State::kDone:
      events_ = 0;
  }
}

void HttpConnection::Advance() {
  if (state_ == State::kWriting) {
    const Io io = Write();
    if (io == Io::kBroken) return Enter(State::kDone);
    if (io == Io::kWaits) return;
    AfterWriting();
  }
  if (state_ == State::kReading) {
    Io io = greeted_ ? Io::kDone : Handshake();
    if (io == Io::kDone) io = Read();
    if (io == Io::kBroken) return Enter(State::kDone);
    if (io == Io::kDone) Enter(State::kServing);
  }
  if (state_ == State::kDraining && Drain() != Io::kWaits) Enter(State::kDone);
}

HttpConnection::Io HttpConnection::Judge(int result) {
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      events_ = POLLIN;
      return Io::kWaits;
    case SSL_ERROR_WANT_WRITE:
      events_ = POLLOUT;
      return Io::kWaits;
    default:
      return Io::kBroken;
  }
}

HttpConnection::Io HttpConnection::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(tls_.get());
  if (result != 1) return Judge(result);
  greeted_ = true;
  return Io::kDone;
}

bool HttpConnection::HasEnough() {
  if (chunks_.has_value()) {
    const ChunkedBody::State state = chunks_->Read(head_bytes_, &in_);
    body_bytes_ = chunks_->bytes();
    return state != ChunkedBody::State::kMore;
  }
  if (head_bytes_ > 0) return in_.size() >= head_bytes_ + body_bytes_;
  // The end may begin in bytes that came earlier.
  const size_t end = in_.find(kEndOfHead, searched_ < 3 ? 0 : searched_ - 3);
  searched_ = in_.size();
  const bool ends = end != std::string::npos;
  if (ends) head_bytes_ = end + sizeof(kEndOfHead) - 1;
  too_large_ = (ends ? head_bytes_ : in_.size()) > kMaxHeadBytes;
  return ends || too_large_;
}

HttpConnection::Io HttpConnection::Read() {
  while (!HasEnough()) {
    char bytes[kReadBytes];
    ssize_t got = 0;
    if (tls_ != nullptr) {
      ERR_clear_error();
      got = SSL_read(tls_.get(), bytes, sizeof(bytes));
      if (got <= 0) return Judge(static_cast<int>(got));
    } else {
      got = recv(fd_, bytes, sizeof(bytes), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Io::kWaits;
      if (got <= 0) return Io::kBroken;
    }
    in_.append(bytes, static_cast<size_t>(got));
  }
  return Io::kDone;
}

void HttpConnection::ReadBody(size_t bytes, bool asks_to_continue) {
  TACHO_CHECK(state_ == State::kServing && head_bytes_ > 0);
  body_bytes_ = bytes;
  BeginBody(asks_to_continue);
}

void HttpConnection::ReadChunks(size_t max_bytes, bool asks_to_continue) {
  TACHO_CHECK(state_ == State::kServing && head_bytes_ > 0 && !chunks_.has_value());
  chunks_.emplace(max_bytes);
  BeginBody(asks_to_continue);
}

absl::Status HttpConnection::CheckBody() const {
  const auto state = chunks_.has_value() ? chunks_->state() : ChunkedBody::State::kDone;
  if (state == ChunkedBody::State::kDamaged) {
    return errors::ErrorOf(errors::Failure::kMalformed, "the chunks of the body are damaged");
  }
  if (state == ChunkedBody::State::kTooLarge) {
    return errors::ErrorOf(errors::Failure::kTooLarge,
                           "the body has more bytes than are allowed: send less in a request");
  }
  return absl::OkStatus();
}

void HttpConnection::BeginBody(bool asks_to_continue) {
  if (HasEnough()) return;
  if (!asks_to_continue) return Enter(State::kReading);
  Send(kContinue, Then::kMore);
  continues_ = true;
}

void HttpConnection::WatchPeer() {
  watches_peer_ = true;
  if (state_ == State::kServing) Enter(state_);
}

void HttpConnection::NextRequest() {
  TACHO_CHECK(state_ == State::kAnswered);
  in_.erase(0, head_bytes_ + body_bytes_);
  if (in_.empty()) in_ = std::string();  // Idle connections are to hold little memory.
  searched_ = head_bytes_ = body_bytes_ = 0;
  chunks_.reset();
  ++requests_before_;
  watches_peer_ = false;
  Enter(State::kReading);
}

void HttpConnection::Send(std::string bytes, Then then) {
  TACHO_CHECK(state_ == State::kReading || state_ == State::kServing || state_ == State::kWriting);
  then_ = then;
  continues_ = false;
  unsent_ += bytes.size();
  if (!out_.empty() && out_.back().size() + bytes.size() <= kMinSendBytes) {
    out_.back() += bytes;
  } else if (!bytes.empty()) {
    out_.push_back(std::move(bytes));
  }
  if (state_ != State::kWriting) Enter(State::kWriting);
}

HttpConnection::Io HttpConnection::Write() {
  if (!greeted_) return Io::kBroken;  // Nothing can be sent before the handshake is over.
  while (!out_.empty()) {
    const char* const next = out_.front().data() + first_sent_;
    const size_t left = out_.front().size() - first_sent_;
    ssize_t sent = 0;
    if (tls_ != nullptr) {
      ERR_clear_error();
      sent = SSL_write(tls_.get(), next, static_cast<int>(std::min<size_t>(left, 1 << 20)));
      if (sent <= 0) return Judge(static_cast<int>(sent));
    } else {
      sent = send(fd_, next, left, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        events_ = POLLOUT;
        return Io::kWaits;
      }
      if (sent <= 0) return Io::kBroken;
    }
    const auto count = static_cast<size_t>(sent);
    unsent_ -= count;
    sent_ += count;
    first_sent_ += count;
    if (count < left) continue;
    out_.pop_front();
    first_sent_ = 0;
  }
  return Io::kDone;
}

void HttpConnection::AfterWriting() {
  if (continues_) return Enter(State::kReading);
  if (then_ == Then::kMore) return Enter(State::kServing);
  if (then_ == Then::kNext) return Enter(State::kAnswered);
  // Bytes of another request may be on their way, too.
  if (in_.size() > head_bytes_ + body_bytes_) then_ = Then::kDrain;
  if (tls_ != nullptr) SSL_shutdown(tls_.get());  // Whether the peer answers it does not matter.
  shutdown(fd_, SHUT_WR);
  Enter(State::kDraining);
}

HttpConnection::Io HttpConnection::Drain() {
  for (int i = 0; i < kDrainReads; ++i) {
    char bytes[kDrainBytes];
    const ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return then_ == Then::kDrain ? Io::kWaits : Io::kDone;
    }
    if (got <= 0) return Io::kDone;
    drained_ += static_cast<size_t>(got);
  }
  return then_ == Then::kDrain && drained_ < kMaxDrainedBytes ? Io::kWaits : Io::kDone;
}

}  // namespace tacho::server::http
