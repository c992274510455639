// Fleet's messages: what falls due, is sent, becomes durable.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tacho/v1/ingest.pb.h"
#include "tests/bench/agents/fleet.h"

namespace tacho::bench {
namespace {

constexpr double kLateS = 1;
constexpr double kLookEveryS = 0.02;
// More would only fill a buffer: the socket does not take it.
constexpr size_t kMaxOutBytes = 64 << 10;
// How many agents' messages "verified" names, for them to be looked up in the store.
constexpr size_t kAgentsTold = 10;

}  // namespace

double Fleet::DueOfFleet(uint64_t number) const {
  const double period = options_.shape.rows / (options_.shape.rate * options_.shape.layouts);
  return started_at_ + period * static_cast<double>(number) / static_cast<double>(agents_.size());
}

double Fleet::DueAt(uint32_t agent, uint64_t sequence) const {
  return DueOfFleet((sequence - 1) * agents_.size() + agent);
}

void Fleet::Start() {
  started_at_ = Now();
  if (!options_.as_fast_as_acknowledged) return;  // Each begins with its first row.
  for (Agent& agent : agents_) {
    if (agent.state != State::kWelcomed) continue;
    SendDue(&agent);
    Flush(&agent);
  }
}

void Fleet::Stop() {
  stopping_ = true;
  if (!options_.as_fast_as_acknowledged) return;
  for (Agent& agent : agents_) agent.due = agent.ever_sent;
}

void Fleet::LetRowsFallDue() {
  if (options_.idle || options_.as_fast_as_acknowledged) return;
  while (DueOfFleet(fallen_due_) <= last_loop_) {
    Agent* agent = &agents_[fallen_due_++ % agents_.size()];
    ++agent->due;
    if (agent->state != State::kWelcomed) continue;
    SendDue(agent);
    Flush(agent);
  }
}

void Fleet::SendDue(Agent* agent) {
  if (options_.idle || started_at_ == 0 || verifying_) return;
  if (!agent->layouts_sent) {
    agent->layouts_sent = true;
    for (uint32_t i = 0; i < options_.shape.layouts; ++i) {
      agent->call.Send(rows_.Layout(IndexOf(*agent), i), &agent->out);
    }
  }
  while (agent->trouble != Trouble::kSilence && agent->sent - agent->durable < options_.window &&
         agent->call.unsent() == 0 && agent->out.size() < kMaxOutBytes) {
    const bool fast = options_.as_fast_as_acknowledged && !stopping_;
    if (!fast && agent->sent >= agent->due) return;
    // The newest is no backlog, whenever it comes.
    const bool behind = !fast && agent->due - agent->sent > 1;
    if (behind && Now() < agent->next_send) {
      if (!agent->send_timer) After(agent->next_send - Now(), agent, TimerKind::kSend);
      agent->send_timer = true;
      return;
    }
    SendBatch(agent);
    if (behind) {
      // In addition to the rows that fall due meanwhile.
      const double fresh = options_.shape.rate * options_.shape.layouts;
      const double gap = options_.shape.rows / (fresh + options_.backlog_rate);
      agent->next_send = std::max(agent->next_send + gap, Now() - gap);
    }
  }
}

void Fleet::SendBatch(Agent* agent) {
  const uint32_t index = IndexOf(*agent);
  const uint64_t sequence = ++agent->sent;
  const double now = Now();
  agent->call.Send(rows_.Batch(index, sequence), &agent->out);
  agent->sent_at[sequence % options_.window] = static_cast<float>(now - started_at_);
  if (sequence <= agent->ever_sent) {
    stats_.rows_resent += options_.shape.rows;
    return;
  }
  agent->ever_sent = sequence;
  stats_.rows_sent += options_.shape.rows;
  if (options_.as_fast_as_acknowledged) return;
  if (now > DueAt(index, sequence) + kLateS) stats_.rows_late += options_.shape.rows;
}

void Fleet::OnMessage(Agent* agent, absl::string_view bytes) {
  v1::ServerMessage message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    status_ = absl::InternalError("the collector sent something that is no tacho.v1.ServerMessage");
    return;
  }
  if (message.has_welcome()) OnWelcome(agent, message.welcome().durable_sequence());
  if (!message.has_ack()) return;
  ++stats_.acks;
  for (const v1::Reject& reject : message.ack().rejects()) {
    stats_.samples_rejected += reject.samples();
  }
  OnDurable(agent, message.ack().durable_sequence());
}

