// What the agents of the crash campaign send. Every message follows from (seed, agent, sequence),
// so the process that sends it and the one that checks it need exchange nothing but numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "storage/journal/sequence_set.h"
#include "storage/model/event.h"
#include "storage/model/series.h"

namespace tacho::crash {

inline constexpr uint32_t kAgents = 4;
inline constexpr uint64_t kGeneration = 7;
inline constexpr int64_t kBeginNs = 1'700'000'000'000'000'000;
// Rows lie on a grid this wide, so that days pass and times are written again.
inline constexpr int64_t kGridNs = int64_t{600} * 1'000'000'000;

std::string AgentName(uint32_t agent);
std::string JobName(uint32_t agent);
std::string MetricName(uint32_t metric);
inline constexpr uint32_t kMetrics = 6;

struct Message {
  enum class Kind { kRows, kEvent, kAttributes, kGap } kind = Kind::kRows;
  // kRows:
  storage::LayoutDefinition definition;
  std::vector<uint32_t> metrics;  // One a column.
  std::vector<int64_t> times;
  std::vector<int64_t> steps;  // Empty if the layout has none.
  std::vector<double> values;  // Row by row.
  // kEvent:
  storage::Event event;
  // kAttributes:
  storage::Attributes attributes;
  // kGap:
  storage::SequenceRange lost;
};

// `altered`: the same message with other contents, as a wrong agent might repeat it. It must never
// be stored if its sequence is durable.
Message MakeMessage(uint64_t seed, uint32_t agent, uint64_t sequence, bool altered);

}  // namespace tacho::crash
