// A port: accepts connections, asks the gate about each, and hands it on.
//
// gRPC 1.51's own accepting has no cap, and stops for good when it runs out of descriptors
// (CVE-2023-4785).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/edge/peer_address.h"

struct addrinfo;

namespace tacho::server::edge {

// Decides whether a connection that was just accepted may stay. Called on two threads of a
// Listener: Admit() on one, Sweep() on the other.
class Gate {
 public:
  virtual ~Gate() = default;
  // If not, the caller closes it at once.
  virtual bool Admit(int fd, const PeerAddress& peer, absl::Time now) = 0;
  // About every 50 ms, or every 5 ms while it returns true and after something was admitted.
  virtual bool Sweep(absl::Time now) = 0;
};

// Bind(), Serve(), Stop() and destruction are for one thread.
class Listener {
 public:
  // "127.0.0.1:7411", "[::]:7411", "localhost:0": all addresses of the name, on one port.
  //   UNAVAILABLE  the address is unknown or taken; the text says which.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(const std::string& address);
  ~Listener();  // Stops.

  int port() const { return port_; }

  // Accepts on one thread of its own and lets the gate sweep on another, because gRPC reads from a
  // new connection on the thread that hands it over, for as long as bytes come. `gate` is not
  // owned; `take` becomes the owner of the descriptor. Once.
  void Serve(Gate* gate, std::function<void(int fd, const PeerAddress& peer)> take);
  // Accepts no more; connections that were handed on stay open.
  void Stop();

 private:
  Listener() = default;
  absl::Status BindOne(const addrinfo& address);
  void Accept() ABSL_LOCKS_EXCLUDED(mutex_);
  void Sweep() ABSL_LOCKS_EXCLUDED(mutex_);
  // False when there is nothing more to accept now.
  bool AcceptOne(int listening);

  std::vector<int> sockets_;
  int stop_pipe_[2] = {-1, -1};
  int port_ = 0;
  Gate* gate_ = nullptr;
  std::function<void(int fd, const PeerAddress& peer)> take_;
  std::thread thread_;

  absl::Mutex mutex_;
  bool accepted_ ABSL_GUARDED_BY(mutex_) = false;  // Since the last sweep.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread sweeper_;
};

// The limit on open files that is in force.
uint64_t FileLimit();
// Raises the soft limit on open files to the hard one. Returns the limit then in force.
uint64_t RaiseFileLimit();
// The part of it that connections may use: seven eighths. The rest is for the database, HTTP and
// the log.
uint64_t ConnectionsWithin(uint64_t file_limit);

}  // namespace tacho::server::edge
