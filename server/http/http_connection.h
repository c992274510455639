// One connection of the HTTP port: the head of one request comes in, one answer goes out.
#pragma once

#include <openssl/ossl_typ.h>

#include <memory>
#include <string>

#include "server/edge/peer_address.h"

namespace tacho::server::http {

// Never waits: when it cannot continue, the caller calls Advance() again after poll(). For one
// thread at a time.
class HttpConnection {
 public:
  enum class State {
    kReading,  // The TLS handshake, then the head of the request.
    kServing,  // The head is complete; Answer() comes next.
    kWriting,
    kDraining,  // The answer is out; what the client still sends is read and dropped.
    kDone,      // All is over, or the other side has gone.
  };
  // A longer head is not read to its end: the connection is then kServing, and IsTooLarge().
  static constexpr size_t kMaxHeadBytes = 16 << 10;
  // At most so much is drained. A client that sends more sees its connection reset.
  static constexpr size_t kMaxDrainedBytes = size_t{16} << 20;

  // Owns `fd`, which must not block. `tls` is not owned and may be null: no TLS.
  HttpConnection(int fd, const edge::PeerAddress& peer, SSL_CTX* tls);
  ~HttpConnection();  // Closes.
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  State state() const { return state_; }
  int fd() const { return fd_; }
  // What poll() must wait for; 0 while serving and when done.
  short events() const { return events_; }
  const edge::PeerAddress& peer() const { return peer_; }

  // Reads or writes as much as it can.
  void Advance();

  // The request up to the empty line, and possibly bytes behind it.
  const std::string& head() const { return head_; }
  bool IsTooLarge() const { return head_.size() > kMaxHeadBytes; }
  const SSL* tls() const { return tls_.get(); }  // Null: no TLS.

  // In kReading or kServing: sends these bytes and no others. With `drain`, for a client that may
  // still be sending, the connection then drains until the client has finished: bytes that arrive
  // at a closed socket make the kernel reset it, and the client never reads its answer.
  void Answer(std::string bytes, bool drain = false);
  size_t unsent_bytes() const { return answer_.size(); }

 private:
  enum class Io { kDone, kWaits, kBroken };

  Io Handshake();
  Io Read();
  Io Write();
  Io Drain();
  // Interprets the `result` of a call to OpenSSL, and notes what to wait for.
  Io Judge(int result);
  void Finish();

  const int fd_;
  const edge::PeerAddress peer_;
  std::unique_ptr<SSL, void (*)(SSL*)> tls_;
  State state_ = State::kReading;
  short events_;
  bool greeted_;  // The handshake is over, or there is none.
  std::string head_;
  std::string answer_;
  size_t sent_ = 0;
  bool drains_ = false;
  size_t drained_ = 0;
};

}  // namespace tacho::server::http
