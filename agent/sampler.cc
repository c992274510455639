// One thread a source. A source that hangs is left behind at the end with everything that its
// thread uses, which is why that is shared.
#include "agent/sampler.h"

#include <cstddef>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/timed_wait.h"

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

struct Sampler::Worker {
  Worker(std::unique_ptr<Source> source, RowSink* sink, SourceLedger* ledger,
         const AgentClock& clock)
      : turn(std::move(source), sink, ledger, clock) {}

  SourceTurn turn;
  std::thread thread;
  bool ended = false;  // Guarded by Shared::mutex.
};

struct Sampler::Shared {
  explicit Shared(SamplerOptions with)
      : options(std::move(with)),
        gate(options.sink),
        ledger(options.ledger != nullptr ? options.ledger : std::make_shared<SourceLedger>()) {}

  const SamplerOptions options;
  SinkGate gate;
  const std::shared_ptr<SourceLedger> ledger;
  std::vector<std::unique_ptr<Worker>> workers = {};  // Not changed once they run.
  absl::Mutex mutex;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  size_t running ABSL_GUARDED_BY(mutex) = 0;
};

Sampler::Sampler(std::vector<std::unique_ptr<Source>> sources, SamplerOptions options)
    : shared_(std::make_shared<Shared>(std::move(options))) {
  for (auto& source : sources) {
    shared_->workers.push_back(std::make_unique<Worker>(
        std::move(source), &shared_->gate, shared_->ledger.get(), shared_->options.clock));
  }
}

Sampler::~Sampler() { Stop(); }

void Sampler::Start() {
  TACHO_CHECK(!started_);
  started_ = true;
  {
    absl::MutexLock lock(&shared_->mutex);
    shared_->running = shared_->workers.size();
  }
  for (const auto& worker : shared_->workers) {
    worker->thread = std::thread([shared = shared_, one = worker.get()] { Run(shared, one); });
  }
}

void Sampler::Run(const std::shared_ptr<Shared>& shared, Worker* worker) {
  const std::function<absl::Time()>& monotonic = shared->options.clock.monotonic;
  for (;;) {
    const absl::Time due = worker->turn.Poll();
    absl::MutexLock lock(&shared->mutex);
    if (AwaitFor(&shared->mutex, absl::Condition(&shared->stopping), due - monotonic())) {
      break;
    }
  }
  worker->turn.PollLast(monotonic() + shared->options.last_polls);
  absl::MutexLock lock(&shared->mutex);
  worker->ended = true;
  TACHO_CHECK(shared->running > 0);
  --shared->running;
}

std::vector<std::string> Sampler::Stop() {
  if (!std::exchange(started_, false)) return {};
  std::vector<std::string> left;
  {
    absl::MutexLock lock(&shared_->mutex);
    shared_->stopping = true;
    const auto all_ended = [](size_t* running) { return *running == 0; };
    AwaitFor(&shared_->mutex, absl::Condition(+all_ended, &shared_->running),
             shared_->options.stop_bound);
    for (const auto& worker : shared_->workers) {
      if (worker->ended) continue;
      left.emplace_back(worker->turn.name());
      worker->thread.detach();
    }
  }
  for (const auto& worker : shared_->workers) {
    if (worker->thread.joinable()) worker->thread.join();
  }
  shared_->gate.Close();
  if (!left.empty()) {
    shared_->options.log.Warn(
        "left sources behind that did not return; what they would have found is not recorded",
        {{"sources", absl::StrJoin(left, ", ")},
         {"waited", absl::FormatDuration(shared_->options.stop_bound)}});
  }
  return left;
}

}  // namespace tacho::agent
