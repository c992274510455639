// One connection of the HTTP port: requests come in, one after the other, and answers go out.
#pragma once

#include <openssl/ossl_typ.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/edge/peer_address.h"
#include "server/http/chunked_body.h"

namespace tacho::server::http {

// Never waits: when it cannot continue, the caller calls Advance() again after poll(). For one
// thread at a time.
class HttpConnection {
 public:
  enum class State {
    kReading,  // The TLS handshake, then the head of a request, and after ReadBody() its body.
    kServing,  // All that was to be read is there; ReadBody() or Send() comes next.
    kWriting,
    kAnswered,  // The answer is out, and the client may ask again: NextRequest() comes next.
    kDraining,  // The last answer is out; what the client still sends is read and dropped.
    kDone,      // All is over, or the other side has gone.
  };
  // The next thing after the bytes of Send().
  enum class Then {
    kMore,   // More bytes of the answer.
    kNext,   // The next request.
    kClose,  // The end of the connection.
    // The same, for a client that may still be sending: the connection drains until the client has
    // finished. Bytes that arrive at a closed socket make the kernel reset it, and the client never
    // reads its answer.
    kDrain,
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
  // The events that poll() must wait for; 0 when done, and while serving unless the peer is
  // watched.
  short events() const { return events_; }
  const edge::PeerAddress& peer() const { return peer_; }
  const SSL* tls() const { return tls_.get(); }  // Null: no TLS.

  // Reads or writes as much as it can.
  void Advance();

  // The request up to and with the empty line.
  absl::string_view head() const { return absl::string_view(in_).substr(0, head_bytes_); }
  bool IsTooLarge() const { return too_large_; }
  // In kServing, after a head: reads so many bytes more. Those that ask for it are told to
  // continue first (RFC 9110, 10.1.1).
  void ReadBody(size_t bytes, bool asks_to_continue);
  // The same for a body in chunks, which may have so many bytes. Once a request.
  void ReadChunks(size_t max_bytes, bool asks_to_continue);
  // Once the body was to be read.
  //   INVALID_ARGUMENT (MALFORMED)    its chunks break the rules.
  //   RESOURCE_EXHAUSTED (TOO_LARGE)  its chunks have too many bytes.
  absl::Status CheckBody() const;
  absl::string_view body() const { return absl::string_view(in_).substr(head_bytes_, body_bytes_); }
  // Requests that were answered before this one.
  int requests_before() const { return requests_before_; }
  // It has been answered, and no byte of another request has come.
  bool IsIdle() const { return state_ == State::kReading && requests_before_ > 0 && in_.empty(); }

  // While serving, events() tell when the client hangs up or ends what it sends. For answers that
  // take long, whose clients end the connection to say that they have gone.
  void WatchPeer();

  // In kReading, kServing or kWriting: sends these bytes, and then what `then` says.
  void Send(std::string bytes, Then then);
  // In kAnswered. Bytes that the client has sent already are not lost.
  void NextRequest();

  size_t unsent_bytes() const { return unsent_; }
  // How many bytes were sent since this was asked last.
  size_t TakeSent() { return std::exchange(sent_, 0); }

 private:
  enum class Io { kDone, kWaits, kBroken };

  Io Handshake();
  Io Read();
  // Reads the body, and has those that ask for it told to continue.
  void BeginBody(bool asks_to_continue);
  // Whether the head, or the body that is asked for, is there.
  bool HasEnough();
  Io Write();
  // Begins what follows the last byte.
  void AfterWriting();
  Io Drain();
  // Interprets the `result` of a call to OpenSSL, and notes what to wait for.
  Io Judge(int result);
  void Enter(State state);

  const int fd_;
  const edge::PeerAddress peer_;
  std::unique_ptr<SSL, void (*)(SSL*)> tls_;
  State state_ = State::kReading;
  short events_;
  bool greeted_;  // The handshake is over, or there is none.
  bool watches_peer_ = false;

  std::string in_;         // From the first byte of the request on.
  size_t searched_ = 0;    // So much of it has no end of a head.
  size_t head_bytes_ = 0;  // 0: the head's end has not come.
  size_t body_bytes_ = 0;
  std::optional<ChunkedBody> chunks_;  // Of the body, if it comes in chunks.
  bool too_large_ = false;
  bool continues_ = false;  // This is no answer yet; the body is read after it.
  int requests_before_ = 0;

  std::deque<std::string> out_;
  size_t first_sent_ = 0;  // So much of the first piece is sent.
  size_t unsent_ = 0;
  size_t sent_ = 0;
  Then then_ = Then::kMore;
  size_t drained_ = 0;
};

}  // namespace tacho::server::http
