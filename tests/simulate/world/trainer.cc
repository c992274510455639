#include "tests/simulate/world/trainer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/ring/ring_file.h"
#include "proto/base/check.h"
#include "proto/base/timed_wait.h"

namespace tacho::simulate {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kRingBytes = uint64_t{256} << 10;
// An attempt ends after so many rows, on average.
constexpr uint64_t kRowsOfAttempt = 40;

}  // namespace

Trainer::Trainer(TrainerOptions options, Model* model)
    : options_(std::move(options)), model_(model) {}

Trainer::~Trainer() { EndThread(); }

void Trainer::Start() {
  if (thread_.joinable()) return;
  const OnHost on(options_.host);
  stopping_ = false;
  thread_ = std::thread([this] { Run(); });
}

void Trainer::EndThread() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void Trainer::Stop() {
  EndThread();
  if (ring_ != nullptr) ring_->Close({});
  ring_.reset();
}

void Trainer::LosePower() {
  EndThread();
  ring_.reset();
  fs::remove_all(options_.directory);
}

bool Trainer::HasRings() const {
  return fs::exists(options_.directory) && !fs::is_empty(options_.directory);
}

void Trainer::Run() {
  for (;;) {
    const absl::Duration jitter = absl::Milliseconds(static_cast<int64_t>(ScheduleRandom() % 100));
    {
      absl::MutexLock lock(&mutex_);
      if (AwaitFor(&mutex_, absl::Condition(&stopping_), options_.period + jitter)) return;
    }
    if (ring_ == nullptr) {
      BeginAttempt();
    } else if (ScheduleRandom() % kRowsOfAttempt == 0) {
      if (ScheduleRandom() % 2 == 0) ring_->Close({});
      ring_.reset();
    } else {
      WriteRow();
    }
  }
}

void Trainer::BeginAttempt() {
  auto file = std::make_unique<client::RingFile>();
  const std::string trouble = file->Create({.directory = options_.directory,
                                            .job = JobOf(options_.agent, kRingSource),
                                            .task = static_cast<uint32_t>(options_.agent),
                                            .attempt = attempt_,
                                            .record_bytes = kRingBytes,
                                            .created_unix_ns = absl::ToUnixNanos(absl::Now())});
  TACHO_CHECK(trouble.empty());
  ++attempt_;
  ring_ = std::make_unique<client::RingWriter>(std::move(file));
  for (int column = 0; column < kColumns; ++column) {
    TACHO_CHECK(
        ring_->AddMetric(client::MetricType::kGauge, MetricOf(kRingSource, column), "", ""));
  }
}

void Trainer::WriteRow() {
  const Model::Source source = {options_.agent, kRingSource};
  const bool right = IsClockRight(options_.host);
  const int64_t now = absl::ToUnixNanos(absl::Now());
  const Model::Row& row = model_->Make(source, ++number_, now, right);
  double values[kColumns];
  for (int column = 0; column < kColumns; ++column) {
    values[column] = ValueOf(static_cast<uint64_t>(options_.agent), kRingSource, number_, column);
  }
  ring_->AddRow(row.time_ns, static_cast<int64_t>(number_), values);
  model_->Recorded(source, number_);
}

}  // namespace tacho::simulate
