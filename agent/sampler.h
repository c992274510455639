// The threads that poll the sources, one for each, so that a slow source never delays another.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/sink_gate.h"
#include "agent/source_turn.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/self/source_ledger.h"
#include "proto/base/log.h"

namespace tacho::agent {

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
