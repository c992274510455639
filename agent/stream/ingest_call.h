// One Ingest/Stream call, from dialling to its status, driven by the events of a transport.
#pragma once

#include <memory>
#include <string>

#include "agent/spool/spooled_message.h"
#include "agent/stream/transport.h"
#include "client/channel/channel_security.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// For the thread that takes events from the transport. It must not be destroyed before done().
class IngestCall {
 public:
  // Every tag of a call is one of these.
  struct Tag {
    enum class Operation { kStart, kRead, kWrite, kHalfClose, kFinish };
    IngestCall* call = nullptr;
    Operation operation = Operation::kStart;
    bool pending = false;
  };

  // Dials at once. The transport is not owned; it must outlive the call.
  //
  // If the files of `security` are not right, the call is finished when this returns, with
  // FAILED_PRECONDITION and a text that names the key; the transport rings.
  IngestCall(const std::string& address, const client::ChannelSecurity& security,
             Transport* transport);

  // The meaning of a tag of this call.
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
  // As it lies in the spool, or a batch with another layout; its bytes are not copied. `more` are
  // encoded fields that follow it; mostly none.
  void Write(SpooledMessage message, const std::string& more = "");
  void WriteBatch(SpooledMessage batch, uint32_t layout, const std::string& more = "");
  const v1::ServerMessage& received() const { return received_; }
  void ReadNext();

  // No more will be written. Needs can_write().
  void HalfClose();
  // Ends the call soon, with CANCELLED, if it has not ended.
  void Cancel();

  bool finished() const { return finished_; }  // status() is there.
  const grpc::Status& status() const { return status_; }
  // Finished, and no tag is to come.
  bool done() const;

 private:
  void WriteBytes(const grpc::ByteBuffer& bytes);
  void Finish();
  DialledStream::Stream* stream() const { return dialled_->stream(); }
  Tag MakeTag(Tag::Operation operation) { return {.call = this, .operation = operation}; }

  std::unique_ptr<DialledStream> dialled_;  // Null: it could not be dialled.
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
};

}  // namespace tacho::agent