void Fleet::OnWelcome(Agent* agent, uint64_t durable) {
  agent->state = State::kWelcomed;
  agent->backoff_s = 0;
  agent->layouts_sent = false;
  if (verifying_) return CheckDurable(agent, durable);
  if (durable > agent->ever_sent) {
    status_ = absl::InternalError(absl::StrCat("the collector calls sequence ", durable, " of ",
                                               rows_.AgentId(IndexOf(*agent)),
                                               " durable, which was never sent"));
    return;
  }
  // What became durable while its acknowledgement was lost has no time of its own.
  if (durable > agent->durable) {
    stats_.rows_acknowledged += (durable - agent->durable) * options_.shape.rows;
    agent->durable = durable;
  }
  if (durable < agent->durable) {
    status_ = absl::DataLossError(
        absl::StrCat(rows_.AgentId(IndexOf(*agent)), ": sequences up to ", agent->durable,
                     " were acknowledged as durable, and Welcome says ", durable));
  }
  agent->sent = agent->durable;
}

void Fleet::OnDurable(Agent* agent, uint64_t durable) {
  const double now = Now();
  if (durable > agent->sent) {
    status_ = absl::InternalError("the collector acknowledged a sequence that was never sent");
    return;
  }
  while (agent->durable < durable) {
    const uint64_t sequence = ++agent->durable;
    stats_.rows_acknowledged += options_.shape.rows;
    const double sent_at = started_at_ + agent->sent_at[sequence % options_.window];
    stats_.acknowledged_after.Add(now - sent_at);
    second_stats_.acknowledged_after.Add(now - sent_at);
    if (!options_.as_fast_as_acknowledged) {
      stats_.durable_after.Add(now - DueAt(IndexOf(*agent), sequence));
    }
  }
}

void Fleet::LookForRecovery() {
  if (last_loop_ < next_look_) return;
  next_look_ = last_loop_ + kLookEveryS;
  const double per_second =
      options_.shape.rate * options_.shape.layouts / options_.shape.rows * kLateS;
  const auto usual = static_cast<uint64_t>(std::ceil(per_second)) + 1;
  bool whole = true, up_to_date = true, drained = true;
  for (const Agent& agent : agents_) {
    whole = whole && agent.state == State::kWelcomed;
    up_to_date = up_to_date && agent.due <= agent.durable + usual;
    drained = drained && agent.durable >= agent.due && agent.sent == agent.durable;
  }
  up_to_date = up_to_date && whole;
  if (!verifying_ && whole != was_whole_) emit_(whole ? "all_welcomed" : "some_lost", "");
  if (!verifying_ && up_to_date && !was_up_to_date_) emit_("up_to_date", "");
  was_whole_ = whole;
  was_up_to_date_ = up_to_date;
  if (stopping_ && drained && !drained_) {
    drained_ = true;
    emit_("drained", "");
  }
}

void Fleet::TellSecond() {
  if (started_at_ == 0 || drained_) return;
  if (last_loop_ < started_at_ + static_cast<double>(seconds_told_ + 1)) return;
  emit_("second", ToJsonMembers(second_stats_, seconds_told_));
  second_stats_ = SecondStats();
  // If several went by in one pause of this loop, the first has everything.
  seconds_told_ = static_cast<uint64_t>(last_loop_ - started_at_);
}

void Fleet::Verify() {
  verifying_ = true;
  for (Agent& agent : agents_) ++agent.connection;  // Nothing that was set before holds.
  Connect();
}

void Fleet::CheckDurable(Agent* agent, uint64_t durable) {
  agent->checked = true;
  ++verified_;
  if (durable != agent->ever_sent && wrong_++ == 0) {
    first_wrong_ = absl::StrCat(rows_.AgentId(IndexOf(*agent)), " sent ", agent->ever_sent,
                                " messages, of which ", durable, " are durable");
  }
  if (verified_ < agents_.size()) return;
  std::string sent;
  const size_t stride = std::max<size_t>(1, agents_.size() / kAgentsTold);
  for (size_t i = 0; i < agents_.size(); i += stride) {
    absl::StrAppend(&sent, sent.empty() ? "" : ", ", "[", i, ", ", agents_[i].ever_sent, "]");
  }
  emit_("verified",
        absl::StrFormat("\"right\": %d, \"wrong\": %d, \"first_wrong\": %s, \"sent\": [%s]",
                        verified_ - wrong_, wrong_, JsonText(first_wrong_), sent));
}

FleetState Fleet::Count() const {
  FleetState state;
  for (const Agent& agent : agents_) {
    if (agent.fd >= 0 && agent.state != State::kConnecting) ++state.connected;
    if (agent.state == State::kWelcomed) ++state.welcomed;
    if (agent.due > agent.durable) {
      state.rows_outstanding += (agent.due - agent.durable) * options_.shape.rows;
    }
  }
  return state;
}

void Fleet::Mark(const std::string& name) {
  emit_("mark", absl::StrCat("\"name\": ", JsonText(name), ", ", ToJsonMembers(stats_, Count())));
  stats_ = FleetStats();
}

}  // namespace tacho::bench
