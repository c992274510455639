// One stream: Hello, Welcome, then layouts and spooled messages in the order of its lanes, trimming
// as they become durable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/spool/spool.h"
#include "agent/stream/clock_reports.h"
#include "agent/stream/ingest_call.h"
#include "agent/stream/lanes.h"
#include "agent/stream/stream_layouts.h"
#include "agent/stream/stream_memory.h"
#include "agent/stream/stream_options.h"
#include "agent/stream/transport.h"

namespace tacho::agent {

// For the sender's thread. Must not be destroyed before done().
class StreamSession {
 public:
  // Dials `address`. Nothing is owned; all must outlive the session.
  StreamSession(const StreamOptions& options, const std::string& address, Spool* spool,
                StreamMemory* memory, Transport* transport);
  ~StreamSession();

  void Handle(IngestCall::Tag* tag, bool ok);
  // Sends what can be sent now. Call it when something was spooled, after each Handle(), and at
  // next_pump(). DATA_LOSS if the spool is damaged as a whole.
  absl::Status Pump();
  absl::Time next_pump() const { return next_pump_; }  // MonotonicNow()'s.

  // Ends the stream when everything sent is durable and acknowledged.
  void HalfClose();
  void Cancel() { call_.Cancel(); }

  bool welcomed() const { return limits_.has_value(); }
  // No backlog is left behind what is sent now.
  bool caught_up() const { return lanes_.has_value() && lanes_->backlog_through(); }
  // Something that was sent on this stream is durable.
  bool progressed() const { return progressed_; }
  bool finished() const { return call_.finished(); }  // status() is there.
  bool done() const { return call_.done(); }
  const grpc::Status& status() const { return call_.status(); }
  // The collector has sequences of this spool that the spool never had.
  bool spool_is_a_copy() const { return spool_is_a_copy_; }

  // The message tried last; none if none was. Alone: those before it were all taken when it was
  // sent, so that a refusal means this one.
  std::optional<Suspicion::Message> last() const { return last_; }
  bool last_is_alone() const { return last_is_alone_; }
  const Suspicion::Tried& tried() const { return tried_; }

 private:
  void SayHello();
  void OnWelcome(const v1::Welcome& welcome);
  // The collector may have less than it had acknowledged: says so.
  void ReportMissing(const v1::Welcome& welcome);
  void OnAck(const v1::Ack& ack);
  // The clock report to send beside a message of so many bytes, encoded; mostly empty.
  std::string TakeClockReport(uint64_t bytes, absl::Time now);
  void OnThrottle(const v1::Throttle& throttle);
  // Everything up to `watermark` is durable at the collector of this stream.
  void Trim(uint64_t watermark);
  void NoteAhead(const google::protobuf::RepeatedPtrField<v1::SequenceRange>& ahead);
  void LogRejects(const v1::Ack& ack);

  // Sends parts of reports, which go ahead of what is spooled.
  void SendReports();
  // Whether a message may be sent now; sets next_pump_ if the time will come by itself.
  bool MaySend();
  // Finds the next message in the lanes; if there is none now, sets next_pump_ where time helps.
  absl::Status Choose();
  // Sends the message at the front of the lanes, or its layout; or gives it up, so that the next
  // call sends its Gap.
  absl::Status SendFront();
  absl::Status SendLayout(uint32_t layout, uint32_t id);
  void NoteTried(const Spool::Entry& entry, uint32_t layout);
  // Puts a Gap in the place of the message at the front of the lanes.
  absl::Status GiveUpFront(const std::string& reason);
  void LogTrouble(const char* message, const absl::Status& status) const;

  const StreamOptions& options_;
  const std::string& address_;
  Spool* const spool_;
  StreamMemory* const memory_;
  IngestCall call_;

  std::optional<v1::Limits> limits_;  // From Welcome.
  std::optional<StreamLayouts> layouts_;
  std::optional<Lanes> lanes_;
  std::optional<Suspicion::Message> last_;
  bool last_is_alone_ = false;
  bool last_is_sent_ = false;  // Else only its layout is.
  Suspicion::Tried tried_{};
  bool all_taken_ = true;  // The collector has taken everything sent on this stream.
  absl::Time next_pump_ = absl::InfiniteFuture();
  absl::Time hello_sent_;
  ClockReports clock_;
  bool ahead_noted_ = true;  // By this stream, or by one before it.
  bool progressed_ = false;
  bool spool_is_a_copy_ = false;
};

}  // namespace tacho::agent
