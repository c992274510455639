// A TCP proxy that treats its connections badly on request.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tacho::chaos {

// The sender of the bytes.
enum class Side { kClient = 0, kServer = 1 };

struct Fault {
  enum class Kind {
    // Both ends of every connection are closed, once so many more bytes have gone through: with
    // FIN or with RST, each end as it comes.
    kCut,
    // The client's end is closed so; what it has sent still reaches the server, later and in
    // pieces, while the client is back on another connection already.
    kCutLingering,
    kStall,    // Nothing more goes through for a time.
    kTrickle,  // For a time bytes go through in pieces of at most `chunk`, a millisecond apart.
    kRefuse,   // Connections are cut, and new ones closed at once, for a time.
  };
  Kind kind = Kind::kCut;
  Side from = Side::kClient;  // The direction concerned, and the one whose bytes are counted.
  uint64_t after_bytes = 0;
  absl::Duration duration;
  uint64_t chunk = 1;
  bool reset = false;  // RST instead of FIN.
};

// Thread-safe. One thread of its own.
class FaultyProxy {
 public:
  FaultyProxy();  // Listens on a free port of 127.0.0.1.
  ~FaultyProxy();

  int port() const { return port_; }
  void SetTarget(int port) ABSL_LOCKS_EXCLUDED(mutex_);

  // Replaces the fault that is armed or at work.
  void Inject(const Fault& fault) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends every fault; connections that live go on.
  void Heal() ABSL_LOCKS_EXCLUDED(mutex_);

  struct Stats {
    uint64_t connections = 0;
    uint64_t cuts = 0;  // By faults.
    uint64_t cuts_lingering = 0;
    uint64_t stalls = 0;
    uint64_t trickles = 0;
    uint64_t refusals = 0;
    uint64_t bytes = 0;
  };
  Stats stats() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Connection {
    int fd[2] = {-1, -1};  // By Side.
    std::string held[2];   // Read from that side, to be written to the other.
    bool ended[2] = {false, false};
    bool told[2] = {false, false};  // The other side knows that this one ended.
    std::optional<absl::Time> linger_until;
  };

  void Run();
  void Accept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves bytes; false if the connection is over.
  bool Move(Connection* connection, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MoveFrom(int side, Connection* connection, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How many bytes may go through now.
  uint64_t Allowance(int side, const Connection& connection, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountBytes(int side, uint64_t bytes, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Trigger(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CutAll(bool linger, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Close(int* fd, bool reset);
  static void CloseBoth(Connection* connection, bool reset);

  int listener_ = -1;
  int wake_ = -1;
  int port_ = 0;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int target_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::optional<Fault> fault_ ABSL_GUARDED_BY(mutex_);
  bool at_work_ ABSL_GUARDED_BY(mutex_) = false;  // The fault's bytes have gone through.
  absl::Time work_until_ ABSL_GUARDED_BY(mutex_);
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tacho::chaos
