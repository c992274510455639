#include "tests/crash/dying_trainer.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <new>
#include <variant>

#include "client/ring/ring_reader.h"

namespace tacho::crash {
namespace {

// `next` is the row that is to follow; -1: any.
std::string CheckRows(const client::RingRows& read, int64_t* next) {
  if (read.metric_count != static_cast<uint32_t>(kDyingMetrics)) return "a row of other metrics";
  for (size_t i = 0; i < read.steps.size(); ++i) {
    const int64_t row = read.steps[i];
    if (*next >= 0 && row != *next) {
      return "row " + std::to_string(row) + " at the place of " + std::to_string(*next);
    }
    *next = row + 1;
    for (int m = 0; m < kDyingMetrics; ++m) {
      if (read.values[i * kDyingMetrics + static_cast<size_t>(m)] != DyingValue(row, m)) {
        return "row " + std::to_string(row) + " is torn";
      }
    }
  }
  return "";
}

}  // namespace

DyingRing ReadDyingRing(const std::string& ring) {
  DyingRing found;
  auto reader = client::RingReader::Open(ring);
  if (!reader.ok()) {
    found.wrong = reader.status().ToString();
    return found;
  }
  int64_t next = -1;
  client::RingCursor cursor;
  for (bool at_end = false; !at_end && found.wrong.empty();) {
    auto batch = (*reader)->Read(cursor);
    if (!batch.ok()) {
      found.wrong = batch.status().ToString();
      return found;
    }
    for (const client::RingPiece& piece : batch->pieces) {
      const auto* rows = std::get_if<client::RingRows>(&piece.content);
      if (rows == nullptr || !found.wrong.empty()) continue;
      found.wrong = CheckRows(*rows, &next);
      found.rows += static_cast<int64_t>(rows->steps.size());
    }
    found.lost += static_cast<int64_t>(batch->lost_rows);
    cursor = batch->end;
    at_end = batch->at_end;
  }
  if (found.wrong.empty() && (*reader)->corruptions() != 0) found.wrong = "a record is damaged";
  if (found.wrong.empty() && (*reader)->WriterAlive()) found.wrong = "its writer seems to live";
  if (found.wrong.empty() && (*reader)->closed()) found.wrong = "it seems to be closed";
  return found;
}

DyingTrainer::DyingTrainer(const DyingTrainerOptions& options) {
  void* const shared =
      mmap(nullptr, sizeof(*closed_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  closed_ = new (shared) std::atomic<int64_t>(0);
  pid_ = fork();
  if (pid_ == 0) Train(options);
  ring_ = options.directory + "/job.3." + std::to_string(pid_) + ".ring";
}

DyingTrainer::~DyingTrainer() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    WaitForDeath();
  }
  munmap(closed_, sizeof(*closed_));
}

void DyingTrainer::WaitForFirstRow() const {
  while (*closed_ == 0 && kill(pid_, 0) == 0) sched_yield();
}

int DyingTrainer::WaitForDeath() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

void DyingTrainer::Train(const DyingTrainerOptions& options) const {
  std::signal(SIGSEGV, SIG_DFL);  // A sanitizer would have its own handler.
  constexpr rlimit kNoCore = {0, 0};
  setrlimit(RLIMIT_CORE, &kNoCore);
  client::Recorder recorder = client::Recorder::Open({.directory = options.directory,
                                                      .job = "job",
                                                      .task = 3,
                                                      .ring_bytes = options.ring_bytes,
                                                      .histogram_interval_ns = 0});
  if (!recorder.recording()) _exit(98);
  std::array<client::Metric, kDyingMetrics> metrics;
  for (int m = 0; m < kDyingMetrics; ++m) {
    metrics[static_cast<size_t>(m)] = recorder.Gauge("m" + std::to_string(m), "", "");
  }
  const client::HistogramMetric norms = recorder.Histogram("norms", "", "", {.count = 4});
  for (int64_t row = 0; row < options.max_rows; ++row) {
    for (int m = 0; m < kDyingMetrics; ++m) {
      recorder.Set(metrics[static_cast<size_t>(m)], DyingValue(row, m));
    }
    if (row % 8 == 0) recorder.Observe(norms, 1);
    options.before_row(row);
    recorder.CommitStep(row, row);
    closed_->store(row + 1, std::memory_order_relaxed);
    if (row % 97 == 0) recorder.Event("checkpoint_saved", "Of many bytes, to be torn.");
  }
  while (true) pause();
}

}  // namespace tacho::crash
