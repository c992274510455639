#include "tests/bench/agents/fleet.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/load_report.h"

namespace tacho::bench {
namespace {

constexpr char kMethod[] = "/tacho.v1.Ingest/Stream";
constexpr double kWelcomeTimeoutS = 30;
constexpr size_t kTrickleBytes = 16;
constexpr double kTrickleEveryS = 0.05;
constexpr uint32_t kNoAgent = 0xffffffff;
// Rows that fall due within a millisecond are sent together: a wake-up each would cost more.
constexpr double kQuantumS = 0.001;

// What no retry mends.
bool IsFinal(int code) {
  constexpr int kInvalidArgument = 3, kPermissionDenied = 7, kUnimplemented = 12;
  constexpr int kUnauthenticated = 16;
  return code == kInvalidArgument || code == kPermissionDenied || code == kUnimplemented ||
         code == kUnauthenticated;
}

}  // namespace

Fleet::Fleet(FleetOptionsOfRun options, const PeerAddress& peer, Emit emit)
    : options_(std::move(options)),
      peer_(peer),
      emit_(std::move(emit)),
      opening_(OpenCall(options_.address, kMethod, options_.token)),
      rows_(options_.shape),
      random_(options_.seed),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      agents_(options_.agents),
      last_loop_(MonotonicSeconds()) {
  for (Agent& agent : agents_) agent.sent_at.resize(options_.window);
}

Fleet::~Fleet() {
  for (const Agent& agent : agents_) {
    if (agent.fd >= 0) close(agent.fd);
  }
  for (const int fd : abandoned_) close(fd);
  close(epoll_);
}

double Fleet::Now() const { return MonotonicSeconds(); }

void Fleet::After(double seconds, Agent* agent, TimerKind kind) {
  timers_.Add({Now() + seconds, IndexOf(*agent), agent->connection, kind});
}

void Fleet::Connect() {
  double delay = 0;
  for (Agent& agent : agents_) {
    After(delay, &agent, TimerKind::kConnect);
    delay += 1 / options_.connect_rate;
  }
}

void Fleet::Open(Agent* agent) {
  ++agent->connection;
  ++stats_.connects;
  const auto fd = BeginConnect(peer_, IndexOf(*agent));
  if (!fd.ok()) return Lose(agent, std::string(fd.status().message()));
  agent->fd = *fd;
  agent->state = State::kConnecting;
  agent->call = Http2Call();
  agent->out.clear();
  agent->watches_write = true;
  agent->watches_read = true;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT;
  event.data.u32 = IndexOf(*agent);
  epoll_ctl(epoll_, EPOLL_CTL_ADD, agent->fd, &event);
  After(kWelcomeTimeoutS, agent, TimerKind::kWelcomeTimeout);
}

void Fleet::Close(Agent* agent, const std::string& why) {
  if (agent->fd >= 0) close(agent->fd);
  agent->fd = -1;
  agent->state = State::kAway;
  agent->send_timer = false;
  agent->trickle_timer = false;
  std::string().swap(agent->out);
  agent->call = Http2Call();
  ++agent->connection;
  ++stats_.ends[why];
}

void Fleet::ComeBack(Agent* agent, std::optional<double> retry_after_s) {
  const auto max = static_cast<float>(options_.backoff_max_s);
  if (agent->backoff_s == 0) agent->backoff_s = static_cast<float>(options_.backoff_min_s);
  double pause = agent->backoff_s * (0.5 + 0.5 * random_.Uniform());
  agent->backoff_s = std::min(2 * agent->backoff_s, max);
  if (retry_after_s.has_value()) {
    pause = std::max(pause, *retry_after_s * (1 + 0.5 * random_.Uniform()));
  }
  After(pause, agent, TimerKind::kConnect);
}

void Fleet::Lose(Agent* agent, const std::string& why) {
  Close(agent, why);
  ComeBack(agent, std::nullopt);
}

void Fleet::OnWritable(Agent* agent) {
  if (agent->state != State::kConnecting) return Flush(agent);
  if (const int error = ConnectError(agent->fd); error != 0) {
    return Lose(agent, std::strerror(error));
  }
  agent->state = State::kAwaitingWelcome;
  agent->out = opening_;
  const uint64_t first = verifying_ ? 1 : agent->durable + 1;
  agent->call.Send(rows_.Hello(IndexOf(*agent), first), &agent->out);
  Flush(agent);
}

void Fleet::OnReadable(Agent* agent) {
  static thread_local std::array<char, 1 << 16> buffer;
  const ssize_t size = read(agent->fd, buffer.data(), buffer.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size < 0) return Lose(agent, std::strerror(errno));
  if (size == 0) return Lose(agent, "closed by the collector");
  std::optional<CallEnd> end;
  const Http2Call::Handler handler = {
      [this, agent](absl::string_view message) { OnMessage(agent, message); },
      [&end](const CallEnd& ended) { end = ended; }};
  const absl::Status status = agent->call.Receive(
      absl::string_view(buffer.data(), static_cast<size_t>(size)), handler, &agent->out);
  if (end.has_value()) return OnEnd(agent, *end);
  if (!status.ok()) return Lose(agent, std::string(status.message()));
  if (agent->checked) return Close(agent, "verified");
  if (agent->state == State::kWelcomed) SendDue(agent);
  Flush(agent);
}

void Fleet::OnEnd(Agent* agent, const CallEnd& end) {
  if (IsFinal(end.code)) {
    status_ = absl::FailedPreconditionError(
        absl::StrCat("the collector refuses ", rows_.AgentId(IndexOf(*agent)), " with code ",
                     end.code, ": ", end.message));
  }
  Close(agent, absl::StrCat("code ", end.code, ": ", end.message));
  std::optional<double> retry_after_s;
  if (end.retry_after.has_value()) retry_after_s = absl::ToDoubleSeconds(*end.retry_after);
  ComeBack(agent, retry_after_s);
}

void Fleet::Flush(Agent* agent) {
  if (agent->fd < 0 || agent->state == State::kConnecting || agent->out.empty()) return;
  const bool trickle = agent->trouble == Trouble::kTrickle;
  const size_t size = trickle ? std::min(kTrickleBytes, agent->out.size()) : agent->out.size();
  if (trickle && agent->trickle_timer) return;
  const ssize_t written = send(agent->fd, agent->out.data(), size, MSG_NOSIGNAL);
  if (written < 0 && errno != EAGAIN && errno != EINTR) return Lose(agent, std::strerror(errno));
  if (written > 0) agent->out.erase(0, static_cast<size_t>(written));
  if (agent->out.empty()) std::string().swap(agent->out);
  if (trickle && !agent->out.empty()) {
    agent->trickle_timer = true;
    After(kTrickleEveryS, agent, TimerKind::kTrickle);
  }
  Watch(agent);
}

void Fleet::Watch(Agent* agent) {
  if (agent->fd < 0) return;
  const bool write = agent->state == State::kConnecting ||
                     (!agent->out.empty() && agent->trouble != Trouble::kTrickle);
  const bool read = agent->trouble != Trouble::kPause;
  if (write == agent->watches_write && read == agent->watches_read) return;
  agent->watches_write = write;
  agent->watches_read = read;
  epoll_event event{};
  event.events = (read ? EPOLLIN : 0u) | (write ? EPOLLOUT : 0u);
  event.data.u32 = IndexOf(*agent);
  epoll_ctl(epoll_, EPOLL_CTL_MOD, agent->fd, &event);
}

void Fleet::OnTimer(const Timer& timer) {
  Agent* agent = &agents_[timer.agent];
  if (timer.kind == TimerKind::kCalmAgain) {  // Whatever connection it has by now.
    agent->trouble = Trouble::kNone;
    Watch(agent);
    Flush(agent);
    if (agent->state == State::kWelcomed) SendDue(agent);
    return Flush(agent);
  }
  if (timer.connection != agent->connection) return;
  switch (timer.kind) {
    case TimerKind::kConnect:
      if (agent->fd >= 0) Close(agent, "to verify");
      return Open(agent);
    case TimerKind::kWelcomeTimeout:
      if (agent->state == State::kWelcomed) return;
      return Lose(agent, "no Welcome in 30 s");
    case TimerKind::kSend:
      agent->send_timer = false;
      if (agent->state == State::kWelcomed) SendDue(agent);
      return Flush(agent);
    case TimerKind::kTrickle:
      agent->trickle_timer = false;
      return Flush(agent);
    case TimerKind::kCalmAgain:
      return;
  }
}

void Fleet::Disconnect() {
  for (Agent& agent : agents_) {
    if (agent.fd >= 0) Close(&agent, "disconnected");
    ++agent.connection;  // So that no timer brings it back.
  }
}

std::vector<uint32_t> Fleet::Choose(double share) {
  std::vector<uint32_t> all(agents_.size());
  std::iota(all.begin(), all.end(), 0);
  const auto count =
      static_cast<size_t>(std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(all.size())));
  for (size_t i = 0; i < count; ++i) {
    std::swap(all[i], all[i + random_.Next() % (all.size() - i)]);
  }
  all.resize(count);
  return all;
}

