#include "tests/simulate/transport/sim_server_call.h"

#include <utility>

#include "absl/synchronization/mutex.h"
#include "proto/base/check.h"

namespace tacho::simulate {

SimServerCall::SimServerCall(Options options) : options_(std::move(options)) {
  options_.link->SetOnEnd(Side::kServer, [this](const grpc::Status&) {
    ++operations_;
    React([this] { reactor_->OnCancel(); });
  });
}

SimServerCall::~SimServerCall() {
  absl::MutexLock lock(&options_.network->mutex);
  options_.link->Detach(Side::kServer);
}

void SimServerCall::Begin(const Acceptor& acceptor, const std::string& peer) {
  reactor_ = acceptor(peer);
  TACHO_CHECK(reactor_ != nullptr);
  BindReactor(reactor_);
  Release();
}

void SimServerCall::React(std::function<void()> reaction) {
  options_.post([this, reaction = std::move(reaction)] {
    reaction();
    Release();
  });
}

void SimServerCall::Release() {
  {
    absl::MutexLock lock(&options_.network->mutex);
    if (--operations_ > 0 || !finished_) return;
  }
  reactor_->OnDone();
  options_.gone(this);
}

void SimServerCall::SendInitialMetadata() {
  absl::MutexLock lock(&options_.network->mutex);
  ++operations_;
  React([this] { reactor_->OnSendInitialMetadataDone(true); });
}

void SimServerCall::Read(grpc::ByteBuffer* message) {
  absl::MutexLock lock(&options_.network->mutex);
  ++operations_;
  options_.link->Read(Side::kServer, [this, message](grpc::ByteBuffer* bytes, bool ok) {
    if (ok) message->Swap(bytes);
    React([this, ok] { reactor_->OnReadDone(ok); });
  });
}

void SimServerCall::Write(const grpc::ByteBuffer* message, grpc::WriteOptions /*options*/) {
  absl::MutexLock lock(&options_.network->mutex);
  ++operations_;
  options_.link->Write(Side::kServer, *message,
                       [this](bool ok) { React([this, ok] { reactor_->OnWriteDone(ok); }); });
}

void SimServerCall::WriteAndFinish(const grpc::ByteBuffer* message, grpc::WriteOptions /*options*/,
                                   grpc::Status status) {
  absl::MutexLock lock(&options_.network->mutex);
  operations_ += 2;
  finished_ = true;
  options_.link->Write(Side::kServer, *message, [this](bool) { React([] {}); });
  options_.link->Finish(status);
  React([] {});
}

void SimServerCall::Finish(grpc::Status status) {
  absl::MutexLock lock(&options_.network->mutex);
  TACHO_CHECK(!finished_);
  ++operations_;
  finished_ = true;
  options_.link->Finish(status);
  React([] {});
}

}  // namespace tacho::simulate
