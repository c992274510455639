// Stands between the sources and the spool: it lets one call through at a time, and none once
// the agent ends.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/source_turn.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/self/source_ledger.h"
#include "proto/base/log.h"

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

// The threads that poll the sources, one for each, so that a slow source never delays another.

struct SamplerOptions {
  // Takes what the sources find, one call at a time. Not owned; must outlive Stop().
  RowSink* sink = nullptr;
  // Where the sources' health is kept; may be null.
  std::shared_ptr<SourceLedger> ledger = nullptr;
  log::Log log = {};
  AgentClock clock = {};
  // A source that always has more to read must not keep the agent from stopping.
  absl::Duration last_polls = absl::Seconds(1);
  // How long Stop() waits for polls to return before it leaves them behind.
  absl::Duration stop_bound = absl::Seconds(2);
};

// Start() and Stop() are for one thread, once each.
class Sampler {
 public:
  Sampler(std::vector<std::unique_ptr<Source>> sources, SamplerOptions options);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // The first poll of every source comes at once.
  void Start();
  // Polls every source a last time, so that what has happened until now is not lost, and ends. A
  // source whose poll does not return within the bound is left behind: its thread goes on without
  // us, its calls of the sink are refused, and it ends with the process. Returns their names, which
  // are also logged.
  std::vector<std::string> Stop();

 private:
  // All that a thread touches. A thread that is left behind keeps it alive.
  struct Shared;
  struct Worker;

  static void Run(const std::shared_ptr<Shared>& shared, Worker* worker);

  const std::shared_ptr<Shared> shared_;
  bool started_ = false;
};

}  // namespace tacho::agent
