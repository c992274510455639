#include "tests/crash/model.h"

#include <algorithm>
#include <bit>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"
#include "tests/crash/plan.h"

namespace tacho::crash {

void Model::Sent(uint32_t agent, uint64_t sequence, bool altered) {
  pending_.push_back({agent, sequence, altered, ++sent_});
}

uint64_t Model::Forget(uint32_t agent, uint64_t sequence, bool altered) {
  // The newest try: an earlier one that the disk refused stays until it is settled.
  for (size_t i = pending_.size(); i-- > 0;) {
    const Pending& p = pending_[i];
    if (p.agent != agent || p.sequence != sequence || p.altered != altered || p.unsure) continue;
    const uint64_t order = p.order;
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    return order;
  }
  return ++sent_;
}

void Model::Refused(uint32_t agent, uint64_t sequence, bool altered) {
  Forget(agent, sequence, altered);
}

void Model::Unsure(uint32_t agent, uint64_t sequence, bool altered) {
  for (Pending& p : pending_) {
    if (p.agent == agent && p.sequence == sequence && p.altered == altered) p.unsure = true;
  }
}

void Model::DiskResumed() {
  std::erase_if(pending_, [](const Pending& p) { return p.unsure; });
}

void Model::Stored(uint32_t agent, uint64_t sequence, bool altered) {
  const uint64_t order = Forget(agent, sequence, altered);
  if (expected_.durable[AgentName(agent)].Contains(sequence)) return;  // A repeat.
  ++stored_;
  samples_stored_ += Commit(agent, sequence, altered, order);
}

uint64_t Model::Commit(uint32_t agent, uint64_t sequence, bool altered, uint64_t order) {
  const Message message = MakeMessage(seed_, agent, sequence, altered);
  auto& durable = expected_.durable[AgentName(agent)];
  durable.Add(sequence);
  uint64_t samples = 0;
  switch (message.kind) {
    case Message::Kind::kRows:
      for (size_t row = 0; row < message.times.size(); ++row) {
        for (size_t column = 0; column < message.metrics.size(); ++column) {
          const auto bits =
              std::bit_cast<uint64_t>(message.values[row * message.metrics.size() + column]);
          if (bits == kStaleMarkerBits) continue;
          ++samples;
          const std::string name =
              absl::StrCat(JobName(agent), "/", MetricName(message.metrics[column]), "/", agent);
          const int64_t step = message.steps.empty() ? storage::kNoStep : message.steps[row];
          const Contents::Place place = {message.times[row], message.definition.source.attempt,
                                         step};
          uint64_t& written = sample_orders_[name][place];
          if (order < written) continue;
          written = order;
          expected_.series[name][place] = bits;
        }
      }
      break;
    case Message::Kind::kEvent:
      expected_.events.emplace(
          absl::StrCat(JobName(agent), "|host-", agent, "|note|", message.event.message),
          message.event.time_ns);
      break;
    case Message::Kind::kAttributes: {
      const std::string name =
          absl::StrCat(message.attributes.job, "/", message.attributes.attempt);
      for (const auto& [key, value] : message.attributes.values) {
        uint64_t& written = attribute_orders_[absl::StrCat(name, "/", key)];
        if (order < written) continue;
        written = order;
        if (value.empty()) {
          expected_.attributes[name].erase(key);
        } else {
          expected_.attributes[name][key] = value;
        }
      }
      if (expected_.attributes[name].empty()) expected_.attributes.erase(name);
      break;
    }
    case Message::Kind::kGap:
      durable.Add(message.lost);
      expected_.events.emplace(
          absl::StrCat("|", AgentName(agent), "|data_lost|lost|first_sequence=", message.lost.first,
                       "|last_sequence=", message.lost.last, "|rows=", sequence),
          0);
      break;
  }
  return samples;
}

void Model::CutOff(int64_t time_ns) { cutoff_ns_ = std::max(cutoff_ns_, time_ns); }

void Model::DropBefore(int64_t time_ns, Contents* contents) {
  if (time_ns == INT64_MIN) return;
  for (auto& [name, samples] : contents->series) {
    samples.erase(samples.begin(), samples.lower_bound({time_ns, 0, INT64_MIN}));
  }
  std::erase_if(contents->series, [](const auto& entry) { return entry.second.empty(); });
  // Gaps are filed under the time at which they came, which nobody here knows.
  std::erase_if(contents->events, [&](const auto& event) {
    return event.second < time_ns || absl::StrContains(event.first, "|data_lost|");
  });
}

uint64_t Model::samples() const {
  uint64_t count = 0;
  for (const auto& [name, samples] : expected_.series) count += samples.size();
  return count;
}

std::string Model::Check(Contents found) {
  std::string out;
  for (uint32_t agent = 0; agent < kAgents; ++agent) {
    const std::string name = AgentName(agent);
    expected_.durable.try_emplace(name);
    found.durable.try_emplace(name);
  }
  for (const Pending& p : pending_) {
    const std::string name = AgentName(p.agent);
    if (expected_.durable[name].Contains(p.sequence)) continue;
    if (found.durable[name].Contains(p.sequence)) {
      ++unanswered_found_;
      Commit(p.agent, p.sequence, p.altered, p.order);
    } else {
      ++unanswered_absent_;
    }
  }
  pending_.clear();
  DropBefore(cutoff_ns_, &expected_);
  DropBefore(cutoff_ns_, &found);
  out = Compare(expected_, found);
  samples_checked_ += samples();
  return out;
}

}  // namespace tacho::crash
