// The thread that polls the sources, each when it wants to be.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/source.h"

namespace tacho::agent {

// Start() and Stop() are for one thread, once each.
class Sampler {
 public:
  // The sink is not owned; it must outlive the sampler.
  Sampler(std::vector<std::unique_ptr<Source>> sources, RowSink* sink);
  ~Sampler();

  // The first poll of every source comes at once.
  void Start();
  // Polls every source a last time, so that what has happened until now is not lost, and ends.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Turn {
    std::unique_ptr<Source> source;
    absl::Time due = absl::InfinitePast();  // MonotonicNow()'s.
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void PollDue();
  void PollLast();
  absl::Time NextDue() const;

  RowSink* const sink_;
  std::vector<Turn> turns_;  // Of the thread.
  std::thread thread_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tacho::agent
