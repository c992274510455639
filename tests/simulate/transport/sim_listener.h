// A collector's address in a simulated network, and the thread that runs its reactors.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "tests/simulate/transport/network_state.h"
#include "tests/simulate/transport/sim_server_call.h"

namespace tacho::simulate {

class SimListener {
 public:
  // The network is not owned. Takes its mutex.
  SimListener(NetworkState* network, Acceptor acceptor);
  // After Stop().
  ~SimListener();

  const std::shared_ptr<Door>& door() const { return door_; }

  // Breaks all streams, and returns when every reactor is done. Not for the listener's thread.
  void Stop();

 private:
  void Run();
  // These two need the mutex.
  void Open(const std::shared_ptr<SimLink>& link);
  void Post(std::function<void()> function);
  void Gone(SimServerCall* call);

  NetworkState* const network_;
  const Acceptor acceptor_;
  const std::shared_ptr<Door> door_;
  // These need the network's mutex.
  std::deque<std::function<void()>> posted_;
  std::map<SimServerCall*, std::unique_ptr<SimServerCall>> calls_;
  uint64_t last_call_ = 0;

  std::thread thread_;
};

}  // namespace tacho::simulate
