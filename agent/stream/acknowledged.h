// How far a collector has acknowledged this spool, so that it is noticed when the collector has
// less later: then it has lost what was acknowledged, and the spool may have trimmed it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/spool/spool.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// Messages that a collector had acknowledged and no longer has.
struct MissingMessages {
  uint64_t again = 0;  // The spool still holds them, and they are sent again.
  uint64_t gone = 0;   // It does not.

  uint64_t all() const { return again + gone; }
};

// Thread-safe: the sender adds, the agent's own source reads.
class MissingTotals {
 public:
  void Add(const MissingMessages& missing) {
    again_ += missing.again;
    gone_ += missing.gone;
  }
  // Since the agent's start.
  MissingMessages Get() const { return {.again = again_, .gone = gone_}; }

 private:
  std::atomic<uint64_t> again_ = 0;
  std::atomic<uint64_t> gone_ = 0;
};

// One thread; outlives streams. It also outlives the process, as a checkpoint of the spool, which
// may be a second old: it is never above what was acknowledged.
class Acknowledged {
 public:
  // The spool's notes on this agent and collector.
  void Load(const Spool& spool, absl::string_view agent_id, absl::string_view collector);

  // The highest watermark that the collector has told; 0: none is known.
  uint64_t highest() const { return highest_; }
  void Raise(uint64_t watermark);

  // The messages that the collector no longer has, by its Welcome. From now on only what it has
  // counts, so that it is found once.
  MissingMessages Compare(const v1::Welcome& welcome, uint64_t spool_begin);

  // Writes the checkpoint if it has changed, at most once a second, and at any rate with
  // InfiniteFuture(). A note that the disk refuses is written the next time.
  void Note(absl::Time monotonic_now, Spool* spool);

 private:
  std::string key_;
  uint64_t highest_ = 0;
  uint64_t noted_ = 0;
  absl::Time next_note_ = absl::InfinitePast();
};

}  // namespace tacho::agent
