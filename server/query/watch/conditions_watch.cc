// One pump serves all watches of conditions: changes are few, and a thread for each watch would
// cost more than they do.
#include "server/query/watch/conditions_watch.h"

#include <pthread.h>

#include <deque>
#include <utility>

#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"

namespace tacho::server::query {
namespace {

constexpr int kConditionsOfMessage = 256;
// Changes that wait for a client, besides its stream's queue and what there was when it began.
constexpr size_t kMaxWaiting = 65'536;

absl::Status TooSlow() {
  return absl::ResourceExhaustedError(
      "the client reads more slowly than conditions change: watch fewer, or watch again");
}

}  // namespace

struct ConditionWatches::Watch {
  Watch(ConditionFilter filter_in, security::RightsPtr rights_in,
        std::function<absl::Status()> recheck_in, std::shared_ptr<ConditionWatchStream> stream_in)
      : filter(std::move(filter_in)),
        rights(std::move(rights_in)),
        recheck(std::move(recheck_in)),
        stream(std::move(stream_in)) {}

  bool WantsJob(const std::string& job) const {
    return filter.WantsJob(job) && rights->MayTouch(job);
  }

  const ConditionFilter filter;
  const security::RightsPtr rights;
  const std::function<absl::Status()> recheck;
  const std::shared_ptr<ConditionWatchStream> stream;
  bool begun = false;
  bool told_live = false;
  uint64_t position = 0;  // On the board.
  size_t most_waiting = kMaxWaiting;
  std::deque<conditions::JudgedConditionPtr> waiting;
  absl::Time last_sent;
  absl::Time next_recheck;
  absl::Time ended;
};

ConditionWatches::ConditionWatches(ConditionWatchesOptions options)
    : options_(std::move(options)), bell_(std::make_shared<WatchBell>()) {
  if (options_.board != nullptr) {
    options_.board->SetListener([bell = bell_] { bell->Ring(); });
  }
}

ConditionWatches::~ConditionWatches() { Close(); }

void ConditionWatches::Begin(ConditionFilter filter, security::RightsPtr rights,
                             std::function<absl::Status()> recheck,
                             std::shared_ptr<ConditionWatchStream> stream) {
  auto watch =
      std::make_unique<Watch>(std::move(filter), std::move(rights), std::move(recheck), stream);
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_) {
      begun_.push_back(std::move(watch));
      if (!pump_.joinable()) pump_ = std::thread([this] { Run(); });
    }
  }
  if (watch != nullptr) return stream->End(errors::Draining());
  bell_->Ring();
}

void ConditionWatches::Close() {
  std::thread pump;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    pump.swap(pump_);
  }
  bell_->Ring();
  if (pump.joinable()) pump.join();
}

void ConditionWatches::Run() {
  pthread_setname_np(pthread_self(), "watches-cond");
  std::vector<std::unique_ptr<Watch>> watches;
  for (;;) {
    bool closing = false;
    {
      absl::MutexLock lock(&mutex_);
      closing = closed_;
      for (auto& watch : begun_) watches.push_back(std::move(watch));
      begun_.clear();
    }
    for (const auto& watch : watches) {
      if (closing) watch->stream->End(errors::Draining());
      if (watch->stream->ended()) continue;
      const absl::Status status = Serve(watch.get());
      if (!status.ok()) watch->stream->End(status);
    }
    if (closing) return;
    Clear(&watches);
    bell_->Wait(watches.empty() ? absl::InfiniteDuration() : kWatchTick);
  }
}

absl::Status ConditionWatches::Serve(Watch* watch) const {
  const absl::Time real = MonotonicNow();
  if (watch->recheck != nullptr && real >= watch->next_recheck) {
    watch->next_recheck = real + kWatchRecheck;
    TACHO_RETURN_IF_ERROR(watch->recheck());
  }
  TACHO_RETURN_IF_ERROR(TakeNews(watch));
  Send(watch);
  return watch->waiting.size() > watch->most_waiting ? TooSlow() : absl::OkStatus();
}

absl::Status ConditionWatches::TakeNews(Watch* watch) const {
  conditions::JobConditions news;
  if (!std::exchange(watch->begun, true)) {
    news = options_.board->All([&](const std::string& job) { return watch->WantsJob(job); },
                               &watch->position);
    watch->most_waiting += news.size();
  } else if (!options_.board->ChangesSince(&watch->position, &news).ok()) {
    return TooSlow();
  }
  for (conditions::JudgedConditionPtr& one : news) {
    if (watch->WantsJob(one->job) && watch->filter.Wants(*one)) {
      watch->waiting.push_back(std::move(one));
    }
  }
  return absl::OkStatus();
}

void ConditionWatches::Send(Watch* watch) const {
  const absl::Time now = MonotonicNow();
  const bool alive = now - watch->last_sent >= options_.alive_after;
  bool owes = !watch->told_live || alive;
  while ((owes || !watch->waiting.empty()) && watch->stream->HasRoom()) {
    v1::WatchConditionsResponse message;
    while (!watch->waiting.empty() && message.conditions_size() < kConditionsOfMessage) {
      FillCondition(*watch->waiting.front(), message.add_conditions());
      watch->waiting.pop_front();
    }
    if (watch->waiting.empty() && !watch->told_live) {
      message.set_live(true);
      watch->told_live = true;
    }
    message.set_clock_unix_ns(absl::ToUnixNanos(options_.now()));
    watch->last_sent = now;
    owes = !watch->told_live;
    watch->stream->Post(std::move(message));
  }
}

void ConditionWatches::Clear(std::vector<std::unique_ptr<Watch>>* watches) const {
  const absl::Time now = MonotonicNow();
  std::erase_if(*watches, [&](const std::unique_ptr<Watch>& watch) {
    if (!watch->stream->ended()) return false;
    if (watch->ended == absl::Time()) watch->ended = now;
    if (watch->stream->finished()) return true;
    if (now - watch->ended < kWatchGrace) return false;
    watch->stream->CutOff();
    return true;
  });
}

}  // namespace tacho::server::query
