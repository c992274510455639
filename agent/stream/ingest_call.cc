#include "agent/stream/ingest_call.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/slice.h"
#include "proto/base/check.h"

namespace tacho::agent {
namespace {

// Bytes of a message, which gRPC keeps until it has sent them.
grpc::Slice SliceOf(absl::string_view bytes, std::unique_ptr<SpooledMessage> message) {
  // gRPC does not write to a slice that it sends.
  return {const_cast<char*>(bytes.data()), bytes.size(),  // NOLINT(*-const-cast)
          [](void* kept) { delete static_cast<SpooledMessage*>(kept); }, message.release()};
}

}  // namespace

IngestCall::IngestCall(const std::string& address, const client::ChannelSecurity& security,
                       Transport* transport) {
  auto dialled = transport->Dial(address, security);
  if (!dialled.ok()) {
    status_ = {grpc::StatusCode::FAILED_PRECONDITION, std::string(dialled.status().message())};
    finishing_ = finished_ = true;
    transport->Ring();
    return;
  }
  dialled_ = *std::move(dialled);
  start_.pending = true;
  stream()->StartCall(&start_);
}

IngestCall::Progress IngestCall::Handle(Tag* tag, bool ok) {
  TACHO_CHECK(tag->call == this && tag->pending);
  tag->pending = false;
  switch (tag->operation) {
    case Tag::Operation::kStart:
      started_ = ok;
      if (!ok) {
        Finish();
        return Progress::kNone;
      }
      ReadNext();
      return Progress::kReadyToWrite;
    case Tag::Operation::kRead:
      if (ok) return Progress::kReceived;
      Finish();
      return Progress::kNone;
    case Tag::Operation::kWrite:
      // After a failed write the read fails as well, and brings the status.
      return ok && can_write() ? Progress::kReadyToWrite : Progress::kNone;
    case Tag::Operation::kHalfClose:
      return Progress::kNone;
    case Tag::Operation::kFinish:
      finished_ = true;
      return Progress::kFinished;
  }
  return Progress::kNone;
}

void IngestCall::Write(const v1::ClientMessage& message) {
  const grpc::Slice slice(message.SerializeAsString());
  WriteBytes(grpc::ByteBuffer(&slice, 1));
}

void IngestCall::Write(SpooledMessage message, const std::string& more) {
  auto kept = std::make_unique<SpooledMessage>(std::move(message));
  const absl::string_view bytes = kept->bytes();
  const grpc::Slice slices[] = {SliceOf(bytes, std::move(kept)), grpc::Slice(more)};
  WriteBytes(grpc::ByteBuffer(slices, more.empty() ? 1 : 2));
}

void IngestCall::WriteBatch(SpooledMessage batch, uint32_t layout, const std::string& more) {
  auto kept = std::make_unique<SpooledMessage>(std::move(batch));
  const SpooledMessage::Parts parts = kept->WithLayout(layout);
  const grpc::Slice slices[] = {grpc::Slice(parts.head), SliceOf(parts.tail, std::move(kept)),
                                grpc::Slice(more)};
  WriteBytes(grpc::ByteBuffer(slices, more.empty() ? 2 : 3));
}

void IngestCall::WriteBytes(const grpc::ByteBuffer& bytes) {
  TACHO_CHECK(can_write());  // gRPC takes one message at a time.
  write_.pending = true;
  stream()->Write(bytes, &write_);
}

void IngestCall::ReadNext() {
  TACHO_CHECK(started_ && !read_.pending);
  read_.pending = true;
  stream()->Read(&received_, &read_);
}

void IngestCall::HalfClose() {
  TACHO_CHECK(can_write());
  half_closed_ = true;
  half_close_.pending = true;
  stream()->WritesDone(&half_close_);
}

void IngestCall::Finish() {
  if (finishing_) return;
  finishing_ = true;
  finish_.pending = true;
  stream()->Finish(&status_, &finish_);
}

void IngestCall::Cancel() {
  if (dialled_ != nullptr) dialled_->Cancel();
}

bool IngestCall::done() const {
  return finished_ && !start_.pending && !read_.pending && !write_.pending && !half_close_.pending;
}

}  // namespace tacho::agent
