#include "tests/crash/plan.h"

#include <algorithm>
#include <bit>
#include <random>

#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"

namespace tacho::crash {
namespace {

using storage::kNoStep;

double DrawValue(std::mt19937_64* random) {
  switch ((*random)() % 12) {
    case 0:
      return std::bit_cast<double>(0x7ff8000000000000 | (*random)() % 0xffff);  // NaN, a payload.
    case 1:
      return -0.0;
    case 2:
      return std::bit_cast<double>((*random)() % 1000);  // Denormal.
    case 3:
      return std::bit_cast<double>(0x7ff0000000000000);
    case 4:
      return StaleMarker();
    case 5:
      return std::bit_cast<double>((*random)());
    default:
      return static_cast<double>((*random)() % 100'000) / 100;
  }
}

// A layout is a set of metrics. Two layouts that share a metric write at times of their own,
// because which of two frames is later is only known within a layout.
struct Shape {
  std::vector<uint32_t> metrics;
  bool has_steps;
};
const Shape kShapes[] = {{{0, 1}, true}, {{1, 2, 3}, true}, {{4}, false}, {{5, 1, 0, 2}, true}};

void FillRows(uint32_t agent, uint64_t sequence, std::mt19937_64* random, Message* message) {
  const size_t which = (*random)() % std::size(kShapes);
  const Shape& shape = kShapes[which];
  message->metrics = shape.metrics;
  auto& definition = message->definition;
  definition.source = {JobName(agent), agent, static_cast<uint32_t>(sequence / 40 % 3),
                       absl::StrCat("host-", agent)};
  definition.has_steps = shape.has_steps;
  for (const uint32_t metric : shape.metrics) {
    definition.series.push_back(
        {{MetricName(metric), storage::MetricType::kGauge, "1", "help"}, {{"l", "v"}}});
  }
  const size_t rows = 1 + (*random)() % 6;
  for (size_t row = 0; row < rows; ++row) {
    auto at = static_cast<int64_t>(sequence + row);
    if ((*random)() % 4 == 0) at -= static_cast<int64_t>((*random)() % 12);  // Out of order.
    at = std::max<int64_t>(at, 0);
    message->times.push_back(kBeginNs + at * kGridNs + static_cast<int64_t>(which));
    if (shape.has_steps) message->steps.push_back(at % 7 == 0 ? kNoStep : at);
    for (size_t column = 0; column < shape.metrics.size(); ++column) {
      message->values.push_back(DrawValue(random));
    }
  }
}

}  // namespace

std::string AgentName(uint32_t agent) { return absl::StrCat("agent-", agent); }
std::string JobName(uint32_t agent) { return absl::StrCat("job-", agent % 2); }
std::string MetricName(uint32_t metric) { return absl::StrCat("metric_", metric); }

Message MakeMessage(uint64_t seed, uint32_t agent, uint64_t sequence, bool altered) {
  std::seed_seq mixed{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), agent,
                      static_cast<uint32_t>(sequence), altered ? 1u : 0u};
  std::mt19937_64 random(mixed);
  Message message;
  const uint64_t kind = sequence % 64 == 61 ? 100 : random() % 100;
  if (kind == 100) {
    message.kind = Message::Kind::kGap;
    message.lost = {sequence + 1, sequence + 2};
  } else if (kind < 6) {
    message.kind = Message::Kind::kEvent;
    message.event.source = {JobName(agent), agent, 0, absl::StrCat("host-", agent)};
    message.event.time_ns = kBeginNs + static_cast<int64_t>(sequence) * kGridNs;
    message.event.kind = "note";
    message.event.message = absl::StrCat(agent, "/", sequence, altered ? " altered" : "");
  } else if (kind < 10) {
    message.kind = Message::Kind::kAttributes;
    message.attributes.job = JobName(agent);
    message.attributes.attempt = static_cast<uint32_t>(sequence % 2);
    message.attributes.values[AgentName(agent)] =
        random() % 8 == 0 ? "" : absl::StrCat(sequence, altered ? " altered" : "");
  } else {
    FillRows(agent, sequence, &random, &message);
  }
  return message;
}

}  // namespace tacho::crash
