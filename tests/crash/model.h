// What a store must hold, kept outside of it from what it acknowledged.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/crash/contents.h"

namespace tacho::crash {

// What was never answered may be there or not, but only whole and with its sequence. Where times
// are written twice, the value that was sent last counts: messages are committed in the order in
// which they were sent. Acknowledgements may come in another order, because two threads give those
// that waited for a bucket.
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
    uint64_t order;  // Rises with each message that is sent.
    bool unsure = false;
  };

  // Returns its order.
  uint64_t Forget(uint32_t agent, uint64_t sequence, bool altered);
  // Returns how many samples the message has.
  uint64_t Commit(uint32_t agent, uint64_t sequence, bool altered, uint64_t order);
  static void DropBefore(int64_t time_ns, Contents* contents);

  const uint64_t seed_;
  Contents expected_;
  // The order of the message that wrote a sample, or a key of attributes.
  std::map<std::string, std::map<Contents::Place, uint64_t>> sample_orders_;
  std::map<std::string, uint64_t> attribute_orders_;
  uint64_t sent_ = 0;
  std::vector<Pending> pending_;  // In the order in which they were sent.
  int64_t cutoff_ns_ = INT64_MIN;
  uint64_t samples_checked_ = 0;
  uint64_t stored_ = 0;
  uint64_t samples_stored_ = 0;  // In messages that were acknowledged.
  uint64_t unanswered_found_ = 0;
  uint64_t unanswered_absent_ = 0;
};

}  // namespace tacho::crash
