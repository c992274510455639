// One stream of one agent: gRPC's reads and writes around a StreamSession.
//
// Reading: one read at a time; each message is handled to its end before the next read starts, on
// gRPC's thread, or on that of the queue of definitions if it is a layout that takes long. A stream
// is not read from while too many bytes wait for the disk, its own or those of all streams, and
// while it waits for a quota; HTTP/2 flow control then holds the agent back, and a Throttle informs
// it where that is worth it.
//
// Writing: at most one write at a time, of Welcome or of an Ack that covers all that became durable
// since the last. Started by Advance(), which is called whenever something may have changed.
//
// Ending: End() notes the reason; when every accepted message has settled and the last
// Ack is out, the stream is finished with that status. A broken connection skips the waiting.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/edge/connection_table.h"
#include "server/ingest/acks.h"
#include "server/ingest/stream_session.h"
#include "server/security/access_control.h"
#include "tacho/v1/ingest.pb.h"

namespace google::protobuf {
class Arena;
}

namespace tacho::server::ingest {

// Messages are taken as bytes and parsed here: gRPC's own parsing would make a damaged message look
// like the end of the stream.
using ByteStreamReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// Which Throttles a stream's agent gets. For one thread at a time. Times are MonotonicNow()'s.
class StreamPace {
 public:
  // A limit that was sent to the agent is lifted when it has not been needed for this long.
  static constexpr absl::Duration kLiftAfter = absl::Seconds(10);

  // The stream is not read from for `wait`. Returns a Throttle to send if it is worth one: an agent
  // that knows stops sending, which is cheaper than stopping it.
  std::optional<v1::Throttle> Slowed(absl::Duration wait, uint64_t max_rows_per_second,
                                     std::string reason, absl::Time now);
  // The Throttle that lifts the limit, once it is due.
  std::optional<v1::Throttle> Look(absl::Time now);
  // When to look next; InfiniteFuture() if nothing is to be lifted.
  absl::Time next_look() const { return lift_at_; }

