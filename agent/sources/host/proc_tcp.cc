// /proc/net/snmp and /proc/net/netstat: pairs of lines, one with names and one with their values.
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "agent/sources/host/host_parsers.h"
#include "agent/sources/host/host_text.h"

namespace tacho::agent {
namespace {

constexpr std::array<KeyedMetric, 6> kTcp = {{
    {"RetransSegs",
     {"host_tcp_retransmitted_segments_total", kCounterType, "1", "Segments sent again."}},
    {"OutSegs",
     {"host_tcp_sent_segments_total", kCounterType, "1", "Segments sent, but for those."}},
    {"InErrs", {"host_tcp_receive_errors_total", kCounterType, "1", "Bad segments received."}},
    {"OutRsts", {"host_tcp_resets_sent_total", kCounterType, "1", "Segments sent with RST."}},
    {"AttemptFails",
     {"host_tcp_failed_connects_total", kCounterType, "1", "Connections not made."}},
    {"CurrEstab", {"host_tcp_connections", kGaugeType, "1", "Connections that are open."}},
}};
constexpr std::array<KeyedMetric, 4> kTcpExt = {{
    {"TCPTimeouts", {"host_tcp_timeouts_total", kCounterType, "1", "Timeouts of retransmission."}},
    {"TCPLostRetransmit",
     {"host_tcp_lost_retransmissions_total", kCounterType, "1",
      "Segments sent again that got lost."}},
    {"ListenDrops",
     {"host_tcp_listen_drops_total", kCounterType, "1", "Connections refused for full queues."}},
    {"TCPRcvQDrop",
     {"host_tcp_receive_queue_drops_total", kCounterType, "1",
      "Segments dropped for want of room."}},
}};

// "Tcp: A B C" followed by "Tcp: 1 2 3".
bool ParsePairs(absl::string_view text, absl::string_view protocol, const KeyedMetrics& metrics,
                Sample* out) {
  std::vector<absl::string_view> names;
  bool understood = false;
  for (absl::string_view line : Lines(text)) {
    std::vector<absl::string_view> words = Words(line);
    if (words.empty() || words[0] != protocol) continue;
    if (names.empty()) {
      names = std::move(words);
      continue;
    }
    for (size_t i = 1; i < names.size() && i < words.size(); ++i) {
      for (const KeyedMetric* keyed = metrics.begin; keyed != metrics.end; ++keyed) {
        if (keyed->key != names[i]) continue;
        const std::optional<double> value = Number(words[i]);
        if (!value) continue;
        out->Add(keyed->metric, *value);
        understood = true;
      }
    }
    break;
  }
  return understood;
}

}  // namespace

bool ParseNetSnmp(absl::string_view text, Sample* out) {
  return ParsePairs(text, "Tcp:", {kTcp.begin(), kTcp.end()}, out);
}

bool ParseNetNetstat(absl::string_view text, Sample* out) {
  return ParsePairs(text, "TcpExt:", {kTcpExt.begin(), kTcpExt.end()}, out);
}

}  // namespace tacho::agent
