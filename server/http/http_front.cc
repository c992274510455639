// One thread polls all connections, because a thread for each would let a few hundred slow clients
// keep Prometheus out. Handlers never see a connection: they write to an exchange, whose bell tells
// this thread to send what they wrote.
#include "server/http/http_front.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "server/errors/error_table.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::http {
namespace {

using State = HttpConnection::State;
using Then = HttpConnection::Then;

// Those who have asked get their answers after Stop() for this long.
constexpr absl::Duration kStopGrace = absl::Seconds(1);
constexpr int kClientHasGone = 499;  // As for CANCELLED of the error table.

}  // namespace

absl::StatusOr<std::unique_ptr<HttpFront>> HttpFront::Start(
    std::unique_ptr<edge::Listener> listener, Options options) {
  // OpenSSL writes without MSG_NOSIGNAL: a client that hangs up before its answer would end the
  // process.
  std::signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<HttpFront> front(new HttpFront(std::move(listener), std::move(options)));
  if (front->bell_->fd() < 0) return absl::UnavailableError("eventfd: no descriptors are left");
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

HttpFront::~HttpFront() { Stop(); }

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

bool HttpFront::IsStopping() const {
  absl::MutexLock lock(&mutex_);
  return stopping_;
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
    TakeAnswers(bell_->Take(), now);
    ExpireSlow(now);
    BoundUnsent();
    if (open_ != nullptr) open_->Set(static_cast<double>(connections_.size()));
    if (!stopping) continue;
    stop_by = std::min(stop_by, now + kStopGrace);
    if (WindUp(stop_by, now)) break;
  }
  absl::MutexLock lock(&mutex_);
  done_ = true;
}

bool HttpFront::WindUp(absl::Time stop_by, absl::Time now) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    const auto entry = it++;
    Connection& connection = entry->second;
    const State state = connection.http->state();
    if (state == State::kReading) {
      Close(entry);
      continue;
    }
    if (now < stop_by) continue;
    if (state != State::kServing) {
      Close(entry);
    } else if (connection.exchange != nullptr && connection.exchange->AnswersLater()) {
      // Bytes that are sent now go out without a wait, or not at all.
      if (!connection.streams) Refuse(&connection, errors::Draining(), Then::kClose, now);
      connection.http->Advance();
      Close(entry);
    }
  }
  return connections_.empty();
}

std::vector<uint64_t> HttpFront::Poll() {
  std::vector<pollfd> polled;
  std::vector<uint64_t> numbers;
  for (const auto& [number, connection] : connections_) {
    if (connection.http->events() == 0) continue;
    polled.push_back({connection.http->fd(), connection.http->events(), 0});
    numbers.push_back(number);
  }
  polled.push_back({bell_->fd(), POLLIN, 0});
  // Returns at least this often, so that the grace after Stop() can end.
  const absl::Duration wait =
      std::clamp(NextDeadline() - MonotonicNow(), absl::ZeroDuration(), absl::Milliseconds(500));
  poll(polled.data(), polled.size(),
       static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)))));
  std::vector<uint64_t> ready;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (polled[i].revents != 0) ready.push_back(numbers[i]);
  }
  return ready;
}

void HttpFront::Advance(uint64_t number, absl::Time now) {
  for (;;) {
    const auto found = connections_.find(number);
    if (found == connections_.end()) return;  // It made room for another.
    Connection& connection = found->second;
    // Only clients of answers that take long are watched while they wait.
    if (connection.http->state() == State::kServing && connection.at_work) return Close(found);
    const State before = connection.http->state();
    const bool was_idle = connection.http->IsIdle();
    connection.http->Advance();
    const size_t sent = connection.http->TakeSent();
    if (sent > 0 && connection.streams) connection.deadline = now + options_.limits.answer;
    if (sent > 0 && connection.exchange != nullptr) connection.exchange->OnSent(sent);
    const State state = connection.http->state();
    if (was_idle && state == State::kReading && !connection.http->IsIdle()) {
      connection.deadline = now + options_.limits.request;
    }
    if (before == State::kWriting && state == State::kDraining) {
      connection.deadline = now + options_.limits.drain;
    }
    if (!Continue(found, now)) return;
  }
}

bool HttpFront::Continue(Connections::iterator entry, absl::Time now) {
  Connection& connection = entry->second;
  switch (connection.http->state()) {
    case State::kDone:
      Close(entry);
      return false;
    case State::kAnswered:
      EndExchange(&connection, now);
      connection.http->NextRequest();
      connection.deadline = now + options_.limits.idle;
      return true;
    case State::kDraining:
      EndExchange(&connection, now);
      return false;
    case State::kServing:
      if (connection.at_work) return false;
      if (connection.exchange == nullptr) TakeRequest(entry->first, &connection, now);
      // A refusal can be written, and a body be read, at once.
      if (connection.http->state() != State::kServing) return true;
      if (const absl::Status body = connection.http->CheckBody(); !body.ok()) {
        Refuse(&connection, body, Then::kDrain, now);
        return true;
      }
      HandToWorker(&connection);
      return false;
    case State::kReading:
    case State::kWriting:
      return false;
  }
  return false;
}

