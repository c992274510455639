// What stands between the sources and the spool: it lets one call through at a time, and none once
// the agent ends.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "agent/sources/rows/source.h"

namespace tacho::agent {

// Thread-safe. The lock is held while the sink works: that is its purpose. The sink calls nothing
// back that could want it.
class SinkGate : public RowSink {
 public:
  // The sink is not owned; it must live until Close() has returned.
  explicit SinkGate(RowSink* sink) : sink_(sink) {}

  // Waits for the call that is being answered; every later one is answered with CANCELLED.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<uint32_t> DefineLayout(const v1::Layout& layout) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AppendRows(uint32_t layout, std::span<const int64_t> times_unix_ns,
                          std::span<const int64_t> steps, std::span<const double> values,
                          const Checkpoint& checkpoint) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AppendEvent(const v1::Event& event, const Checkpoint& checkpoint) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AppendAttributes(const v1::Attributes& attributes,
                                const Checkpoint& checkpoint) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WriteCheckpoint(const Checkpoint& checkpoint) override ABSL_LOCKS_EXCLUDED(mutex_);
  std::string ReadCheckpoint(absl::string_view key) const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  RowSink* sink_ ABSL_GUARDED_BY(mutex_);  // Null once closed.
};

}  // namespace tacho::agent
