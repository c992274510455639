// One Ingest/Stream call, from dialling to its status, driven by a completion queue.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "agent/spool/spooled_message.h"
#include "client/channel/channel_security.h"
#include "grpcpp/alarm.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/byte_buffer.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// For the thread that takes tags from the queue. It must not be destroyed before done().
class IngestCall {
 public:
  // Every tag of a call is one of these.
  struct Tag {
    enum class Operation { kStart, kRead, kWrite, kHalfClose, kFinish };
    IngestCall* call = nullptr;
    Operation operation = Operation::kStart;
    bool pending = false;
  };

  // Dials at once. The queue is not owned; it must outlive the call.
  //
  // Each call has a channel of its own: a channel that is kept would pause between attempts by
  // rules of its own, beside ours.
  //
  // Files of `security` are read now, so that each connection takes what is new. If they are not
  // right the call ends at once, with FAILED_PRECONDITION and a text that names the key.
  IngestCall(const std::string& address, const client::ChannelSecurity& security,
             grpc::CompletionQueue* queue);

  // What a tag of this call means.
  enum class Progress {
    kNone,
    kReadyToWrite,  // can_write() is true.
    kReceived,      // received() holds a message, until ReadNext().
    kFinished,      // status() is there. Further tags may follow.
  };
  Progress Handle(Tag* tag, bool ok);

  bool can_write() const { return started_ && !finishing_ && !half_closed_ && !write_.pending; }
  // All of these need can_write().
  void Write(const v1::ClientMessage& message);
  // As it lies in the spool, or a batch with another layout; its bytes are not copied.
  void Write(SpooledMessage message);
  void WriteBatch(SpooledMessage batch, uint32_t layout);
  const v1::ServerMessage& received() const { return received_; }
  void ReadNext();

  // No more will be written. Needs can_write().
  void HalfClose();
  // Ends the call soon, with CANCELLED.
  void Cancel() { context_.TryCancel(); }

  const grpc::Status& status() const { return status_; }
  // Finished, and no tag is to come.
  bool done() const;

 private:
  void Dial(const std::string& address, const client::ChannelSecurity& security,
            grpc::CompletionQueue* queue);
  void WriteBytes(const grpc::ByteBuffer& bytes);
  void Finish();
  Tag MakeTag(Tag::Operation operation) { return {.call = this, .operation = operation}; }

  grpc::ClientContext context_;
  // Messages go out as bytes: most of them lie in the spool as such.
  std::unique_ptr<grpc::TemplatedGenericStub<grpc::ByteBuffer, v1::ServerMessage>> stub_;
  std::unique_ptr<grpc::ClientAsyncReaderWriterInterface<grpc::ByteBuffer, v1::ServerMessage>>
      stream_;
  v1::ServerMessage received_;
  grpc::Status status_;
  Tag start_ = MakeTag(Tag::Operation::kStart);
  Tag read_ = MakeTag(Tag::Operation::kRead);
  Tag write_ = MakeTag(Tag::Operation::kWrite);
  Tag half_close_ = MakeTag(Tag::Operation::kHalfClose);
  Tag finish_ = MakeTag(Tag::Operation::kFinish);
  bool started_ = false;
  bool half_closed_ = false;
  bool finishing_ = false;
  bool finished_ = false;
  grpc::Alarm not_dialled_;
};

}  // namespace tacho::agent
