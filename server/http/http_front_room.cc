// Deadlines, and the choice of who leaves when there is no room. The connection that has waited
// longest for its client goes first, because its client loses least; an idle one loses nothing.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "server/errors/error_table.h"
#include "server/http/http_front.h"

namespace tacho::server::http {
namespace {

// For a few words to a client that was too slow or sent too much.
constexpr absl::Duration kRefusalTime = absl::Seconds(1);

bool WaitsForItsClient(const HttpConnection& connection) {
  return connection.state() != HttpConnection::State::kServing;
}

}  // namespace

void HttpFront::Count(Closed reason) const {
  if (!closed_.empty()) closed_[static_cast<size_t>(reason)]->Increment();
}

absl::Time HttpFront::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [number, connection] : connections_) {
    if (WaitsForItsClient(*connection.http)) next = std::min(next, connection.deadline);
  }
  return next;
}

void HttpFront::TakeNew(absl::Time now) {
  std::vector<std::pair<int, edge::PeerAddress>> accepted;
  {
    absl::MutexLock lock(&mutex_);
    accepted.swap(accepted_);
  }
  for (const auto& [fd, peer] : accepted) Take(fd, peer, now);
}

void HttpFront::Take(int fd, const edge::PeerAddress& peer, absl::Time now) {
  const edge::PeerAddress network = edge::NetworkOf(peer);
  const auto same = [&network](const auto& entry) { return entry.second.network == network; };
  const auto of_network =
      static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(), same));
  bool room = true;
  if (of_network >= options_.limits.per_address) {
    room = MakeRoom(&network);
  } else if (connections_.size() >= options_.limits.connections) {
    room = MakeRoom(nullptr);
  }
  Connection connection;
  connection.http = std::make_unique<HttpConnection>(fd, peer, options_.tls);
  connection.network = network;
  connection.deadline = now + options_.limits.request;
  if (!room) {
    // The requests at work leave no place to wait. The client learns so at once if the socket
    // takes the answer, which without TLS it does.
    Count(Closed::kBusy);
    if (connection.http->state() == HttpConnection::State::kDone) return;  // OpenSSL had no memory.
    connection.http->Send(
        options_.refuse(errors::ErrorOf(errors::Failure::kOverloaded,
                                        "too many requests of this port are running: try again")),
        HttpConnection::Then::kClose);
    connection.http->Advance();
    return;
  }
  const uint64_t number = ++last_number_;
  connections_.emplace(number, std::move(connection));
  Advance(number, now);  // Mostly the request is there already.
}

edge::PeerAddress HttpFront::LargestNetwork() const {
  absl::flat_hash_map<edge::PeerAddress, size_t> sizes;
  for (const auto& [number, connection] : connections_) ++sizes[connection.network];
  return std::max_element(sizes.begin(), sizes.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

HttpFront::Connections::iterator HttpFront::LongestIdle(const edge::PeerAddress* network) {
  auto longest = connections_.end();
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    const Connection& connection = it->second;
    if (!connection.http->IsIdle()) continue;
    if (network != nullptr && connection.network != *network) continue;
    if (longest == connections_.end() || connection.deadline < longest->second.deadline) {
      longest = it;
    }
  }
  return longest;
}

HttpFront::Connections::iterator HttpFront::LongestWaiting(const edge::PeerAddress& network) {
  return std::find_if(connections_.begin(), connections_.end(), [&network](const auto& entry) {
    return entry.second.network == network && WaitsForItsClient(*entry.second.http);
  });
}

bool HttpFront::MakeRoom(const edge::PeerAddress* network) {
  if (network == nullptr) {
    if (const auto idle = LongestIdle(nullptr); idle != connections_.end()) {
      Close(idle);
      return true;
    }
  }
  const edge::PeerAddress from = network == nullptr ? LargestNetwork() : *network;
  if (const auto idle = LongestIdle(&from); idle != connections_.end()) {
    Close(idle);
    return true;
  }
  const auto waiting = LongestWaiting(from);
  if (waiting == connections_.end()) return false;
  Count(Closed::kCrowded);
  Close(waiting);
  return true;
}

absl::Status HttpFront::CheckCalls(const edge::PeerAddress& network) const {
  size_t all = 0, same = 0, bytes = 0;  // With the one that is asked for.
  for (const auto& [number, connection] : connections_) {
    if (connection.exchange == nullptr || !connection.exchange->AnswersLater()) continue;
    ++all;
    bytes += connection.exchange->request.content_length;
    if (connection.network == network) ++same;
  }
  if (same > options_.limits.calls_per_address) {
    return errors::ErrorOf(errors::Failure::kOverloaded,
                           absl::StrCat("this address has ", options_.limits.calls_per_address,
                                        " requests at work: try again"));
  }
  if (all > 1 && bytes > options_.limits.call_bytes) {
    return errors::ErrorOf(errors::Failure::kOverloaded,
                           "the requests at work have too many bytes: try again");
  }
  if (all <= options_.limits.calls) return absl::OkStatus();
  return errors::ErrorOf(errors::Failure::kOverloaded,
                         "too many requests of this port are running: try again");
}

bool HttpFront::HasTooManyStreams(const edge::PeerAddress& network) const {
  const auto is_one = [&network](const auto& entry) {
    return entry.second.streams && entry.second.network == network;
  };
  const auto streams = std::count_if(connections_.begin(), connections_.end(), is_one);
  return static_cast<size_t>(streams) > options_.limits.streams_per_address;
}

void HttpFront::ExpireSlow(absl::Time now) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    const auto connection = it++;
    HttpConnection& http = *connection->second.http;
    if (!WaitsForItsClient(http) || now < connection->second.deadline) continue;
    // A client that drains has its answer, and an idle one owes nothing.
    if (http.state() == HttpConnection::State::kDraining || http.IsIdle()) {
      Close(connection);
      continue;
    }
    Count(Closed::kSlow);
    if (http.state() == HttpConnection::State::kReading) {
      Refuse(&connection->second,
             errors::ErrorOf(errors::Failure::kTooSlow,
                             absl::StrCat("no complete request within ",
                                          absl::FormatDuration(options_.limits.request))),
             HttpConnection::Then::kClose, now);
      connection->second.deadline = now + kRefusalTime;
      http.Advance();
      if (http.state() != HttpConnection::State::kDone) continue;
    }
    Close(connection);
  }
}

void HttpFront::BoundUnsent() {
  size_t unsent = 0;
  for (const auto& [number, connection] : connections_) unsent += connection.http->unsent_bytes();
  // The newest alone may exceed the limit of all.
  for (auto it = connections_.begin();
       unsent > options_.limits.unsent_bytes && it != connections_.end();) {
    const auto connection = it++;
    const size_t bytes = connection->second.http->unsent_bytes();
    if (bytes == 0 || bytes == unsent) continue;
    unsent -= bytes;
    Count(Closed::kCrowded);
    Close(connection);
  }
}

void HttpFront::Close(Connections::iterator connection) {
  EndExchange(&connection->second, MonotonicNow());
  connections_.erase(connection);
}

}  // namespace tacho::server::http
