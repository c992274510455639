// Who decides whether a connection that was just accepted may stay.
#pragma once

#include "absl/time/time.h"
#include "server/edge/peer_address.h"

namespace tacho::server::edge {

// Called on two threads of a Listener: Admit() on one, Sweep() on the other.
class Gate {
 public:
  virtual ~Gate() = default;
  // If not, the caller closes it at once.
  virtual bool Admit(int fd, const PeerAddress& peer, absl::Time now) = 0;
  // About every 50 ms, or every 5 ms while it returns true and after something was admitted.
  virtual bool Sweep(absl::Time now) = 0;
};

}  // namespace tacho::server::edge
