#include "tests/bench/agents/fleet_stats.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tacho::bench {
namespace {

std::string LatencyMembers(const char* name, const Latencies& latencies) {
  return absl::StrFormat("\"%s_p50_ms\": %.3f, \"%s_p99_ms\": %.3f, \"%s_max_ms\": %.3f", name,
                         1e3 * latencies.Quantile(0.5), name, 1e3 * latencies.Quantile(0.99), name,
                         1e3 * latencies.max());
}

}  // namespace

std::string JsonText(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

std::string ToJsonMembers(const FleetStats& stats, const FleetState& state) {
  std::string members = absl::StrFormat(
      "\"rows_sent\": %d, \"rows_acknowledged\": %d, \"rows_resent\": %d, \"rows_late\": %d, "
      "\"samples_rejected\": %d, \"acks\": %d, \"connects\": %d, \"lateness_ms\": %.1f, "
      "\"connected\": %d, \"welcomed\": %d, \"rows_outstanding\": %d, ",
      stats.rows_sent, stats.rows_acknowledged, stats.rows_resent, stats.rows_late,
      stats.samples_rejected, stats.acks, stats.connects, 1e3 * stats.lateness_s, state.connected,
      state.welcomed, state.rows_outstanding);
  absl::StrAppend(&members, LatencyMembers("ack", stats.acknowledged_after), ", ",
                  LatencyMembers("durable", stats.durable_after), ", \"ends\": {");
  const char* separator = "";
  for (const auto& [why, count] : stats.ends) {
    absl::StrAppend(&members, separator, JsonText(why), ": ", count);
    separator = ", ";
  }
  return members + "}";
}

std::string ToJsonMembers(const SecondStats& stats, uint64_t second) {
  return absl::StrFormat("\"second\": %d, \"messages\": %d, \"lateness_ms\": %.1f, ", second,
                         stats.acknowledged_after.count(), 1e3 * stats.lateness_s) +
         LatencyMembers("ack", stats.acknowledged_after);
}

}  // namespace tacho::bench
