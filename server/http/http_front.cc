// One thread polls all connections, because a thread for each would let a few hundred slow clients
// keep Prometheus out. When there is no room, the connection that has waited longest for its client
// goes.
#include "server/http/http_front.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "server/errors/error_table.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::http {
namespace {

// Those who have asked get their answers after Stop() for this long.
constexpr absl::Duration kStopGrace = absl::Seconds(1);
// For a few words to a client that was too slow or sent too much.
constexpr absl::Duration kRefusalTime = absl::Seconds(1);

bool WaitsForItsClient(const HttpConnection& connection) {
  return connection.state() != HttpConnection::State::kServing;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpFront>> HttpFront::Start(
    std::unique_ptr<edge::Listener> listener, Options options) {
  // OpenSSL writes without MSG_NOSIGNAL: a client that hangs up before its answer would end the
  // process.
  std::signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<HttpFront> front(new HttpFront(std::move(listener), std::move(options)));
  front->wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (front->wake_fd_ < 0) {
    return absl::UnavailableError(absl::StrCat("eventfd: ", std::strerror(errno)));
  }
  HttpFront* const self = front.get();
  for (size_t i = 0; i < self->options_.limits.threads; ++i) {
    self->workers_.emplace_back([self] { self->Work(); });
  }
  self->thread_ = std::thread([self] { self->Run(); });
  self->listener_->Serve(self, [self](int fd, const edge::PeerAddress& peer) {
    {
      absl::MutexLock lock(&self->mutex_);
      self->accepted_.emplace_back(fd, peer);
    }
    self->Wake();
  });
  return front;
}

HttpFront::HttpFront(std::unique_ptr<edge::Listener> listener, Options options)
    : options_(std::move(options)), listener_(std::move(listener)) {
  if (options_.registry == nullptr) return;
  open_ = &metrics::NewGauge(options_.registry, "tacho_http_connections");
  auto& closed = metrics::CounterFamily(options_.registry, "tacho_http_connections_closed_total");
  for (const char* reason : {"slow", "crowded", "busy", "too_large"}) {
    closed_.push_back(&closed.Add({{"reason", reason}}));
  }
}

HttpFront::~HttpFront() {
  Stop();
  if (wake_fd_ >= 0) close(wake_fd_);
}

void HttpFront::Stop() {
  listener_->Stop();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Wake();
  if (thread_.joinable()) thread_.join();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void HttpFront::Wake() const {
  const uint64_t one = 1;
  while (write(wake_fd_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

bool HttpFront::IsStopping() const {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

void HttpFront::Count(Closed reason) const {
  if (!closed_.empty()) closed_[static_cast<size_t>(reason)]->Increment();
}

void HttpFront::Run() {
  pthread_setname_np(pthread_self(), "http");
  absl::Time stop_by = absl::InfiniteFuture();
  for (;;) {
    const std::vector<uint64_t> ready = Poll();
    const absl::Time now = MonotonicNow();
    const bool stopping = IsStopping();  // If so, no connection comes after this.
    TakeNew(now);
    for (const uint64_t number : ready) Advance(number, now);
    TakeAnswers(now);
    ExpireSlow(now);
    BoundUnsent();
    if (open_ != nullptr) open_->Set(static_cast<double>(connections_.size()));
    if (!stopping) continue;
    if (stop_by == absl::InfiniteFuture()) stop_by = now + kStopGrace;
    for (auto it = connections_.begin(); it != connections_.end();) {
      const auto connection = it++;
      const bool asks = connection->second.http->state() == HttpConnection::State::kReading;
      const bool late = WaitsForItsClient(*connection->second.http) && now >= stop_by;
      if (asks || late) Close(connection);
    }
    if (connections_.empty()) break;
  }
  absl::MutexLock lock(&mutex_);
  done_ = true;
}

absl::Time HttpFront::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [number, connection] : connections_) {
    if (WaitsForItsClient(*connection.http)) next = std::min(next, connection.deadline);
  }
  return next;
}

std::vector<uint64_t> HttpFront::Poll() {
  std::vector<pollfd> polled;
  std::vector<uint64_t> numbers;
  for (const auto& [number, connection] : connections_) {
    if (connection.http->events() == 0) continue;
    polled.push_back({connection.http->fd(), connection.http->events(), 0});
    numbers.push_back(number);
  }
  polled.push_back({wake_fd_, POLLIN, 0});
  // Returns at least this often, so that the grace after Stop() can end.
  const absl::Duration wait =
      std::clamp(NextDeadline() - MonotonicNow(), absl::ZeroDuration(), absl::Milliseconds(500));
  poll(polled.data(), polled.size(),
       static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)))));
  uint64_t woken = 0;
  while (read(wake_fd_, &woken, sizeof(woken)) < 0 && errno == EINTR) {
  }
  std::vector<uint64_t> ready;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (polled[i].revents != 0) ready.push_back(numbers[i]);
  }
  return ready;
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
  Connection connection{std::make_unique<HttpConnection>(fd, peer, options_.tls), network,
                        now + options_.limits.request};
  if (!room) {
    // The requests at work leave no place to wait. The client learns so at once if the socket
    // takes the answer, which without TLS it does.
    Count(Closed::kBusy);
    if (connection.http->state() == HttpConnection::State::kDone) return;  // OpenSSL had no memory.
    connection.http->Answer(options_.refuse(errors::ErrorOf(
        errors::Failure::kOverloaded, "too many requests of this port are running: try again")));
    connection.http->Advance();
    return;
  }
  const uint64_t number = ++last_number_;
  connections_.emplace(number, std::move(connection));
  Advance(number, now);  // Mostly the request is there already.
}

