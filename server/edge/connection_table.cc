// Compares the bytes that a connection sent (TCP_INFO) with what its messages and calls explain.
// The rest is waste: time forgives a little of it, and a connection with more is shut down. This
// needs no knowledge of HTTP/2 frames, so it covers every flood that gRPC lets through.
#include "server/edge/connection_table.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::edge {
namespace {

// How many of the received bytes have an explanation: messages count twice, for frames and TLS;
// each message, call and answer brings its frames and headers.
constexpr double kMessageFactor = 2;
constexpr double kPerMessage = 128;
constexpr double kPerCall = 4096;
constexpr double kPerSentByte = 1.0 / 64;
// This much is forgiven: pings, settings, window updates.
constexpr double kForgivenPerSecond = 64 << 10;
constexpr double kForgivenAtOnce = 1 << 20;
// Without a call no message can be on its way beyond the flow control window of 64 KiB. Each ping
// too many is answered by a GOAWAY that gRPC 1.51 keeps until it has closed: up to 3 KB for 17
// bytes.
constexpr double kForgivenWithoutCall = 128 << 10;
// A smaller unfinished message is not worth looking for.
constexpr double kUnfinishedBytes = 64 << 10;
// Nor is one that comes more slowly: an agent without rows pings every 10 s at most, which with TLS
// is a tenth of this, for as long as it is idle.
constexpr double kIdleBytesPerSecond = 64;
constexpr int64_t kStartsBurstNs = 1'000'000'000;
constexpr absl::Duration kSweepAllEvery = absl::Seconds(2);
// The process's memory may grow so much in so long: a header block that never ends comes as fast as
// the network is, and gRPC 1.51 keeps all of it.
constexpr uint64_t kFastGrowth = 8 << 20;
constexpr absl::Duration kGrowthOver = absl::Milliseconds(50);
// A connection is looked at closely while it is young, and while it owes more than this.
constexpr absl::Duration kYoung = absl::Seconds(3);
// After this many messages that explain what it sent, it is no longer young.
constexpr uint64_t kKnownMessages = 16;
constexpr double kSuspiciousDebt = 64 << 10;
constexpr size_t kSuspectsAtOnce = 64;
// Enough for the agents behind one address to come back in turn, too little for a flood.
constexpr absl::Duration kPenalty = absl::Seconds(10);
constexpr Rate kPenaltyRate = {.per_second = 5, .burst_ns = 1'000'000'000};
// So many connections from one address may end without a call, as those do that gRPC itself closes
// for their frames, or that fail at TLS. Load balancers look less often whether a port is open.
constexpr Rate kVainRate = {.per_second = 5, .burst_ns = 2'000'000'000};
// So many connections of welcomed agents behind one address may be shut down. An agent tries again
// after 0.5 to 30 s.
constexpr Rate kMistakeRate = {.per_second = 1, .burst_ns = 10'000'000'000};
// At its limit the table looks for connections that have closed, no more often than this.
constexpr absl::Duration kLookEvery = absl::Milliseconds(50);

constexpr char kSilent[] = "silent";
constexpr char kTotal[] = "total";
constexpr char kAddress[] = "address";
constexpr char kOversized[] = "oversized";

// Says what a connection did that was shut down for the reason, for those who share its address.
const char* PenaltyFor(absl::string_view reason) {
  if (reason == "calls") {
    return "a connection from there began too many calls (quotas.stream_starts_per_second)";
  }
  if (reason == "unfinished") return "a connection from there left a message unfinished";
  if (reason == kOversized) {
    return "agents there often send messages far above ingest.max_message_bytes";
  }
  return "a connection from there sent a flood of bytes that are no messages";
}

uint64_t PlacesForReaders(uint64_t connections) { return connections - connections / 4; }

// 0 if the descriptor is no open socket.
ino_t InodeOf(int fd) {
  struct stat status = {};
  return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

Rate StartRate(const ConnectionTable::Limits& limits) {
  return {.per_second = limits.starts_per_second, .burst_ns = kStartsBurstNs};
}

struct Traffic {
  double received = 0;
  double sent = 0;
};

Traffic TrafficOf(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return {static_cast<double>(info.tcpi_bytes_received),
          static_cast<double>(info.tcpi_bytes_acked)};
}

// Drops what is queued at a socket that was shut down: gRPC would still read and keep it, megabytes
// of a flood.
void DropReceived(int fd) {
  while (recv(fd, nullptr, INT_MAX, MSG_TRUNC | MSG_DONTWAIT) > 0) {
  }
}

}  // namespace

ConnectionTable::ConnectionTable(Options options)
    : options_(std::move(options)),
      limit_(metrics::NewGauge(options_.registry, "tacho_quota_limit", {{"quota", "connections"}})),
      used_(metrics::NewGauge(options_.registry, "tacho_quota_used", {{"quota", "connections"}})),
      refused_(metrics::CounterFamily(options_.registry, "tacho_connections_refused_total")),
      closed_(metrics::CounterFamily(options_.registry, "tacho_connections_closed_total")) {
  for (const char* reason : {kTotal, kAddress, "memory", "penalty"})
    refused_.Add({{"reason", reason}});
  for (const char* reason : {kSilent, "unfinished", "flood", kOversized, "calls"}) {
    closed_.Add({{"reason", reason}});
  }
  SetLimits(options_.limits);
}

void ConnectionTable::SetLimits(const Limits& limits) {
  absl::MutexLock lock(&mutex_);
  limits_ = limits;
  limit_.Set(static_cast<double>(limits.max_connections));
}

bool ConnectionTable::Admit(int fd, const PeerAddress& peer, absl::Time now) {
  const PeerAddress network = NetworkOf(peer);
  const bool memory_short = options_.memory_short();
  const char* reason = nullptr;
  std::string words;
  {
    absl::MutexLock lock(&mutex_);
    // The number can only come again once its last owner has closed.
    if (const auto old = connections_.find(fd); old != connections_.end()) ForgetEnded(old, now);
    reason = memory_short ? "memory" : Refusal(network, now);
    if (reason == nullptr) {
      Connection connection;
      connection.inode = InodeOf(fd);
      connection.peer = peer;
      connection.since = connection.quiet_since = connection.looked = now;
      connections_.emplace(fd, std::move(connection));
      suspects_.push_back(fd);
      by_peer_[peer] = fd;
      ++by_network_[network].connections;
      used_.Set(static_cast<double>(connections_.size()));
      return true;
    }
    words = InWords(reason, network, now);
  }
  refused_.Add({{"reason", reason}}).Increment();
  if (options_.answer_refused) answers_.Start(fd, words, now);
  return false;
}

std::string ConnectionTable::InWords(absl::string_view reason, const PeerAddress& network,
                                     absl::Time now) const {
  if (reason == "memory")
    return "the collector is short of memory and refuses new connections until it has more";
  if (reason == "total") {
    return absl::StrCat("the collector has as many connections as it takes, ",
                        limits_.max_connections, " (quotas.max_connections)");
  }
  const auto found = by_network_.find(network);
  if (reason == "address" || found == by_network_.end()) {
    return absl::StrCat("your address has as many connections as one may have, ",
                        limits_.max_per_address, " (quotas.max_connections_per_address)");
  }
  const absl::Duration left = absl::Ceil(found->second.penalty_until - now, absl::Seconds(1));
  return absl::StrCat("the collector takes few new connections from your address for another ",
                      absl::FormatDuration(left), ", because ", found->second.penalty_for,
                      "; the collector's log names the connections");
}

const char* ConnectionTable::Refusal(const PeerAddress& network, absl::Time now) {
  const auto full = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> const char* {
    if (connections_.size() >= limits_.max_connections) return kTotal;
    const auto same = by_network_.find(network);
    if (same == by_network_.end()) return nullptr;
    return same->second.connections >= limits_.max_per_address ? kAddress : nullptr;
  };
  const char* reason = full();
  if (reason != nullptr && now - looked_for_closed_ >= kLookEvery) {
    looked_for_closed_ = now;
    ForgetClosed(now);
    reason = full();
  }
  if (reason != nullptr) return reason;
  const auto same = by_network_.find(network);
  if (same == by_network_.end() || now >= same->second.penalty_until) return nullptr;
  const bool waits = same->second.admitted.Take(1, kPenaltyRate, absl::ToUnixNanos(now)) > 0;
  return waits ? "penalty" : nullptr;
}

bool ConnectionTable::Network::IsForgettable(absl::Time now) const {
  const int64_t now_ns = absl::ToUnixNanos(now);
  return connections == 0 && now >= penalty_until && vain.IsFull(kVainRate, now_ns) &&
         mistakes.IsFull(kMistakeRate, now_ns);
}

void ConnectionTable::Forget(Connections::iterator connection, absl::Time now) {
  const PeerAddress peer = connection->second.peer;
  const auto by_peer = by_peer_.find(peer);
  if (by_peer != by_peer_.end() && by_peer->second == connection->first) by_peer_.erase(by_peer);
  const auto network = by_network_.find(NetworkOf(peer));
  TACHO_CHECK(network != by_network_.end() && network->second.connections > 0);
  --network->second.connections;
  if (connection->second.caller == Caller::kReader) {
    --network->second.readers;
    --readers_;
  }
  if (network->second.IsForgettable(now)) by_network_.erase(network);
  connections_.erase(connection);
  used_.Set(static_cast<double>(connections_.size()));
}

void ConnectionTable::ForgetEnded(Connections::iterator connection, absl::Time now) {
  if (connection->second.use->calls.load(std::memory_order_relaxed) == 0) {
    Network& network = by_network_[NetworkOf(connection->second.peer)];
    if (network.vain.Take(1, kVainRate, absl::ToUnixNanos(now)) > 0) {
      network.penalty_until = now + kPenalty;
      network.penalty_for = "many connections from there ended without a call";
    }
  }
  Forget(connection, now);
}

void ConnectionTable::ForgetClosed(absl::Time now) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    const auto connection = it++;
    if (InodeOf(connection->first) != connection->second.inode) ForgetEnded(connection, now);
  }
}

std::shared_ptr<ConnectionUse> ConnectionTable::Find(absl::string_view peer) {
  const auto parsed = ParsePeer(peer);
  if (!parsed.has_value()) return nullptr;
  absl::MutexLock lock(&mutex_);
  const auto fd = by_peer_.find(*parsed);
  if (fd == by_peer_.end()) return nullptr;
  const auto connection = connections_.find(fd->second);
  TACHO_CHECK(connection != connections_.end());
  return connection->second.use;
}

const char* ConnectionTable::SetCaller(Connection* connection, Caller caller) {
  if (connection->caller == caller || connection->caller == Caller::kWriter) return nullptr;
  Network& network = by_network_[NetworkOf(connection->peer)];
  if (caller == Caller::kWriter) {
    if (connection->caller.has_value()) {
      --network.readers;
      --readers_;
    }
  } else {
    if (readers_ >= PlacesForReaders(limits_.max_connections)) return kTotal;
    if (network.readers >= PlacesForReaders(limits_.max_per_address)) return kAddress;
    ++network.readers;
    ++readers_;
  }
  connection->caller = caller;
  return nullptr;
}

void ConnectionTable::CountStart(absl::string_view peer, Caller caller, absl::Time now) {
  const auto parsed = ParsePeer(peer);
  if (!parsed.has_value()) return;
  absl::MutexLock lock(&mutex_);
  const auto fd = by_peer_.find(*parsed);
  if (fd == by_peer_.end()) return;
  const auto connection = connections_.find(fd->second);
  TACHO_CHECK(connection != connections_.end());
  ConnectionUse& use = *connection->second.use;
  use.calls.fetch_add(1, std::memory_order_relaxed);
  if (use.starts.Take(1, StartRate(limits_), absl::ToUnixNanos(now)) > 0) {
    ShutDown(connection, "calls", now);
  } else if (const char* refused = SetCaller(&connection->second, caller); refused != nullptr) {
    refused_.Add({{"reason", refused}}).Increment();
    Close(connection, now);
  }
}

bool ConnectionTable::IsHostile(const Connection& connection, const char* reason, absl::Time now) {
  if (reason == kSilent) return false;
  if (!connection.use->welcomed.load(std::memory_order_relaxed)) return true;
  TokenBucket& mistakes = by_network_[NetworkOf(connection.peer)].mistakes;
  return mistakes.Take(1, kMistakeRate, absl::ToUnixNanos(now)) > 0;
}

void ConnectionTable::ShutDown(Connections::iterator connection, const char* reason,
                               absl::Time now) {
  const PeerAddress peer = connection->second.peer;
  if (IsHostile(connection->second, reason, now)) {
    Network& network = by_network_[NetworkOf(peer)];
    network.penalty_until = now + kPenalty;
    network.penalty_for = PenaltyFor(reason);
  }
  Close(connection, now);
  shut_down_.emplace_back(peer, reason);
}

void ConnectionTable::Close(Connections::iterator connection, absl::Time now) {
  if (InodeOf(connection->first) == connection->second.inode) {
    shutdown(connection->first, SHUT_RDWR);  // gRPC finds it broken, and closes it.
    DropReceived(connection->first);
  }
  Forget(connection, now);
}

void ConnectionTable::CountAnswer(ConnectionUse* use) {
  TACHO_CHECK(use != nullptr);
  absl::MutexLock lock(&mutex_);
  use->starts.GiveBack(1, StartRate(limits_));
}

const char* ConnectionTable::Judge(int fd, Connection* connection, absl::Time now) const {
  ConnectionUse& use = *connection->use;
  const uint64_t calls = use.calls.load(std::memory_order_relaxed);
  if (calls == 0 && now - connection->since > limits_.patience) return kSilent;

  const uint64_t messages = use.messages.load(std::memory_order_relaxed);
  const uint64_t bytes = use.message_bytes.load(std::memory_order_relaxed);
  const Traffic traffic = TrafficOf(fd);
  const double explained = kMessageFactor * static_cast<double>(bytes) +
                           kPerMessage * static_cast<double>(messages) +
                           kPerCall * static_cast<double>(calls) + kPerSentByte * traffic.sent;
  const double waste = traffic.received - explained;
  const double forgiven = kForgivenPerSecond * absl::ToDoubleSeconds(now - connection->looked);
  connection->looked = now;
  connection->debt = std::max(0.0, connection->debt + waste - connection->waste - forgiven);
  const double last_waste = std::exchange(connection->waste, waste);
  // A message that is coming in is not explained before it is whole.
  const bool welcomed = use.welcomed.load(std::memory_order_relaxed);
  const auto one_message =
      static_cast<double>(welcomed ? limits_.max_read_bytes : limits_.max_message_bytes);
  const double forgiven_at_once = calls == 0 ? kForgivenWithoutCall : kForgivenAtOnce + one_message;
  if (connection->debt > forgiven_at_once) return welcomed ? kOversized : "flood";

  if (messages + calls != connection->messages) {
    connection->messages = messages + calls;
    connection->quiet_since = now;
    // Some of what came since the last look may belong to the next message already.
    connection->quiet_waste = std::min(waste, last_waste);
  }
  const absl::Duration quiet = now - connection->quiet_since;
  const double idle = kIdleBytesPerSecond * absl::ToDoubleSeconds(quiet);
  const bool unfinished = waste - connection->quiet_waste > kUnfinishedBytes + idle;
  return unfinished && quiet > limits_.patience ? "unfinished" : nullptr;
}

void ConnectionTable::LookAt(Connections::iterator connection, absl::Time now) {
  const int fd = connection->first;
  if (InodeOf(fd) != connection->second.inode) return ForgetEnded(connection, now);
  if (const char* reason = Judge(fd, &connection->second, now); reason != nullptr) {
    return ShutDown(connection, reason, now);
  }
  const Connection& looked_at = connection->second;
  const bool known = now - looked_at.since >= kYoung ||
                     looked_at.use->messages.load(std::memory_order_relaxed) >= kKnownMessages;
  if (!known || looked_at.debt > kSuspiciousDebt) suspects_.push_back(fd);
}

void ConnectionTable::LookAtSome(absl::Time now) {
  for (size_t left = std::min(suspects_.size(), kSuspectsAtOnce); left > 0; --left) {
    const auto suspect = connections_.find(suspects_.front());
    suspects_.pop_front();
    if (suspect != connections_.end()) LookAt(suspect, now);
  }
}

void ConnectionTable::LookAtAll(absl::Time now) {
  swept_all_ = looked_for_closed_ = now;
  suspects_.clear();
  for (auto it = connections_.begin(); it != connections_.end();) {
    const auto connection = it++;
    LookAt(connection, now);
  }
  absl::erase_if(by_network_, [now](const auto& entry) { return entry.second.IsForgettable(now); });
}

bool ConnectionTable::Sweep(absl::Time now) {
  answers_.Step(now);
  const uint64_t resident = options_.resident();
  std::vector<std::pair<PeerAddress, const char*>> closed;
  bool suspects_left = false;
  {
    absl::MutexLock lock(&mutex_);
    const bool grows = resident > resident_ + kFastGrowth;
    if (grows || now - resident_at_ >= kGrowthOver) {
      resident_ = resident;
      resident_at_ = now;
    }
    if (grows || now - swept_all_ >= kSweepAllEvery) {
      LookAtAll(now);
    } else {
      LookAtSome(now);
    }
    closed.swap(shut_down_);
    suspects_left = !suspects_.empty();
  }
  for (const auto& [peer, reason] : closed) {
    closed_.Add({{"reason", reason}}).Increment();
    if (options_.log) {
      options_.log(absl::StrCat("connection of ", ToString(peer), " shut down: ", reason));
    }
  }
  return suspects_left;
}

}  // namespace tacho::server::edge
