// A lane's messages on their way: sent on this stream, not known to be on the collector's disk.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/spool/spool.h"
#include "agent/stream/pace.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// One thread. It bounds what both sides hold in memory, and what is sent twice after a cut.
class SendWindow {
 public:
  // Enough for a gigabit link with 30 ms to the disk and back.
  static constexpr uint64_t kMaxBytes = 4u << 20;
  // Small messages cost the collector more than their bytes.
  static constexpr uint64_t kMaxMessages = 2048;

  SendWindow() = default;
  SendWindow(uint64_t max_bytes, uint64_t max_messages)
      : max_bytes_(max_bytes), max_messages_(max_messages) {}

  bool HasRoom() const { return bytes_ < max_bytes_ && messages_ < max_messages_; }
  bool empty() const { return messages_ == 0; }
  uint64_t messages() const { return messages_; }
  uint64_t bytes() const { return bytes_; }

  // `sequence` is above all that were sent before.
  void Sent(uint64_t sequence, uint64_t bytes);
  // Everything up to `watermark` is durable, and what is in `ahead`.
  void Durable(uint64_t watermark,
               const google::protobuf::RepeatedPtrField<v1::SequenceRange>& ahead);
  void Clear();

 private:
  struct Message {
    uint64_t sequence = 0;
    uint64_t bytes = 0;
    bool durable = false;
  };
  void MarkDurable(Message* message);

  uint64_t max_bytes_ = kMaxBytes;
  uint64_t max_messages_ = kMaxMessages;
  std::deque<Message> sent_;
  uint64_t messages_ = 0;  // Not durable.
  uint64_t bytes_ = 0;     // Bytes of those messages.
};

// Chooses what a stream sends next: what is recorded now first, and behind it, slower, what an
// outage left behind.
//
//   spool    1 ........ watermark | lost, sent ahead, lost, ... | split ............ synced end
//   lane       trimmed            | backlog: what is not durable | fresh
//
// The split is drawn once, when the collector has said what it has. Behind a short backlog it is
// the watermark: everything goes in order. Otherwise it is the end of the spool at that moment, as
// long as the collector has few ranges ahead of its watermark; each such split adds one. When it
// has many, the fresh lane goes on where the newest range ends, so that no outage adds any.
//
// Within a lane sequences rise. That changes no order that matters:
//   Batch, Event, Gap  are stored under their own times and sequences.
//   Layout             goes with the first Batch that needs it, whichever its lane.
//   Attributes         replace each other, so the newer must not be overtaken by the older: the
//                      fresh lane leaves its own for the backlog lane, which sends them last. Past
//                      kMaxDeferred of them, or when the collector has many ranges already, the
//                      fresh lane waits at the first until the backlog is through.
//
// So the collector never has more than kMaxAhead + kMaxDeferred ranges of an agent, whatever is cut
// and however often. (An entry given up is sent as a Gap in its place, agent/spool/spool.h.) Both
// lanes hold a bounded part of the spool in memory, however long it is.

enum class Lane { kFresh, kBacklog };

struct LaneOptions {
  // Fewer waiting messages than these are sent in order: they take less time than two lanes save.
  uint64_t short_backlog = 64;
};

// One thread; lives as long as one stream.
class Lanes {
 public:
  // Once the collector has this many ranges, no split and no deferral adds another.
  static constexpr int kMaxAhead = 16;
  static constexpr size_t kMaxDeferred = 16;  // On one stream.
  // The backlog's share of what is on its way. It is what fresh rows find before them, at the
  // collector and in the socket: with 5,000 agents catching up at once, 32 messages each are about
  // four seconds of one core.
  static constexpr uint64_t kMaxBacklogMessages = 32;
  static constexpr uint64_t kMaxBacklogBytes = 256u << 10;
  // A collector that acknowledges late may ask for more messages, up to these.
  static constexpr uint64_t kMostBacklogMessages = 1024;

  // `durable` is what the collector said in Welcome. Nothing is owned; all must outlive the lanes.
  Lanes(const LaneOptions& options, Spool* spool, BacklogPace* pace, const v1::Welcome& durable);

  // Finds what to send next; it stays the same until Sent(), GaveUp() or another Choose(). Nothing
  // if the lanes are empty, full, or the backlog must wait until next_choice(). `first` is the lane
  // that is looked at first.
  //   DATA_LOSS    the spool is damaged as a whole.
  //   UNAVAILABLE  its disk refused; try again.
  absl::Status Choose(absl::Time now, Lane first = Lane::kFresh);
  Spool::Entry* front() { return chosen_ == nullptr ? nullptr : &chosen_->queue.front(); }
  Lane lane() const { return chosen_ == &backlog_ ? Lane::kBacklog : Lane::kFresh; }
  absl::Time next_choice() const { return next_choice_; }
  // The next Choose() does not prefer another lane: the layout of front() has just been sent.
  void Hold() { held_ = true; }

  // Takes front() out: it is on its way.
  Spool::Entry Sent(uint64_t rows, absl::Time now);
  void GaveUp();

  // Takes in what the collector says is durable. False, and nothing is taken in, if it claims what
  // was never sent to it or cannot be looked up now: then nothing may be trimmed.
  bool Durable(uint64_t watermark,
               const google::protobuf::RepeatedPtrField<v1::SequenceRange>& ahead);

  uint64_t split() const { return split_; }
  // The newest of all sequences sent, or durable by Welcome.
  uint64_t highest_sent() const { return highest_sent_; }
  // Everything before the split has been sent, and what the fresh lane left behind.
  bool backlog_sent() const {
    return backlog_.queue.empty() && backlog_.next >= split_ && deferred_.empty();
  }
  // Everything before the split is durable, and what the fresh lane left behind.
  bool backlog_through() const { return backlog_sent() && backlog_.window.empty(); }
  uint64_t on_the_way() const { return fresh_.window.messages() + backlog_.window.messages(); }

 private:
  struct Track {
    std::deque<Spool::Entry> queue;  // Read and not yet sent.
    uint64_t next = 1;               // To read.
    SendWindow window;
  };

  absl::Status ChooseFresh();
  absl::Status ChooseBacklog(absl::Time now);
  absl::Status RefillFresh();
  // Reads the backlog beyond what others have, up to the split.
  absl::Status ReadBacklog();
  absl::Status ReadDeferred();
  // Leaves out what the spool had to drop meanwhile: a Gap reports it.
  void Prune(Track* track) const;
  // Whether everything up to `watermark` has been sent or need not be.
  bool IsPlausible(uint64_t watermark);

  Spool* const spool_;
  BacklogPace* const pace_;
  std::vector<v1::SequenceRange> durable_ahead_;  // From Welcome; need not be sent.
  size_t max_deferred_ = kMaxDeferred;
  uint64_t split_ = 1;
  uint64_t highest_sent_ = 0;
  Track fresh_;
  Track backlog_;
  std::deque<uint64_t> deferred_;  // The fresh lane's, ascending.
  bool fresh_waits_ = false;       // For the backlog: deferred_ is full.
  Track* chosen_ = nullptr;
  bool held_ = false;
  absl::Time next_choice_ = absl::InfiniteFuture();
};

}  // namespace tacho::agent