bool HttpFront::MakeRoom(const edge::PeerAddress* network) {
  edge::PeerAddress largest;
  if (network == nullptr) {
    absl::flat_hash_map<edge::PeerAddress, size_t> sizes;
    for (const auto& [number, connection] : connections_) ++sizes[connection.network];
    largest = std::max_element(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
              })->first;
    network = &largest;
  }
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    if (it->second.network != *network || !WaitsForItsClient(*it->second.http)) continue;
    Count(Closed::kCrowded);
    Close(it);
    return true;
  }
  return false;
}

void HttpFront::TakeAnswers(absl::Time now) {
  std::vector<std::pair<uint64_t, Served>> answers;
  {
    absl::MutexLock lock(&mutex_);
    answers.swap(answers_);
  }
  for (auto& [number, answer] : answers) {
    const auto connection = connections_.find(number);
    TACHO_CHECK(connection != connections_.end());  // Nobody closes a connection at work.
    Answer(&connection->second, std::move(answer), now);
    Advance(number, now);
  }
}

void HttpFront::Answer(Connection* connection, Served answer, absl::Time now) {
  connection->http->Answer(std::move(answer.bytes), answer.drain);
  connection->deadline = now + options_.limits.answer;
}

void HttpFront::Advance(uint64_t number, absl::Time now) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;  // It made room for another.
  Connection& connection = found->second;
  HttpConnection& http = *connection.http;
  const bool was_reading = http.state() == HttpConnection::State::kReading;
  const bool was_writing = http.state() == HttpConnection::State::kWriting;
  http.Advance();
  if (http.state() == HttpConnection::State::kDone) return Close(found);
  if (was_writing && http.state() == HttpConnection::State::kDraining) {
    connection.deadline = now + options_.limits.drain;
  }
  if (!was_reading || http.state() != HttpConnection::State::kServing) return;
  if (http.IsTooLarge()) {
    Count(Closed::kTooLarge);
    const absl::Status too_large = errors::ErrorOf(
        errors::Failure::kTooLarge, absl::StrCat("the head of the request has more than ",
                                                 HttpConnection::kMaxHeadBytes, " bytes"));
    Answer(&connection, {.bytes = options_.refuse(too_large), .drain = true}, now);
    return Advance(number, now);
  }
  absl::MutexLock lock(&mutex_);
  requests_.emplace_back(number, &http);
}

void HttpFront::ExpireSlow(absl::Time now) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    const auto connection = it++;
    HttpConnection& http = *connection->second.http;
    if (!WaitsForItsClient(http) || now < connection->second.deadline) continue;
    if (http.state() == HttpConnection::State::kDraining) {  // It has its answer.
      Close(connection);
      continue;
    }
    Count(Closed::kSlow);
    if (http.state() == HttpConnection::State::kReading) {
      http.Answer(options_.refuse(errors::ErrorOf(
          errors::Failure::kTooSlow, absl::StrCat("no complete request within ",
                                                  absl::FormatDuration(options_.limits.request)))));
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

void HttpFront::Close(Connections::iterator connection) { connections_.erase(connection); }

void HttpFront::Work() {
  pthread_setname_np(pthread_self(), "http worker");
  for (;;) {
    std::pair<uint64_t, const HttpConnection*> request;
    {
      absl::MutexLock lock(&mutex_);
      const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return done_ || !requests_.empty();
      };
      mutex_.Await(absl::Condition(&any));
      if (requests_.empty()) return;
      request = requests_.front();
      requests_.pop_front();
    }
    Served answer = options_.serve(*request.second);
    {
      absl::MutexLock lock(&mutex_);
      answers_.emplace_back(request.first, std::move(answer));
    }
    Wake();
  }
}

}  // namespace tacho::server::http