void HttpFront::TakeRequest(uint64_t number, Connection* connection, absl::Time now) {
  HttpConnection& http = *connection->http;
  if (http.IsTooLarge()) {
    Count(Closed::kTooLarge);
    const absl::Status too_large = errors::ErrorOf(
        errors::Failure::kTooLarge, absl::StrCat("the head of the request has more than ",
                                                 HttpConnection::kMaxHeadBytes, " bytes"));
    return Refuse(connection, too_large, Then::kDrain, now);
  }
  Intake intake = options_.intake(http);
  connection->asked = now;
  connection->drains = intake.drains;
  connection->exchange = std::make_shared<HttpExchange>(std::move(intake.request), intake.route,
                                                        std::move(intake.form), number, bell_);
  if (!intake.refusal.has_value() && connection->exchange->AnswersLater()) {
    const absl::Status crowded = CheckCalls(connection->network);
    const Then then = intake.body_bytes > 0 ? Then::kDrain : Then::kClose;
    if (!crowded.ok()) return Refuse(connection, crowded, then, now);
  }
  if (intake.refusal.has_value()) {
    connection->exchange->Answer(*std::move(intake.refusal));
    return TakePiece(connection, now);
  }
  if (intake.in_chunks) {
    http.ReadChunks(intake.body_bytes, intake.asks_to_continue);
  } else if (intake.body_bytes > 0) {
    http.ReadBody(intake.body_bytes, intake.asks_to_continue);
  }
}

void HttpFront::HandToWorker(Connection* connection) {
  connection->exchange->request.body = std::string(connection->http->body());
  connection->at_work = true;
  if (connection->exchange->AnswersLater()) connection->http->WatchPeer();
  absl::MutexLock lock(&mutex_);
  requests_.push_back(connection->exchange);
}

void HttpFront::TakeAnswers(const std::vector<uint64_t>& rung, absl::Time now) {
  for (const uint64_t number : rung) {
    const auto connection = connections_.find(number);
    if (connection == connections_.end()) continue;
    TakePiece(&connection->second, now);
    // A connection that serves has nothing to send, and must not be taken for one that hung up.
    if (connection->second.http->state() != State::kServing) Advance(number, now);
  }
}

void HttpFront::TakePiece(Connection* connection, absl::Time now) {
  HttpExchange* const exchange = connection->exchange.get();
  // The bell may have rung for a request that was answered before.
  if (exchange == nullptr) return;
  HttpExchange::Piece piece = exchange->Take();
  if (piece.status == 0 || (piece.bytes.empty() && !piece.ended)) return;
  if (piece.begun && !piece.ended && !std::exchange(connection->streams, true) &&
      HasTooManyStreams(connection->network)) {
    return Refuse(
        connection,
        errors::ErrorOf(errors::Failure::kOverloaded,
                        absl::StrCat("this address has ", options_.limits.streams_per_address,
                                     " streams: end one of them first")),
        Then::kClose, now);
  }
  Then then = Then::kMore;
  if (piece.ended) {
    then = exchange->keep_open() && !piece.cut ? Then::kNext : Then::kClose;
    if (connection->drains) then = Then::kDrain;
  }
  if (connection->http->state() != State::kWriting) {
    connection->deadline = now + options_.limits.answer;
  }
  connection->http->Send(std::move(piece.bytes), then);
}

void HttpFront::Refuse(Connection* connection, const absl::Status& why, Then then, absl::Time now) {
  connection->http->Send(options_.refuse(why), then);
  connection->deadline = now + options_.limits.answer;
  connection->streams = false;
  const auto exchange = std::exchange(connection->exchange, nullptr);
  if (exchange == nullptr) return;
  exchange->Close();
  if (options_.count != nullptr) {
    options_.count(exchange->route, errors::RowOf(why).http_status, now - connection->asked);
  }
}

void HttpFront::EndExchange(Connection* connection, absl::Time now) {
  connection->at_work = connection->streams = connection->drains = false;
  const auto exchange = std::exchange(connection->exchange, nullptr);
  if (exchange == nullptr) return;
  const HttpExchange::Piece last = exchange->Take();
  exchange->Close();
  if (options_.count == nullptr) return;
  const bool is_sent =
      last.ended && !last.cut && last.bytes.empty() && connection->http->unsent_bytes() == 0;
  options_.count(exchange->route, is_sent ? last.status : kClientHasGone, now - connection->asked);
}

void HttpFront::Work() {
  pthread_setname_np(pthread_self(), "http worker");
  for (;;) {
    std::shared_ptr<HttpExchange> request;
    {
      absl::MutexLock lock(&mutex_);
      const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return done_ || !requests_.empty();
      };
      mutex_.Await(absl::Condition(&any));
      if (requests_.empty()) return;
      request = std::move(requests_.front());
      requests_.pop_front();
    }
    if (request->IsOpen()) options_.serve(request);  // Else nobody waits for it.
  }
}

}  // namespace tacho::server::http
