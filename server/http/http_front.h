// The sockets of the HTTP port: one thread serves all connections, a few others make the answers. A
// client that is slow to ask or to read blocks none of them, and neither does an answer that takes
// long.
#pragma once

#include <openssl/ossl_typ.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "server/edge/listener.h"
#include "server/http/http_connection.h"
#include "server/http/http_exchange.h"

namespace tacho::server::http {

// Bounds on what the port takes at once. Past each bound on connections or bytes an idle connection
// makes room, or else the one that has waited longest for its client; where none waits, the new one
// is answered with 503. Past a bound on calls or streams the request is answered with 503.
struct HttpLimits {
  size_t connections = 512;
  size_t per_address = 128;                // Addresses are equal by NetworkOf().
  size_t unsent_bytes = size_t{64} << 20;  // All answers that clients have not taken yet.
  // Requests to routes that answer later; the rest of `connections` is for /metrics and probes.
  size_t calls = 384;
  size_t calls_per_address = 64;
  // The bodies of these requests together; one alone may be larger.
  size_t call_bytes = size_t{64} << 20;
  size_t streams_per_address = 32;  // Part of `calls`: answers without a known length.
  // From the connection, or the first byte of a later request, to the end of the request.
  absl::Duration request = absl::Seconds(10);
  absl::Duration idle = absl::Seconds(15);  // From an answer to the first byte of the next request.
  int requests = 100;                       // A connection has at most so many.
  // Until the client has taken all of an answer, or some more of a streamed one.
  absl::Duration answer = absl::Seconds(60);
  absl::Duration drain = absl::Seconds(5);  // After the answer, for a body that nobody reads.
  size_t threads = 4;                       // Handlers at work at once.
};

// Thread-safe but for Start(), Stop() and destruction, which are for one thread.
class HttpFront : private edge::Gate {
 public:
  // A request by its head.
  struct Intake {
    HttpRequest request;
    const Route* route = nullptr;  // Not owned.
    HttpExchange::Form form;
    size_t body_bytes = 0;   // To be read.
    bool in_chunks = false;  // As chunks, which have no more than body_bytes.
    bool asks_to_continue = false;
    bool drains = false;  // A body follows that is not read.
    std::optional<HttpResponse> refusal;
  };

  struct Options {
    HttpLimits limits;
    SSL_CTX* tls = nullptr;                    // Not owned. Null: no TLS.
    prometheus::Registry* registry = nullptr;  // Not owned. Null: nothing is counted.
    // Reads the head of a connection that is kServing. On the front's thread, so it must be quick.
    std::function<Intake(const HttpConnection&)> intake;
    // Calls the handler. On threads of the front, several at once.
    std::function<void(const std::shared_ptr<HttpExchange>&)> serve;
    // The bytes of the answer to a failure (server/errors/error_table.h) that the front itself
    // finds, after which the connection closes. As `intake`.
    std::function<std::string(const absl::Status&)> refuse;
    // Counts a request at the end of its answer. As `intake`; may be null.
    std::function<void(const Route*, int status, absl::Duration took)> count;
  };
  // `listener` is bound. From now on the whole process ignores SIGPIPE.
  //   UNAVAILABLE  no descriptors are left.
  static absl::StatusOr<std::unique_ptr<HttpFront>> Start(std::unique_ptr<edge::Listener> listener,
                                                          Options options);
  ~HttpFront() override;  // Stops.

  int port() const { return listener_->port(); }
  // Closes the port. Requests that have arrived still get their answers, as far as their clients
  // read them within a second. Requests that are answered later and have no answer by then get
  // 503, and a stream is cut before its end. Responders may be used afterwards; nobody hears them.
  void Stop();

 private:
  struct Connection {
    std::unique_ptr<HttpConnection> http;
    edge::PeerAddress network;
    absl::Time deadline;
    std::shared_ptr<HttpExchange> exchange;  // From the end of a head to the end of its answer.
    absl::Time asked;                        // When the head was there.
    bool at_work = false;                    // The handler has, or had, the exchange.
    bool drains = false;
    bool streams = false;
  };
  using Connections = std::map<uint64_t, Connection>;  // By number, the oldest first.
  enum class Closed { kSlow, kCrowded, kBusy, kTooLarge };

  HttpFront(std::unique_ptr<edge::Listener> listener, Options options);
  // As a gate it lets everybody in; Take() decides who must leave for them.
  bool Admit(int, const edge::PeerAddress&, absl::Time) override { return true; }
  bool Sweep(absl::Time) override { return false; }

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until some connections can continue, and returns them.
  std::vector<uint64_t> Poll();
  void Advance(uint64_t number, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Acts on the last bytes that came or went. True if the connection can go on at once.
  bool Continue(Connections::iterator connection, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads a head.
  void TakeRequest(uint64_t number, Connection* connection, absl::Time now);
  void HandToWorker(Connection* connection) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends what handlers have written.
  void TakeAnswers(const std::vector<uint64_t>& rung, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void TakePiece(Connection* connection, absl::Time now);
  void Refuse(Connection* connection, const absl::Status& why, HttpConnection::Then then,
              absl::Time now);
  void EndExchange(Connection* connection, absl::Time now);
  // Ends what can be ended. True if nothing is left.
  bool WindUp(absl::Time stop_by, absl::Time now);
  // A worker's thread.
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  void Wake() const { bell_->Ring(0); }  // No connection has this number.
  bool IsStopping() const ABSL_LOCKS_EXCLUDED(mutex_);

  // These decide who may stay, in http_front_room.cc.
  absl::Time NextDeadline() const;
  void TakeNew(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Take(int fd, const edge::PeerAddress& peer, absl::Time now);
  // Closes an idle or waiting connection of `network`, or of the largest network if it is null.
  // False if there is none.
  bool MakeRoom(const edge::PeerAddress* network);
  edge::PeerAddress LargestNetwork() const;
  // Null: of all networks.
  Connections::iterator LongestIdle(const edge::PeerAddress* network);
  Connections::iterator LongestWaiting(const edge::PeerAddress& network);
  // Why a request that is answered later must come again; OK if it need not.
  absl::Status CheckCalls(const edge::PeerAddress& network) const;
  bool HasTooManyStreams(const edge::PeerAddress& network) const;
  void ExpireSlow(absl::Time now);
  void BoundUnsent();
  void Close(Connections::iterator connection);
  void Count(Closed reason) const;

  const Options options_;
  prometheus::Gauge* open_ = nullptr;
  std::vector<prometheus::Counter*> closed_;  // By Closed.
  const std::shared_ptr<AnswerBell> bell_ = std::make_shared<AnswerBell>();

  // For the front's thread.
  Connections connections_;
  uint64_t last_number_ = 0;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // The front's thread has ended.
  std::vector<std::pair<int, edge::PeerAddress>> accepted_ ABSL_GUARDED_BY(mutex_);
  // At most one for each connection, and some whose connection has closed.
  std::deque<std::shared_ptr<HttpExchange>> requests_ ABSL_GUARDED_BY(mutex_);

  std::vector<std::thread> workers_;
  std::thread thread_;
  std::unique_ptr<edge::Listener> listener_;  // Last: its thread uses the others.
};

}  // namespace tacho::server::http
