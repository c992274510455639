// What a store must hold, kept outside of it from what it acknowledged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/crash/contents.h"

namespace tacho::crash {

// Acknowledgements come in the order in which messages were committed; what was never answered may
// be there or not, but only whole, with its sequence, and in the order in which it was sent. Where
// times are written twice that order decides which value counts.
class Model {
 public:
  explicit Model(uint64_t seed) : seed_(seed) {}

  // A message is about to be queued; then, at most once, how that ended.
  void Sent(uint32_t agent, uint64_t sequence, bool altered);
  void Stored(uint32_t agent, uint64_t sequence, bool altered);
  void Refused(uint32_t agent, uint64_t sequence, bool altered);  // Can never come up.
  // The disk takes writes again: what it refused before can never come up any more.
  void DiskResumed();
  void Unsure(uint32_t agent, uint64_t sequence, bool altered);  // May come up after a restart.
  // Days before this time may be dropped.
  void CutOff(int64_t time_ns);

  // Compares a reopened store with what it must hold, and takes over what turns out to be durable.
  // Returns the differences in words.
  std::string Check(Contents found);

  uint64_t samples_checked() const { return samples_checked_; }
  uint64_t samples() const;                    // Held now.
  uint64_t stored() const { return stored_; }  // Messages that were acknowledged.
  uint64_t samples_stored() const { return samples_stored_; }
  // Messages that were unanswered when the process died, and were found to be durable.
  uint64_t unanswered_found() const { return unanswered_found_; }
  uint64_t unanswered_absent() const { return unanswered_absent_; }

 private:
  struct Pending {
    uint32_t agent;
    uint64_t sequence;
    bool altered;
    bool unsure = false;
  };

  void Forget(uint32_t agent, uint64_t sequence, bool altered);
  // Returns how many samples the message has.
  uint64_t Commit(uint32_t agent, uint64_t sequence, bool altered);
  static void DropBefore(int64_t time_ns, Contents* contents);

  const uint64_t seed_;
  Contents expected_;
  std::vector<Pending> pending_;  // In the order in which they were sent.
  int64_t cutoff_ns_ = INT64_MIN;
  uint64_t samples_checked_ = 0;
  uint64_t stored_ = 0;
  uint64_t samples_stored_ = 0;  // In messages that were acknowledged.
  uint64_t unanswered_found_ = 0;
  uint64_t unanswered_absent_ = 0;
};

}  // namespace tacho::crash
