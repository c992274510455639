// A scripted collector on loopback, for the tests of the sender.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "tacho/v1/ingest.grpc.pb.h"

namespace tacho::agent {

inline uint64_t SequenceOf(const v1::ClientMessage& message) {
  if (message.has_batch()) return message.batch().sequence();
  if (message.has_gap()) return message.gap().sequence();
  if (message.has_event()) return message.event().sequence();
  return message.attributes().sequence();
}

// Keeps what is durable over its streams, as a collector does.
class FakeCollector : public v1::Ingest::Service {
 public:
  using AgentStream = grpc::ServerReaderWriter<v1::ServerMessage, v1::ClientMessage>;

  FakeCollector() { Start(); }
  ~FakeCollector() override { Stop(); }

  // On the same port as before, if there was one.
  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address(), grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    if (more != nullptr) builder.RegisterService(more);
    server_ = builder.BuildAndStart();
  }
  void Stop() {
    if (server_ != nullptr) server_->Shutdown(absl::ToChronoTime(absl::Now()));
    server_.reset();
  }

  // As if the end of its log were cut: it has no more than the first messages.
  void ForgetAfter(uint64_t sequence) {
    absl::MutexLock lock(&mutex_);
    durable_ = sequence;
    taken_.erase(taken_.upper_bound(sequence), taken_.end());
    values_.erase(values_.upper_bound(sequence), values_.end());
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  grpc::Service* more = nullptr;  // Offered beside, from the next Start() on. Not owned.
  // Asked for each Hello; a status that is not OK is the answer to it. Null: all are welcome.
  std::function<grpc::Status(const v1::Hello&)> greet;
  // Asked for each message with a sequence; a status that is not OK ends the stream there.
  std::function<grpc::Status(const v1::ClientMessage&)> judge;
  // Acknowledge once in so many messages, or when flush asks for it.
  uint64_t ack_every = 1;
  v1::Welcome welcome;
  v1::Throttle throttle;  // Sent after Welcome if it says anything.

  uint64_t durable() {
    absl::MutexLock lock(&mutex_);
    return durable_;
  }
  bool WaitForDurable(uint64_t sequence) {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (durable() < sequence && absl::Now() < end) absl::SleepFor(absl::Milliseconds(2));
    return durable() >= sequence;
  }
  // Values by sequence, and the sequences in the order in which they came, stream by stream.
  std::map<uint64_t, double> values() {
    absl::MutexLock lock(&mutex_);
    return values_;
  }
  std::vector<std::vector<uint64_t>> streams() {
    absl::MutexLock lock(&mutex_);
    return streams_;
  }
  std::map<std::string, std::string> attributes() {
    absl::MutexLock lock(&mutex_);
    return attributes_;
  }
  std::vector<v1::Gap> gaps() {
    absl::MutexLock lock(&mutex_);
    return gaps_;
  }
  std::vector<v1::Hello> hellos() {
    absl::MutexLock lock(&mutex_);
    return hellos_;
  }
  int most_ranges() {
    absl::MutexLock lock(&mutex_);
    return most_ranges_;
  }
  std::vector<v1::ClockReport> clocks() {
    absl::MutexLock lock(&mutex_);
    return clocks_;
  }
  uint64_t samples() {
    absl::MutexLock lock(&mutex_);
    return samples_;
  }
  uint64_t most_bytes() {  // The largest message had so many.
    absl::MutexLock lock(&mutex_);
    return most_bytes_;
  }
  int most_series() {  // The widest layout had so many.
    absl::MutexLock lock(&mutex_);
    return most_series_;
  }
  int undefined_layouts() {
    absl::MutexLock lock(&mutex_);
    return undefined_layouts_;
  }

  grpc::Status Stream(grpc::ServerContext*, AgentStream* stream) override {
    v1::ClientMessage message;
    if (!stream->Read(&message) || !message.has_hello()) return {grpc::StatusCode::INTERNAL, ""};
    v1::ServerMessage answer;
    {
      absl::MutexLock lock(&mutex_);
      hellos_.push_back(message.hello());
    }
    const grpc::Status greeted = greet ? greet(message.hello()) : grpc::Status::OK;
    if (!greeted.ok()) return greeted;
    {
      absl::MutexLock lock(&mutex_);
      streams_.emplace_back();
      *answer.mutable_welcome() = welcome;
      answer.mutable_welcome()->set_clock_unix_ns(absl::ToUnixNanos(absl::Now()));
      answer.mutable_welcome()->set_durable_sequence(
          std::max(durable_, welcome.durable_sequence()));
      AddAhead(answer.mutable_welcome());
      // Then the holes that the agent will not fill are closed, which the next Ack says.
      for (uint64_t s = durable_ + 1; s < message.hello().first_sequence(); ++s) taken_.insert(s);
      while (taken_.contains(durable_ + 1)) ++durable_;
    }
    stream->Write(answer);
    if (throttle.ByteSizeLong() > 0) {
      v1::ServerMessage slow_down;
      *slow_down.mutable_throttle() = throttle;
      stream->Write(slow_down);
    }
    return Receive(stream);
  }

 private:
  grpc::Status Receive(AgentStream* stream) {
    std::set<uint32_t> layouts;
    v1::ClientMessage message;
    uint64_t messages = 0;
    while (stream->Read(&message)) {
      NoteSize(message);
      if (message.has_layout()) {
        layouts.insert(message.layout().id());
        continue;
      }
      const grpc::Status verdict = judge ? judge(message) : grpc::Status::OK;
      if (!verdict.ok()) return verdict;
      Take(message, layouts);
      if (++messages % ack_every != 0) continue;
      v1::ServerMessage answer;
      FillAck(answer.mutable_ack());
      stream->Write(answer);
    }
    return grpc::Status::OK;
  }

  void NoteSize(const v1::ClientMessage& message) {
    absl::MutexLock lock(&mutex_);
    most_bytes_ = std::max<uint64_t>(most_bytes_, message.ByteSizeLong());
    most_series_ = std::max(most_series_, message.layout().series_size());
  }

  void FillAck(v1::Ack* ack) {
    absl::MutexLock lock(&mutex_);
    ack->set_durable_sequence(durable_);
    AddAhead(ack);
  }

  template <typename Message>
  void AddAhead(Message* message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (auto s = taken_.upper_bound(durable_); s != taken_.end(); ++s) {
      const int ranges = message->durable_ahead_size();
      v1::SequenceRange* range = ranges > 0 && message->durable_ahead(ranges - 1).last() + 1 == *s
                                     ? message->mutable_durable_ahead(ranges - 1)
                                     : message->add_durable_ahead();
      if (range->first() == 0) range->set_first(*s);
      range->set_last(*s);
    }
    most_ranges_ = std::max(most_ranges_, message->durable_ahead_size());
  }

  void Take(const v1::ClientMessage& message, const std::set<uint32_t>& layouts) {
    absl::MutexLock lock(&mutex_);
    const uint64_t sequence = SequenceOf(message);
    if (message.has_clock()) clocks_.push_back(message.clock());
    streams_.back().push_back(sequence);
    taken_.insert(sequence);
    if (message.has_batch()) {
      if (!layouts.contains(message.batch().layout())) ++undefined_layouts_;
      values_[sequence] = message.batch().values(0);
      samples_ += static_cast<uint64_t>(message.batch().values_size());
    }
    if (message.has_attributes()) {
      for (const auto& [key, value] : message.attributes().values()) attributes_[key] = value;
    }
    if (message.has_gap()) {
      gaps_.push_back(message.gap());
      for (uint64_t s = message.gap().lost().first(); s <= message.gap().lost().last(); ++s) {
        taken_.insert(s);
      }
    }
    while (taken_.contains(durable_ + 1)) ++durable_;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  absl::Mutex mutex_;
  uint64_t durable_ = 0;
  std::set<uint64_t> taken_;
  std::map<uint64_t, double> values_;
  std::vector<std::vector<uint64_t>> streams_;
  std::map<std::string, std::string> attributes_;
  std::vector<v1::Gap> gaps_;
  std::vector<v1::ClockReport> clocks_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::Hello> hellos_;
  int undefined_layouts_ = 0;
  int most_ranges_ = 0;
  uint64_t samples_ = 0;
  uint64_t most_bytes_ = 0;
  int most_series_ = 0;
};

}  // namespace tacho::agent
