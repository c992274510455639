// Delivers the spool to a collector: connects, sends, and connects again, to the same or another.
//
// One thread does everything: it syncs the spool, drives the stream by its transport's events,
// and sleeps while there is nothing to do. Appending to the spool wakes it up.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/spool/spool.h"
#include "agent/stream/collector_choice.h"
#include "agent/stream/stream_options.h"
#include "agent/stream/stream_session.h"
#include "agent/stream/transport.h"
#include "grpcpp/support/status.h"

namespace tacho::agent {

// For one thread, which starts, stops and destroys it.
class Sender {
 public:
  // The spool is not owned; it must outlive the sender, which is its listener meanwhile.
  Sender(StreamOptions options, Spool* spool);
  // Stops without delivering.
  ~Sender();

  void Start();
  // Syncs the spool, delivers what can be delivered within `flush`, ends the stream. An empty spool
  // or a collector out of reach makes it return sooner. The rest waits in the spool.
  void Stop(absl::Duration flush);
  // The first half of Stop(), which does not wait: several senders so stop side by side.
  void BeginStop(absl::Duration flush);

 private:
  // Sources give their first rows one after the other: after a start they are not to wait for a
  // whole sync_interval each.
  static constexpr absl::Duration kFirstSyncPause = absl::Milliseconds(30);

  void Run();
  void RunOnce(absl::Time now);
  void Dial(absl::Time now);
  void NoteWelcome(absl::Time now);
  const std::string& address() const { return options_.addresses[choice_.collector()]; }
  // Memory of the collector that the stream is to.
  StreamMemory& memory() { return memories_[options_.one_store ? 0 : choice_.collector()]; }
  // Whether stopping is over.
  bool MayStop(absl::Time now);
  void SyncIfDue(absl::Time now);
  void Wait(absl::Time until);
  void Handle(const Transport::Event& event);
  void OnStreamEnd(absl::Time now);
  // Ends a stream that works when an earlier collector is to be tried.
  void ReturnIfDue(absl::Time now);
  // Gives up the message that made the collector end the stream, once it is known which.
  void BlameRefusal(const grpc::Status& status, absl::Time now);
  // Why the message is given up; notes the job that this agent may not write.
  std::string NoteDenied(const Suspicion::Message& message, const grpc::Status& status,
                         absl::Time now);
  // Whether the member of a cluster has another list of members, which was logged before.
  bool ToldOfLists(const grpc::Status& status);
  // `about_message`: it was refused for what it sent, not at its beginning.
  void LogEnd(const grpc::Status& status, bool about_message, const std::string& ended,
              absl::Duration pause);
  absl::Time NextWake(absl::Time now) const;
  void EndSession();

  const StreamOptions options_;
  Spool* const spool_;
  const std::unique_ptr<Transport> transport_;
  std::thread thread_;

  absl::Mutex mutex_;
  // MonotonicNow()'s; by then it must have stopped. Infinite while it runs.
  absl::Time stop_by_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();

  // Only the sender's thread uses these.
  CollectorChoice choice_;
  std::vector<StreamMemory> memories_;  // One a store.
  std::unique_ptr<StreamSession> session_;
  bool stop_at_once_ = false;  // The last attempt is made without waiting for its time.
  absl::Time welcome_by_ = absl::InfiniteFuture();
  // For a stream that is ended in order to return to an earlier collector.
  absl::Time farewell_by_ = absl::InfiniteFuture();
  absl::Time last_sync_ = absl::InfinitePast();
  absl::Duration sync_pause_;  // Until the next one; grows to the interval.
  bool stopping_ = false;
  bool last_attempt_made_ = false;
  bool broken_ = false;
  bool connected_ = false;     // The collector has answered Hello.
  std::string told_of_lists_;  // What the log last said on them; empty after a Welcome.

  // Whether the thread knows that something is to be synced: more of it need not wake it up.
  std::atomic<bool> sync_is_awaited_ = false;
};

}  // namespace tacho::agent
