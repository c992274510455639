// A network in the process, with faults: it connects senders (agent/stream/transport.h) to what
// serves Ingest/Stream, without sockets and without gRPC's threads.
//
// Agents are known by the name of their host, collectors by their address; both are endpoints.
// Time is MonotonicNow()'s and waiting is proto/base/timed_wait.h's, so that a simulator that
// replaces these decides how long everything takes. With one seed, and threads that take turns in
// the same order, the same happens again.
//
// It behaves as gRPC over TCP does:
//   - a write is done once the bytes are on the wire; that says nothing about their arrival. It
//     waits while the reader has window_bytes before it;
//   - messages of a stream arrive in order, each after a latency of its own;
//   - an address that nobody listens at refuses after one round trip; a host that cannot be reached
//     is tried for 10 s;
//   - a lost connection ends the stream with UNAVAILABLE; of what was on the way, some arrives.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/stream/transport.h"
#include "tests/simulate/transport/network_state.h"
#include "tests/simulate/transport/sim_listener.h"

namespace tacho::simulate {

// Thread-safe, but not for the threads that it calls on: an acceptor or a reactor must not call it.
class SimNetwork {
 public:
  explicit SimNetwork(const SimNetworkOptions& options);
  // Stops.
  ~SimNetwork();

  // Streams to the address go to the acceptor, which is called on a thread that the address has for
  // all its reactors. Nobody may listen there.
  void Listen(const std::string& address, Acceptor acceptor) ABSL_LOCKS_EXCLUDED(listeners_mutex_);
  // The process there is gone: its streams break on both sides, new ones are refused. Returns when
  // every reactor is done: each has to finish when it is cancelled.
  void Unlisten(const std::string& address) ABSL_LOCKS_EXCLUDED(listeners_mutex_);

  // For StreamOptions::transport. It may outlive the network, and reaches nothing then.
  std::unique_ptr<agent::Transport> MakeTransport(const std::string& host);
  // The host's processes are gone: their streams break on both sides, and they reach nothing any
  // more. Transports that are made later are those of new processes.
  void Kill(const std::string& host);

  // Nothing passes between the two until that is taken back. Streams fail by silence, if that comes
  // first; else what was sent meanwhile arrives late.
  void Partition(const std::string& a, const std::string& b, bool parted);
  // The connections between the two are lost.
  void CutAll(const std::string& a, const std::string& b);
  // All connections of the endpoint are lost.
  void Reset(const std::string& endpoint);
  // The connection over which byte `bytes` + 1 from now on would pass, of those of the endpoint and
  // in either direction, is lost there: what was sent before it arrives.
  void CutAfterBytes(const std::string& endpoint, uint64_t bytes);
  // Nothing passes any more over the connections that are there, and neither side is told. New ones
  // work.
  void HalfOpen(const std::string& a, const std::string& b);

  // How many connections were lost so far, by any fault but silence.
  uint64_t cuts() const;

  // Ends all streams and refuses new ones.
  void Stop() ABSL_LOCKS_EXCLUDED(listeners_mutex_);

 private:
  // Needs the network's mutex.
  void ForEachLink(const std::function<void(SimLink*)>& visit);

  const std::shared_ptr<NetworkState> network_;
  absl::Mutex listeners_mutex_;  // Before the network's.
  std::map<std::string, std::unique_ptr<SimListener>> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
};

}  // namespace tacho::simulate
