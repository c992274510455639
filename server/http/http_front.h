// The sockets of the HTTP port: one thread serves all connections, a few others make the answers. A
// client that is slow to ask or to read blocks none of them.
#pragma once

#include <openssl/ossl_typ.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
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

namespace tacho::server::http {

// What the port takes at once. Past each bound the connection that has waited longest for its
// client makes room; where none waits, the new one is answered with 503.
struct HttpLimits {
  size_t connections = 512;
  size_t per_address = 128;                    // Addresses are equal by NetworkOf().
  size_t unsent_bytes = size_t{64} << 20;      // All answers that clients have not taken yet.
  absl::Duration request = absl::Seconds(10);  // From the connection to the end of the head.
  absl::Duration answer = absl::Seconds(60);   // Until the client has taken all of it.
  absl::Duration drain = absl::Seconds(5);     // After the answer, for a body that nobody reads.
  size_t threads = 4;                          // Requests at work at once.
};

// Thread-safe but for Start(), Stop() and destruction, which are for one thread.
class HttpFront : private edge::Gate {
 public:
  struct Served {
    std::string bytes;   // The whole answer, with its head.
    bool drain = false;  // As HttpConnection::Answer().
  };
  // Answers the request of a connection that is kServing. Called on threads of the front, several
  // at once.
  using Serve = std::function<Served(const HttpConnection&)>;
  // The bytes of the answer to a failure (server/errors/error_table.h) that the front itself finds.
  // Must be quick.
  using Refuse = std::function<std::string(const absl::Status&)>;

  struct Options {
    HttpLimits limits;
    SSL_CTX* tls = nullptr;                    // Not owned. Null: no TLS.
    prometheus::Registry* registry = nullptr;  // Not owned. Null: nothing is counted.
    Serve serve;
    Refuse refuse;
  };
  // `listener` is bound. From now on the whole process ignores SIGPIPE.
  //   UNAVAILABLE  no descriptors are left.
  static absl::StatusOr<std::unique_ptr<HttpFront>> Start(std::unique_ptr<edge::Listener> listener,
                                                          Options options);
  ~HttpFront() override;  // Stops.

  int port() const { return listener_->port(); }
  // Closes the port. Requests that have arrived still get their answers, as far as their clients
  // read them within a second.
  void Stop();

 private:
  struct Connection {
    std::unique_ptr<HttpConnection> http;
    edge::PeerAddress network;
    absl::Time deadline;
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
  absl::Time NextDeadline() const;
  void TakeNew(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Take(int fd, const edge::PeerAddress& peer, absl::Time now);
  // Closes the connection of `network`, or of the largest network if it is null, that has waited
  // longest. False if none waits.
  bool MakeRoom(const edge::PeerAddress* network);
  void TakeAnswers(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Answer(Connection* connection, Served answer, absl::Time now);
  void Advance(uint64_t number, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void ExpireSlow(absl::Time now);
  void BoundUnsent();
  void Close(Connections::iterator connection);
  void Count(Closed reason) const;
  void Wake() const;
  bool IsStopping() const ABSL_LOCKS_EXCLUDED(mutex_);
  // A worker's thread.
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  prometheus::Gauge* open_ = nullptr;
  std::vector<prometheus::Counter*> closed_;  // By Closed.
  int wake_fd_ = -1;

  // For the front's thread.
  Connections connections_;
  uint64_t last_number_ = 0;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // The front's thread has ended.
  std::vector<std::pair<int, edge::PeerAddress>> accepted_ ABSL_GUARDED_BY(mutex_);
  // At most one for each connection, which stays where it is until its answer has been taken.
  std::deque<std::pair<uint64_t, const HttpConnection*>> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<uint64_t, Served>> answers_ ABSL_GUARDED_BY(mutex_);

  std::vector<std::thread> workers_;
  std::thread thread_;
  std::unique_ptr<edge::Listener> listener_;  // Last: its thread uses the others.
};

}  // namespace tacho::server::http
