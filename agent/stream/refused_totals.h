// How many samples the collectors have refused, since the agent's start.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// Thread-safe: the sender adds what acknowledgements report, the agent's own source reads.
class RefusedTotals {
 public:
  void Add(const v1::Ack& ack) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (ack.rejects().empty()) return;
    absl::MutexLock lock(&mutex_);
    for (const v1::Reject& reject : ack.rejects()) {
      samples_[NameOf(reject.reason())] += reject.samples();
    }
  }

  // By reason: "too_old", "series_limit", …
  std::map<std::string, uint64_t> samples() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return samples_;
  }

 private:
  static std::string NameOf(v1::Reject::Reason reason) {
    const std::string& whole = v1::Reject::Reason_Name(reason);
    if (whole.empty()) return absl::StrCat("reason_", static_cast<int>(reason));
    return absl::AsciiStrToLower(absl::StripPrefix(whole, "REASON_"));
  }

  mutable absl::Mutex mutex_;
  std::map<std::string, uint64_t> samples_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::agent
