// Any number of agents, each on a connection of its own, on one thread and one epoll.
//
// An agent says Hello, waits for Welcome, defines its layouts and sends a message whenever one is
// due, at most `window` of them unacknowledged. When its connection ends, for whatever reason, it
// comes back as tacho-agent does: after a jittered pause that doubles, or what RetryInfo asks for,
// and sends again what was not durable. Rows go on falling due while it is away.
//
// Lines of JSON tell what happens: see `Emit`. Times in them are of the monotonic clock.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tests/bench/agents/fleet_stats.h"
#include "tests/bench/agents/http2_call.h"
#include "tests/bench/agents/row_source.h"
#include "tests/bench/agents/socket.h"
#include "tests/bench/agents/timers.h"
#include "tests/bench/fleet_generator.h"

namespace tacho::bench {

struct FleetOptionsOfRun {
  std::string address;
  std::string token;
  uint32_t agents = 200;
  RowShape shape;
  bool as_fast_as_acknowledged = false;  // Else `shape.rate`.
  bool idle = false;                     // Connect and say Hello, no more.
  uint32_t window = 16;                  // Messages of an agent, sent and not yet acknowledged.
  double backlog_rate = 20;              // Rows a second of what an agent owes.
  double connect_rate = 1000;            // Connections a second, the first time.
  double backoff_min_s = 0.5;            // As tacho-agent's.
  double backoff_max_s = 30;
  uint64_t seed = 1;
};

// What agents can be made to do to a collector.
enum class Trouble : uint8_t {
  kNone,
  kPause,    // Does not read.
  kSilence,  // Does not send.
  kTrickle,  // Sends some bytes at a time.
};

// One thread at a time.
class Fleet {
 public:
  using Emit = std::function<void(const std::string& event, const std::string& json_members)>;

  Fleet(FleetOptionsOfRun options, const PeerAddress& peer, Emit emit);
  ~Fleet();

  // Begins to connect every agent.
  void Connect();
  // From now on rows fall due.
  void Start();
  // No more rows fall due. "drained" is emitted when the last is durable.
  void Stop();
  // Closes every connection; none comes back before Verify().
  void Disconnect();
  // Closes every connection and asks on a new one what is durable; "verified" reports how many
  // agents were answered rightly.
  void Verify();

  // Connections of a share of the agents (0 to 1) break: with a FIN, or unnoticed by the peer.
  void Cut(double share);
  void Abandon(double share);
  void Make(Trouble trouble, double share, double seconds);

  // Emits "mark" with what was counted since the last one.
  void Mark(const std::string& name);

  // Does what is due, and waits until something happens, or `until`, or `wake_fd` can be read.
  void RunOnce(double until, int wake_fd);
  // Not OK when going on makes no sense: the peer refuses for good.
  const absl::Status& status() const { return status_; }

 private:
  enum class State : uint8_t { kAway, kConnecting, kAwaitingWelcome, kWelcomed };

  struct Agent {
    int fd = -1;
    State state = State::kAway;
    Trouble trouble = Trouble::kNone;
    bool watches_write = false;  // As epoll knows it.
    bool watches_read = false;
    bool send_timer = false;
    bool trickle_timer = false;
    bool layouts_sent = false;
    bool checked = false;     // By Verify().
    uint32_t connection = 0;  // Counts.
    float backoff_s = 0;
    uint64_t due = 0;        // Messages.
    uint64_t sent = 0;       // On this connection, with what it resumed after.
    uint64_t ever_sent = 0;  // Highest.
    uint64_t durable = 0;    // Every sequence up to it.
    double next_send = 0;    // While behind.
    Http2Call call;
    std::string out;             // For the socket.
    std::vector<float> sent_at;  // Seconds since start, of sequence s at s % window.
  };

  uint32_t IndexOf(const Agent& agent) const {
    return static_cast<uint32_t>(&agent - agents_.data());
  }
  double Now() const;

  // fleet.cc: connections.
  void Open(Agent* agent);
  void Close(Agent* agent, const std::string& why);
  void ComeBack(Agent* agent, std::optional<double> retry_after_s);
  void Lose(Agent* agent, const std::string& why);
  void OnWritable(Agent* agent);
  void OnReadable(Agent* agent);
  void OnEnd(Agent* agent, const CallEnd& end);
  void Flush(Agent* agent);
  void Watch(Agent* agent);
  void OnTimer(const Timer& timer);
  void After(double seconds, Agent* agent, TimerKind kind);
  std::vector<uint32_t> Choose(double share);

  // fleet_rows.cc: messages.
  void OnMessage(Agent* agent, absl::string_view bytes);
  void OnWelcome(Agent* agent, uint64_t durable);
  void OnDurable(Agent* agent, uint64_t durable);
  void SendDue(Agent* agent);
  void SendBatch(Agent* agent);
  // When message `number` of the fleet falls due; they go round the agents.
  double DueOfFleet(uint64_t number) const;
  double DueAt(uint32_t agent, uint64_t sequence) const;
  void LetRowsFallDue();
  void LookForRecovery();
  // Emits "second" at the end of each, counted from Start().
  void TellSecond();
  void CheckDurable(Agent* agent, uint64_t durable);
  FleetState Count() const;

  const FleetOptionsOfRun options_;
  const PeerAddress peer_;
  const Emit emit_;
  const std::string opening_;
  RowSource rows_;
  Random random_;
  absl::Status status_;
  int epoll_ = -1;
  int watched_wake_fd_ = -1;
  std::vector<Agent> agents_;
  std::vector<int> abandoned_;
  Timers timers_;
  FleetStats stats_;
  SecondStats second_stats_;

  double started_at_ = 0;  // 0: no rows yet.
  bool stopping_ = false;
  bool drained_ = false;
  bool verifying_ = false;
  uint64_t fallen_due_ = 0;  // Messages of the whole fleet.
  double last_loop_ = 0;
  uint64_t seconds_told_ = 0;
  double next_look_ = 0;
  bool was_whole_ = false;       // Every agent welcomed.
  bool was_up_to_date_ = false;  // And nothing older than a second outstanding.
  uint32_t verified_ = 0;
  uint32_t wrong_ = 0;
  std::string first_wrong_;
};

}  // namespace tacho::bench