 private:
  absl::Time told_ = absl::InfinitePast();
  absl::Time lift_at_ = absl::InfiniteFuture();
};

// All streams share these. Nothing is owned; everything must outlive them.
struct StreamContext {
  SessionContext session;
  AckPacer* pacer = nullptr;
  WakeTimer* timer = nullptr;
  PendingBytes* total_pending = nullptr;
  // Called when gRPC is done with the stream.
  std::function<void(uint64_t stream)> on_gone;
};

// Thread-safe where it says so. Owns itself until gRPC is done with it; the store's callbacks and
// the pacer may keep it longer, and find it finished.
class AgentStream final : public ByteStreamReactor,
                          public Paced,
                          public std::enable_shared_from_this<AgentStream> {
 public:
  // The agent that opened a stream, and how.
  struct Opened {
    std::string peer;                                 // As grpc::ServerContext::peer().
    std::shared_ptr<edge::ConnectionUse> connection;  // It came on; nullptr if that is not known.
    security::Caller caller = security::Caller::Anyone();
  };
  // `stream` is unique among live streams.
  static std::shared_ptr<AgentStream> Start(const StreamContext* context, uint64_t stream,
                                            Opened opened);

  const security::Caller& caller() const { return opened_.caller; }

  // Ends the stream; the first status given counts. Thread-safe.
  void End(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  // gRPC's.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  // The pacer's.
  void OnTick() override;

 private:
  // The next step that Advance() found; at most one.
  enum class Step { kNone, kWelcome, kThrottle, kRequest, kAck, kRead, kFinish };

  AgentStream(const StreamContext* context, uint64_t stream, Opened opened);

  // Whether the message in read_buffer_ is a layout.
  bool IsLayout() const;
  // Handles the message in read_buffer_; false if the stream ends.
  bool HandleRead() ABSL_LOCKS_EXCLUDED(mutex_);
  // The same on another thread than gRPC's.
  void HandleQueued() ABSL_LOCKS_EXCLUDED(mutex_);
  // Looks at the bytes in read_buffer_ before anything is allocated for them.
  absl::Status CheckParts();
  // Takes the message out of read_buffer_. It lies in the arena.
  absl::StatusOr<v1::ClientMessage*> Parse(google::protobuf::Arena* arena);
  // Sends a request to the agent, after Welcome. Thread-safe.
  void Ask(v1::AgentRequest request) ABSL_LOCKS_EXCLUDED(mutex_);
  void Greet(v1::Welcome welcome) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsEnding() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the stream for what its last message has led to. If the clock is in doubt the agent also
  // gets a Throttle, which makes it wait whatever stream or lane it would go on with.
  void EndAfterMessage(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts the next read, or notes what it waits for.
  void ReadOn() ABSL_LOCKS_EXCLUDED(mutex_);
  // By value: once the lock is released the session may be at the next message, on another thread.
  void HoldBack(edge::Quotas::Wait wait) ABSL_LOCKS_EXCLUDED(mutex_);
  bool MayRead(uint64_t pending_bytes) const;
  // The same right after a message, for which its session asks to `wait`.
  bool MayReadAfter(const edge::Quotas::Wait& wait) const;
  bool MayReadAgain(uint64_t pending_bytes, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a stream without Hello; announces that a limit is lifted.
  void LookAtClock(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets the timer for pace_, one at a time: a stream may be held back a hundred times a second.
  void AwaitNextLook(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Does what is due: one write, the next read, the end. Thread-safe.
  void Advance() ABSL_LOCKS_EXCLUDED(mutex_);
  Step NextStep(const AckCoalescer::State& acks, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status StoreFailure(const absl::Status& failure) const;
  // For Welcome and Ack, right before they are written; 0: nobody compares clocks.
  uint64_t ClockMark() const;
  void Write(const v1::ServerMessage& message);
  void ReadAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  void FinishWith(const absl::Status& status);
  void LogEnd(const absl::Status& status) const;

  const StreamContext& context_;
  const uint64_t stream_;
  const Opened opened_;
  std::shared_ptr<AgentStream> self_;  // Until OnDone().
  std::shared_ptr<AckCoalescer> acks_;

  // For the thread of the one read, and of the one write, that is under way.
  std::unique_ptr<StreamSession> session_;
  grpc::ByteBuffer read_buffer_;
  grpc::ByteBuffer write_buffer_;

  absl::Mutex mutex_;
  std::optional<v1::Welcome> welcome_ ABSL_GUARDED_BY(mutex_);  // To be written.
  std::optional<v1::Throttle> throttle_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::ClockEstimate> agent_clock_ ABSL_GUARDED_BY(mutex_);  // For the next Ack.
  std::deque<v1::AgentRequest> requests_ ABSL_GUARDED_BY(mutex_);         // To be written.
  bool greeted_ ABSL_GUARDED_BY(mutex_) = false;
  const absl::Duration hello_timeout_;
  const absl::Time hello_by_;
  // Since when, why and until when, for a quota, nothing is read.
  bool read_waits_ ABSL_GUARDED_BY(mutex_) = false;
  edge::Quotas::Limit waits_for_ ABSL_GUARDED_BY(mutex_) = edge::Quotas::Limit::kNone;
  absl::Time waits_since_ ABSL_GUARDED_BY(mutex_);
  absl::Time resume_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool awaits_room_ ABSL_GUARDED_BY(mutex_) = false;
  StreamPace pace_ ABSL_GUARDED_BY(mutex_);
  absl::Time looks_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // Its timer is set to it.
  absl::Time looks_for_room_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // And to this.
  // While either is set no other step begins, so that gRPC's call cannot end under it.
  bool starting_read_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;    // Nothing reaches the agent.
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;  // Nothing may be started any more.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

// A stream that is finished before it began.
class RefusedStream final : public ByteStreamReactor {
 public:
  explicit RefusedStream(const absl::Status& status, uint64_t stream);
  void OnDone() override { delete this; }
};

}  // namespace tacho::server::ingest
