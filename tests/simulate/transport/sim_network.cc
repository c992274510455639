#include "tests/simulate/transport/sim_network.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "tests/simulate/transport/sim_link.h"
#include "tests/simulate/transport/sim_transport.h"

namespace tacho::simulate {
namespace {

bool IsBetween(const SimLink& link, const std::string& a, const std::string& b) {
  return (link.host() == a && link.address() == b) || (link.host() == b && link.address() == a);
}

}  // namespace

SimNetwork::SimNetwork(const SimNetworkOptions& options)
    : network_(std::make_shared<NetworkState>(options)) {}

SimNetwork::~SimNetwork() { Stop(); }

void SimNetwork::Listen(const std::string& address, Acceptor acceptor) {
  absl::MutexLock lock(&listeners_mutex_);
  auto& listener = listeners_[address];
  TACHO_CHECK(listener == nullptr);
  listener = std::make_unique<SimListener>(network_.get(), std::move(acceptor));
  absl::MutexLock network_lock(&network_->mutex);
  network_->doors[address] = listener->door();
}

void SimNetwork::Unlisten(const std::string& address) {
  std::unique_ptr<SimListener> listener;
  {
    absl::MutexLock lock(&listeners_mutex_);
    const auto found = listeners_.find(address);
    TACHO_CHECK(found != listeners_.end());
    listener = std::move(found->second);
    listeners_.erase(found);
    absl::MutexLock network_lock(&network_->mutex);
    network_->doors.erase(address);
  }
  listener->Stop();
}

void SimNetwork::Stop() {
  std::vector<std::string> addresses;
  {
    absl::MutexLock lock(&listeners_mutex_);
    for (const auto& [address, listener] : listeners_) addresses.push_back(address);
  }
  for (const std::string& address : addresses) Unlisten(address);
}

std::unique_ptr<agent::Transport> SimNetwork::MakeTransport(const std::string& host) {
  auto process = std::make_shared<SimProcess>(SimProcess{.host = host});
  absl::MutexLock lock(&network_->mutex);
  network_->processes.push_back(process);
  return std::make_unique<SimTransport>(network_, std::move(process));
}

void SimNetwork::ForEachLink(const std::function<void(SimLink*)>& visit) {
  for (const auto& weak : std::vector(network_->links)) {
    if (const auto link = weak.lock(); link != nullptr) visit(link.get());
  }
}

void SimNetwork::Kill(const std::string& host) {
  absl::MutexLock lock(&network_->mutex);
  for (const auto& weak : network_->processes) {
    const auto process = weak.lock();
    if (process != nullptr && process->host == host) process->dead = true;
  }
  ForEachLink([&host](SimLink* link) {
    if (link->host() != host) return;
    link->Cut();
    link->Break(Side::kAgent, {grpc::StatusCode::UNAVAILABLE, "this process was killed"});
  });
}

void SimNetwork::Partition(const std::string& a, const std::string& b, bool parted) {
  absl::MutexLock lock(&network_->mutex);
  if (parted) {
    network_->partitions.insert(std::minmax(a, b));
  } else {
    network_->partitions.erase(std::minmax(a, b));
  }
  ForEachLink([&](SimLink* link) {
    if (IsBetween(*link, a, b)) link->SetParted(parted);
  });
}

void SimNetwork::CutAll(const std::string& a, const std::string& b) {
  absl::MutexLock lock(&network_->mutex);
  ForEachLink([&](SimLink* link) {
    if (IsBetween(*link, a, b)) link->Cut();
  });
}

void SimNetwork::Reset(const std::string& endpoint) {
  absl::MutexLock lock(&network_->mutex);
  ForEachLink([&endpoint](SimLink* link) {
    if (link->host() == endpoint || link->address() == endpoint) link->Cut();
  });
}

void SimNetwork::CutAfterBytes(const std::string& endpoint, uint64_t bytes) {
  absl::MutexLock lock(&network_->mutex);
  network_->bytes_to_cut[endpoint] = bytes;
}

void SimNetwork::HalfOpen(const std::string& a, const std::string& b) {
  absl::MutexLock lock(&network_->mutex);
  ForEachLink([&](SimLink* link) {
    if (IsBetween(*link, a, b)) link->MakeHalfOpen();
  });
}

uint64_t SimNetwork::cuts() const {
  absl::MutexLock lock(&network_->mutex);
  return network_->cuts;
}

}  // namespace tacho::simulate
