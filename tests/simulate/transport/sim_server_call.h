// The collector's end of a simulated stream, as a reactor knows it from gRPC.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "grpcpp/support/status.h"
#include "tests/simulate/transport/sim_link.h"

namespace tacho::simulate {

using ByteReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;
// Makes the reactor of a new stream, as a method of a callback service does. `peer` is unique.
using Acceptor = std::function<ByteReactor*(const std::string& peer)>;

// Reactions come one after the other on the listener's thread, never from within the call that
// causes them. OnDone() is the last: after Finish(), and once every operation has had its reaction.
// Nothing of it enters gRPC's core but the bytes, whose slices need no grpc_init().
class SimServerCall final
    : public grpc::ServerCallbackReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  struct Options {
    NetworkState* network = nullptr;  // Not owned.
    std::shared_ptr<SimLink> link;
    // Runs a function on the listener's thread, without the network's mutex; needs it.
    std::function<void(std::function<void()>)> post;
    // Called there after OnDone(), without the mutex: destroys this.
    std::function<void(SimServerCall*)> gone;
  };
  // Needs the network's mutex.
  explicit SimServerCall(Options options);
  ~SimServerCall() override;

  // Makes the reactor and starts what it has asked for. On the listener's thread, without the
  // mutex.
  void Begin(const Acceptor& acceptor, const std::string& peer);

  // The reactor's, on any thread.
  void SendInitialMetadata() override;
  void Read(grpc::ByteBuffer* message) override;
  void Write(const grpc::ByteBuffer* message, grpc::WriteOptions options) override;
  void WriteAndFinish(const grpc::ByteBuffer* message, grpc::WriteOptions options,
                      grpc::Status status) override;
  void Finish(grpc::Status status) override;

 private:
  // gRPC's own counting, which this does not use: it would run OnDone() on threads of gRPC's core.
  grpc::internal::ServerReactor* reactor() override { return reactor_; }
  void CallOnDone() override {}

  // Runs a reaction later, and counts it as an operation until then. Needs the mutex.
  void React(std::function<void()> reaction);
  // The operation has had its reaction. On the listener's thread, without the mutex.
  void Release();

  const Options options_;
  ByteReactor* reactor_ = nullptr;
  // These need the mutex.
  int operations_ = 1;  // Begin().
  bool finished_ = false;
};

}  // namespace tacho::simulate
