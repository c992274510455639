// How a sender reaches collectors: it dials streams, and waits for what happens on them.
//
// The agent's transport is gRPC's (agent/stream/grpc_transport.h). Another one can connect a sender
// to a collector without sockets, threads and timers of gRPC's.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/channel/channel_security.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/byte_buffer.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// One Ingest/Stream call, and the connection that it has for itself. For the thread that calls
// Transport::Next(). Not to be destroyed while a tag that was given to stream() is to come.
class DialledStream {
 public:
  // Messages go out as bytes: most of them lie in the spool as such.
  using Stream = grpc::ClientAsyncReaderWriterInterface<grpc::ByteBuffer, v1::ServerMessage>;

  virtual ~DialledStream() = default;

  // As gRPC's: not connected before StartCall(); each tag comes back once from Transport::Next(),
  // and none before the call that was given it returns. It lives as long as this.
  virtual Stream* stream() = 0;
  // Ends the call soon, with CANCELLED.
  virtual void Cancel() = 0;
};

// Ring() is for any thread, the rest for one thread at a time: the sender's while it runs.
class Transport {
 public:
  virtual ~Transport() = default;

  // Prepares a stream to a collector. The files of `security` are read now, so that each connection
  // takes what is new.
  //   others  as client::SecureChannel(): no attempt was made, and another one may go better.
  virtual absl::StatusOr<std::unique_ptr<DialledStream>> Dial(
      const std::string& address, const client::ChannelSecurity& security) = 0;

  struct Event {
    void* tag = nullptr;  // Null: it rang.
    bool ok = false;
  };
  // Waits for the next event, until a moment of MonotonicNow(); nullopt if none came. A moment that
  // has passed gives what is there already.
  virtual std::optional<Event> Next(absl::Time until) = 0;

  // Makes Next() return an event without a tag soon. One event may answer all calls that were made
  // before it was taken.
  virtual void Ring() = 0;

  // Ring() does nothing from now on, and Next() is not called any more. There must be no
  // DialledStream.
  virtual void Shutdown() = 0;
};

}  // namespace tacho::agent