void Fleet::Cut(double share) {
  for (const uint32_t index : Choose(share)) {
    if (agents_[index].fd >= 0) Lose(&agents_[index], "cut by the script");
  }
}

void Fleet::Abandon(double share) {
  for (const uint32_t index : Choose(share)) {
    Agent* agent = &agents_[index];
    if (agent->fd < 0) continue;
    epoll_ctl(epoll_, EPOLL_CTL_DEL, agent->fd, nullptr);
    abandoned_.push_back(std::exchange(agent->fd, -1));
    Lose(agent, "abandoned by the script");
  }
}

void Fleet::Make(Trouble trouble, double share, double seconds) {
  for (const uint32_t index : Choose(share)) {
    Agent* agent = &agents_[index];
    agent->trouble = trouble;
    Watch(agent);
    After(seconds, agent, TimerKind::kCalmAgain);
  }
}

void Fleet::RunOnce(double until, int wake_fd) {
  if (wake_fd != watched_wake_fd_) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = kNoAgent;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_fd, &event);
    watched_wake_fd_ = wake_fd;
  }
  const double now = Now();
  double next = std::min({until, timers_.next(), next_look_});
  if (started_at_ > 0 && !stopping_) next = std::min(next, DueOfFleet(fallen_due_));
  const double wait_s = std::clamp(next - now, kQuantumS, 1.0);
  std::array<epoll_event, 256> events;
  const double before = Now();
  const int count =
      epoll_wait(epoll_, events.data(), events.size(), static_cast<int>(std::ceil(1e3 * wait_s)));
  stats_.lateness_s = std::max(stats_.lateness_s, before - last_loop_);
  second_stats_.lateness_s = std::max(second_stats_.lateness_s, before - last_loop_);
  last_loop_ = Now();
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u32 == kNoAgent) continue;
    Agent* agent = &agents_[events[i].data.u32];
    if (agent->fd >= 0 && (events[i].events & EPOLLOUT) != 0) OnWritable(agent);
    if (agent->fd >= 0 && (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) {
      OnReadable(agent);
    }
  }
  while (timers_.next() <= last_loop_) OnTimer(timers_.Take());
  if (started_at_ > 0 && !stopping_) LetRowsFallDue();
  LookForRecovery();
  TellSecond();
}

}  // namespace tacho::bench
