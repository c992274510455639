#include "agent/sink_gate.h"

namespace tacho::agent {
namespace {

absl::Status Closed() { return absl::CancelledError("the agent has ended"); }

}  // namespace

void SinkGate::Close() {
  absl::MutexLock lock(&mutex_);
  sink_ = nullptr;
}

absl::StatusOr<uint32_t> SinkGate::DefineLayout(const v1::Layout& layout) {
  absl::MutexLock lock(&mutex_);
  if (sink_ == nullptr) return Closed();
  return sink_->DefineLayout(layout);
}

absl::Status SinkGate::AppendRows(uint32_t layout, std::span<const int64_t> times_unix_ns,
                                  std::span<const int64_t> steps, std::span<const double> values,
                                  const Checkpoint& checkpoint) {
  absl::MutexLock lock(&mutex_);
  if (sink_ == nullptr) return Closed();
  return sink_->AppendRows(layout, times_unix_ns, steps, values, checkpoint);
}

absl::Status SinkGate::AppendEvent(const v1::Event& event, const Checkpoint& checkpoint) {
  absl::MutexLock lock(&mutex_);
  if (sink_ == nullptr) return Closed();
  return sink_->AppendEvent(event, checkpoint);
}

absl::Status SinkGate::AppendAttributes(const v1::Attributes& attributes,
                                        const Checkpoint& checkpoint) {
  absl::MutexLock lock(&mutex_);
  if (sink_ == nullptr) return Closed();
  return sink_->AppendAttributes(attributes, checkpoint);
}

absl::Status SinkGate::WriteCheckpoint(const Checkpoint& checkpoint) {
  absl::MutexLock lock(&mutex_);
  if (sink_ == nullptr) return Closed();
  return sink_->WriteCheckpoint(checkpoint);
}

std::string SinkGate::ReadCheckpoint(absl::string_view key) const {
  absl::MutexLock lock(&mutex_);
  return sink_ == nullptr ? std::string() : sink_->ReadCheckpoint(key);
}

}  // namespace tacho::agent
