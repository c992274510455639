#include "server/http/http_connection.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "proto/base/check.h"

namespace tacho::server::http {
namespace {

constexpr size_t kReadBytes = 4096;
constexpr char kEndOfHead[] = "\r\n\r\n";
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
  if (tls == nullptr) return;
  if (tls_ == nullptr || SSL_set_fd(tls_.get(), fd) != 1) {
    Finish();
    return;
  }
  SSL_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_set_accept_state(tls_.get());
}

HttpConnection::~HttpConnection() { close(fd_); }

void HttpConnection::Finish() {
  state_ = State::kDone;
  events_ = 0;
}

void HttpConnection::Advance() {
  if (state_ == State::kReading) {
    Io io = greeted_ ? Io::kDone : Handshake();
    if (io == Io::kDone) io = Read();
    if (io == Io::kBroken) return Finish();
    if (io == Io::kWaits) return;
    state_ = State::kServing;
    events_ = 0;
  } else if (state_ == State::kWriting) {
    const Io io = Write();
    if (io == Io::kBroken) return Finish();
    if (io == Io::kWaits) return;
    answer_ = std::string();
    state_ = State::kDraining;
    events_ = POLLIN;
  }
  if (state_ == State::kDraining && Drain() != Io::kWaits) Finish();
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

HttpConnection::Io HttpConnection::Read() {
  for (;;) {
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
    // The end may begin in bytes that came earlier.
    const size_t from = head_.size() < 3 ? 0 : head_.size() - 3;
    head_.append(bytes, static_cast<size_t>(got));
    if (head_.find(kEndOfHead, from) != std::string::npos || IsTooLarge()) return Io::kDone;
  }
}

void HttpConnection::Answer(std::string bytes, bool drain) {
  TACHO_CHECK(state_ == State::kReading || state_ == State::kServing);
  answer_ = std::move(bytes);
  sent_ = 0;
  drains_ = drain;
  state_ = State::kWriting;
  events_ = POLLOUT;
}

HttpConnection::Io HttpConnection::Write() {
  if (!greeted_) return Io::kBroken;  // Nothing can be sent before the handshake is over.
  while (sent_ < answer_.size()) {
    const char* const next = answer_.data() + sent_;
    const size_t left = answer_.size() - sent_;
    ssize_t sent = 0;
    if (tls_ != nullptr) {
      ERR_clear_error();
      sent = SSL_write(tls_.get(), next, static_cast<int>(std::min<size_t>(left, 1 << 20)));
      if (sent <= 0) return Judge(static_cast<int>(sent));
    } else {
      sent = send(fd_, next, left, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Io::kWaits;
      if (sent <= 0) return Io::kBroken;
    }
    sent_ += static_cast<size_t>(sent);
  }
  if (tls_ != nullptr) SSL_shutdown(tls_.get());  // Whether the peer answers it does not matter.
  shutdown(fd_, SHUT_WR);
  return Io::kDone;
}

HttpConnection::Io HttpConnection::Drain() {
  for (int i = 0; i < kDrainReads; ++i) {
    char bytes[kDrainBytes];
    const ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return drains_ ? Io::kWaits : Io::kDone;
    }
    if (got <= 0) return Io::kDone;
    drained_ += static_cast<size_t>(got);
  }
  return drains_ && drained_ < kMaxDrainedBytes ? Io::kWaits : Io::kDone;
}

}  // namespace tacho::server::http
