// One stream: Hello, Welcome, then layouts and spooled messages in order, trimming as they become
// durable.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/spool.h"
#include "agent/stream/clock_offset.h"
#include "agent/stream/ingest_call.h"
#include "agent/stream/once_a_minute.h"
#include "agent/stream/send_rate.h"
#include "agent/stream/send_window.h"
#include "agent/stream/stream_layouts.h"
#include "agent/stream/stream_options.h"
#include "agent/stream/suspicion.h"

namespace tacho::agent {

// What one stream leaves to the next.
struct StreamMemory {
  ClockOffset clock;
  SendRate rate;
  Suspicion suspicion;
  OnceAMinute logged;
  uint64_t messages_sent = 0;
};

// For the sender's thread. Must not be destroyed before done().
class StreamSession {
 public:
  // Dials. Nothing is owned; all must outlive the session.
  StreamSession(const StreamOptions& options, Spool* spool, StreamMemory* memory,
                grpc::CompletionQueue* queue);

  void Handle(IngestCall::Tag* tag, bool ok);
  // Sends what can be sent now. Call it when something was spooled, after each Handle(), and at
  // next_pump(). DATA_LOSS if the spool is damaged as a whole.
  absl::Status Pump();
  absl::Time next_pump() const { return next_pump_; }  // MonotonicNow()'s.

  void HalfClose();
  void Cancel() { call_.Cancel(); }

  bool welcomed() const { return limits_.has_value(); }
  // Something that was sent on this stream is durable.
  bool progressed() const { return progressed_; }
  bool finished() const { return finished_; }  // status() is there.
  bool done() const { return call_.done(); }
  const grpc::Status& status() const { return call_.status(); }
  // The collector has sequences of this spool that the spool never had.
  bool spool_is_a_copy() const { return spool_is_a_copy_; }

  // The newest message tried; none if none was. Alone: those before it were all taken when it was
  // sent, so that a refusal means this one.
  std::optional<Suspicion::Message> newest() const { return newest_; }
  bool newest_is_alone() const { return newest_is_alone_; }

 private:
  void SayHello();
  void OnWelcome(const v1::Welcome& welcome);
  void OnAck(const v1::Ack& ack);
  void OnThrottle(const v1::Throttle& throttle);
  void OnDurable(uint64_t watermark,
                 const google::protobuf::RepeatedPtrField<v1::SequenceRange>& ahead);
  void LogRejects(const v1::Ack& ack);

  // Whether a message may be sent now; sets next_pump_ if the time will come by itself.
  bool MaySend();
  absl::Status Refill();
  // Sends the first message of the queue, or its layout, or gives it up.
  absl::Status SendFront();
  absl::Status SendLayout(uint32_t layout, uint32_t id);
  void NoteTried(const Spool::Entry& entry, uint32_t layout);
  absl::Status GiveUpFront(const std::string& reason);
  void Log(LogLevel level, const std::string& key, const std::string& line);

  const StreamOptions& options_;
  Spool* const spool_;
  StreamMemory* const memory_;
  IngestCall call_;

  std::optional<v1::Limits> limits_;  // Of Welcome.
  std::optional<StreamLayouts> layouts_;
  std::vector<v1::SequenceRange> durable_ahead_;  // Of Welcome: need not be sent.
  std::deque<Spool::Entry> queue_;                // Read and not yet sent.
  std::optional<uint32_t> front_layout_id_;       // Of the queue's front, if its layout is known.
  uint64_t next_sequence_ = 1;                    // To read.
  uint64_t highest_sent_ = 0;                     // Or durable by Welcome.
  SendWindow window_;
  std::optional<Suspicion::Message> newest_;
  bool newest_is_alone_ = false;
  bool all_taken_ = true;  // The collector has taken everything sent on this stream.
  absl::Time next_pump_ = absl::InfiniteFuture();
  absl::Time hello_sent_;
  bool progressed_ = false;
  bool finished_ = false;
  bool spool_is_a_copy_ = false;
};

}  // namespace tacho::agent
