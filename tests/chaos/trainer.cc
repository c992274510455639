#include "tests/chaos/trainer.h"

#include <bit>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace tacho::chaos {
namespace {

constexpr uint32_t kMaxMetrics = 6;
constexpr uint64_t kStaleMarker = 0x7ff0000000000002;  // "No value".

// A recorder's clock is a plain function, so its time lies outside of the trainer.
thread_local int64_t recorder_now_ns = 0;
int64_t RecorderNow() { return recorder_now_ns; }

}  // namespace

Trainer::Trainer(std::string ring_dir, std::string job, uint32_t task, uint64_t seed,
                 Record* record)
    : ring_dir_(std::move(ring_dir)),
      job_(std::move(job)),
      task_(task),
      random_(seed),
      record_(record),
      time_ns_(absl::ToUnixNanos(absl::Now()) - int64_t{3'600'000'000'000}) {
  Begin();
}

void Trainer::Begin() {
  recorder_now_ns = time_ns_;
  recorder_.emplace(client::Recorder::Open({.directory = ring_dir_,
                                            .job = job_,
                                            .task = task_,
                                            .attempt = attempt_,
                                            .ring_bytes = uint64_t{8} << 20,
                                            .now_unix_ns = RecorderNow}));
  step_of_ring_ = -1;
  recorder_->Gauge("m0", "1", "Of the chaos campaign.");  // A row needs a metric.
}

void Trainer::Train(int rows) {
  for (int i = 0; i < rows; ++i) {
    const uint64_t chance = random_() % 1000;
    if (chance < 150) Event();
    if (chance >= 150 && chance < 180) Attribute();
    if (chance >= 180 && chance < 190 && metrics_ < kMaxMetrics) ++metrics_;
    if (chance == 999) {
      End();
      ++attempt_;
      Begin();
    }
    Row();
  }
}

double Trainer::Value() {
  switch (random_() % 8) {
    case 0:
      return std::numeric_limits<double>::infinity();
    case 1:
      return -0.0;
    case 2:  // A NaN with a payload.
      return std::bit_cast<double>(0x7ff8000000000000 | (random_() & 0xffffffff));
    case 3: {
      const uint64_t any = random_();
      return std::bit_cast<double>(any == kStaleMarker ? 0 : any);
    }
    default:
      return static_cast<double>(random_() % 1'000'000) / 1000;
  }
}

void Trainer::Row() {
  time_ns_ += 1 + static_cast<int64_t>(random_() % 1'000'000);
  ++step_;
  for (uint32_t m = 0; m < metrics_; ++m) {
    if (random_() % 10 == 0) continue;  // No value of this metric in this row.
    const std::string name = absl::StrCat("m", m);
    const double value = Value();
    recorder_->Set(recorder_->Gauge(name, "1", "Of the chaos campaign."), value);
    record_->samples[{name, task_}].push_back(
        {time_ns_, step_, attempt_, std::bit_cast<uint64_t>(value)});
  }
  recorder_->CommitStep(step_, time_ns_);
  step_of_ring_ = step_;
}

void Trainer::Event() {
  const std::string message = absl::StrCat("t", task_, "-", events_++);
  recorder_now_ns = time_ns_;
  recorder_->Event("chaos", message);
  record_->events.push_back({.message = message,
                             .task = task_,
                             .attempt = attempt_,
                             .time_ns = time_ns_,
                             .step = step_of_ring_});
}

void Trainer::Attribute() {
  const std::string key = absl::StrCat("t", task_, ".", random_() % 3);
  const std::string value = absl::StrCat(++attributes_);
  recorder_->SetAttribute(key, value);
  record_->attributes[attempt_][key] = value;
}

}  // namespace tacho::chaos
