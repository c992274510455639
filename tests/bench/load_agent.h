// One agent of the load: a stream of tacho.v1.Ingest on a connection of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/client_callback.h"
#include "tests/bench/fleet_messages.h"

namespace tacho::bench {

struct LoadAgentOptions {
  std::string address;
  uint64_t window = 16;  // Batches on their way: sent, and not yet acknowledged.
};

// Thread-safe. Must outlive its stream: destroy it after on_done.
class LoadAgent final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // `on_ready` is called when the collector has welcomed the agent for the first time. At the end
  // of a stream comes either `on_done`, with "" or what went wrong, or, if the collector was
  // overloaded, `on_retry`: Connect() again after a pause, and what is not yet acknowledged is sent
  // again.
  LoadAgent(const LoadAgentOptions& options, AgentMessages messages, std::function<void()> on_ready,
            std::function<void(LoadAgent*)> on_retry,
            std::function<void(const std::string&)> on_done);

  void Connect() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends the layouts; batches once they are allowed.
  void Start();
  // Lets `batches` more be sent.
  void Allow(uint64_t batches) ABSL_LOCKS_EXCLUDED(mutex_);

  // After on_done. From sent to acknowledged, by batch.
  const std::vector<float>& latencies_ms() const { return latencies_ms_; }
  uint64_t retries() const { return retries_; }

  void OnWriteDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  // Starts the next write, or the end of the stream, if it is due and nothing is in the way.
  void WriteOn() ABSL_LOCKS_EXCLUDED(mutex_);
  const grpc::ByteBuffer* NextMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Welcomed(uint64_t durable_sequence) ABSL_LOCKS_EXCLUDED(mutex_);
  void Acknowledged(uint64_t durable_sequence) ABSL_LOCKS_EXCLUDED(mutex_);

  const LoadAgentOptions options_;
  const AgentMessages messages_;
  const std::function<void()> on_ready_;
  const std::function<void(LoadAgent*)> on_retry_;
  const std::function<void(const std::string&)> on_done_;
  std::unique_ptr<grpc::ClientContext> context_;  // The newest stream's.
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>> stub_;
  grpc::ByteBuffer read_buffer_;
  std::vector<float> latencies_ms_;
  bool was_welcomed_ = false;
  uint64_t retries_ = 0;
  uint64_t fruitless_retries_ = 0;  // Since anything was acknowledged.

  absl::Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  size_t layouts_sent_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t allowed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;  // On the newest stream, with what it resumed after.
  uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t acknowledged_at_end_ ABSL_GUARDED_BY(mutex_) = 0;  // The previous stream's.
  std::vector<double> sent_at_ ABSL_GUARDED_BY(mutex_);       // For the first time; 0 is not yet.
};

}  // namespace tacho::bench
