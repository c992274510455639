#include "agent/sampler.h"

#include <cstddef>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/str_join.h"

namespace tacho::agent {

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
    if (shared->mutex.AwaitWithTimeout(absl::Condition(&shared->stopping), due - monotonic())) {
      break;
    }
  }
  worker->turn.PollLast(monotonic() + shared->options.last_polls);
  absl::MutexLock lock(&shared->mutex);
  worker->ended = true;
  --shared->running;
}

std::vector<std::string> Sampler::Stop() {
  if (!std::exchange(started_, false)) return {};
  std::vector<std::string> left;
  {
    absl::MutexLock lock(&shared_->mutex);
    shared_->stopping = true;
    const auto all_ended = [](size_t* running) { return *running == 0; };
    shared_->mutex.AwaitWithTimeout(absl::Condition(+all_ended, &shared_->running),
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
