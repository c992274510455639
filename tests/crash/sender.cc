#include "tests/crash/sender.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/crash/plan.h"

namespace tacho::crash {

using storage::SequenceSet;

Sender::Sender(storage::Store* store, Options options)
    : store_(store),
      options_(std::move(options)),
      random_(options_.seed * 1'000'003 + options_.life) {
  for (uint32_t agent = 0; agent < kAgents; ++agent) {
    const SequenceSet set = store_->DurableSequences(AgentName(agent), kGeneration);
    newest_[agent] = set.ahead().empty() ? set.watermark() : set.ahead().back().last;
  }
}

void Sender::AwaitAnswers() {
  absl::MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return unanswered_ == 0; };
  mutex_.Await(absl::Condition(&none));
}

uint64_t Sender::PickSequence(uint32_t agent, bool* altered) {
  const SequenceSet durable = store_->DurableSequences(AgentName(agent), kGeneration);
  if (durable.watermark() > 0 && random_() % 16 == 0) {
    *altered = true;
    const uint64_t back = random_() % std::min<uint64_t>(durable.watermark(), 100);
    return durable.watermark() - back;
  }
  uint64_t sequence = durable.watermark() + 1;
  if (random_() % 12 == 0) sequence = newest_[agent] + 1 + random_() % 4;  // Ahead of a backlog.
  absl::MutexLock lock(&mutex_);
  // The two behind a gap are what it says is lost.
  while (durable.Contains(sequence) || in_flight_.contains({agent, sequence}) ||
         sequence % 64 == 62 || sequence % 64 == 63) {
    ++sequence;
  }
  return sequence;
}

uint64_t Sender::SendOne() {
  {
    absl::MutexLock lock(&mutex_);
    const auto room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return in_flight_.size() < options_.window;
    };
    mutex_.Await(absl::Condition(&room));
  }
  // Agents stay near each other, so that days pass for all alike.
  auto agent = static_cast<uint32_t>(random_() % kAgents);
  if (random_() % 2 == 0) {
    agent = static_cast<uint32_t>(std::min_element(newest_, newest_ + kAgents) - newest_);
  }
  bool altered = false;
  const uint64_t sequence = PickSequence(agent, &altered);
  newest_[agent] = std::max(newest_[agent], sequence);
  Send(agent, sequence, altered);
  return *std::max_element(newest_, newest_ + kAgents);
}

void Sender::Send(uint32_t agent, uint64_t sequence, bool altered) {
  const Message message = MakeMessage(options_.seed, agent, sequence, altered);
  storage::LayoutPtr layout;
  if (message.kind == Message::Kind::kRows) {
    const auto registered = store_->RegisterLayout(message.definition);
    if (absl::IsUnavailable(registered.status())) return;
    if (!registered.ok()) return options_.fail(registered.status());
    layout = registered->layout;
  }
  {
    absl::MutexLock lock(&mutex_);
    ++unanswered_;
    if (!altered) in_flight_.insert({agent, sequence});
  }
  options_.tell(Report::kSent, agent, sequence, altered);
  const storage::AppendDone done = [this, agent, sequence, altered](const absl::Status& status) {
    options_.tell(status.ok()                         ? Report::kStored
                  : absl::IsResourceExhausted(status) ? Report::kRefused
                  : absl::IsUnavailable(status)       ? Report::kUnsure
                                                      : Report::kRefused,
                  agent, sequence, altered);
    if (!status.ok() && !absl::IsResourceExhausted(status) && !absl::IsUnavailable(status)) {
      options_.fail(status);
    }
    absl::MutexLock lock(&mutex_);
    --unanswered_;
    if (!altered) in_flight_.erase({agent, sequence});
  };
  const storage::Origin origin{AgentName(agent), kGeneration, sequence};
  switch (message.kind) {
    case Message::Kind::kRows:
      return store_->AppendRows(origin, layout, {message.times, message.steps, message.values},
                                done);
    case Message::Kind::kEvent:
      return store_->AppendEvent(origin, message.event, done);
    case Message::Kind::kAttributes:
      return store_->AppendAttributes(origin, message.attributes, done);
    case Message::Kind::kGap:
      return store_->AppendGap(origin, message.lost, sequence, "lost", done);
  }
}

}  // namespace tacho::crash
