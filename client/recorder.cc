// The public recorder: it resolves options and the environment, and passes each call on to its
// state, which is absent when nothing is recorded.
#include "client/recorder.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "client/environment_identity.h"
#include "client/recorder_factory.h"
#include "client/recorder_state.h"
#include "client/ring/ring_file.h"
#include "client/ring/ring_format.h"
#include "client/ring/ring_text.h"
#include "client/ring/ring_writer.h"

namespace tacho::client {
namespace {

constexpr char kDefaultDirectory[] = "/run/tacho";
constexpr OpenRow kNoRow;
constexpr size_t kMaxGroupBytes = 256;  // As the collector allows people who set one.

int64_t Read(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);  // By the vDSO: no system call.
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t SystemNow() { return Read(CLOCK_REALTIME); }
int64_t SystemMonotonic() { return Read(CLOCK_MONOTONIC); }

const char* SystemEnvironment(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): only while opening.
}

// Returns what is wrong.
std::string Resolve(const RecorderOptions& options, RingFileOptions* out) {
  AttemptIdentity identity = FindIdentity(options);
  if (!identity.trouble.empty()) return identity.trouble;
  out->job = std::move(identity.job);
  out->task = identity.task;
  out->attempt = identity.attempt;
  out->directory =
      options.directory.empty() ? EnvironmentOf(options, "TACHO_RING_DIR") : options.directory;
  if (out->directory.empty()) out->directory = kDefaultDirectory;
  out->record_bytes =
      std::bit_ceil(std::clamp(options.ring_bytes, kMinRecordBytes, kMaxRecordBytes));
  out->mode = options.ring_mode;
  out->created_unix_ns = NowUnixNs(options);
  return "";
}

EnvironmentGetter GetterOf(const RecorderOptions& options) {
  return options.environment == nullptr ? &SystemEnvironment : options.environment;
}

}  // namespace

std::string EnvironmentOf(const RecorderOptions& options, const char* name) {
  const char* value = GetterOf(options)(name);
  return value == nullptr ? "" : value;
}

AttemptIdentity FindIdentity(const RecorderOptions& options) {
  AttemptIdentity identity =
      FindIdentity(options.job, options.task, options.attempt, GetterOf(options));
  if (!identity.trouble.empty()) return identity;
  if (identity.job.empty()) {
    identity.trouble = "the job has no name: set TACHO_JOB or RecorderOptions::job";
  } else if (identity.job.size() > kMaxJobBytes || !IsCleanText(identity.job)) {
    identity.trouble = "the job's name must be 1 to 256 bytes of UTF-8 without control characters";
  }
  return identity;
}

int64_t NowUnixNs(const RecorderOptions& options) {
  return options.now_unix_ns == nullptr ? SystemNow() : options.now_unix_ns();
}

Recorder RecorderFactory::Make(std::unique_ptr<RecorderBackend> backend,
                               const RecorderOptions& options) {
  const RecorderClocks clocks = {
      .unix_ns = options.now_unix_ns == nullptr ? &SystemNow : options.now_unix_ns,
      .monotonic_ns =
          options.now_monotonic_ns == nullptr ? &SystemMonotonic : options.now_monotonic_ns};
  Recorder recorder;
  recorder.state_ =
      std::make_unique<RecorderState>(std::move(backend), clocks, options.histogram_interval_ns);
  recorder.row_ = recorder.state_->row();
  const std::string group =
      options.group.empty() ? EnvironmentOf(options, "TACHO_GROUP") : options.group;
  if (!group.empty()) recorder.SetAttribute("group", CleanText(group, kMaxGroupBytes));
  return recorder;
}

Recorder RecorderFactory::Failed(const char* why) noexcept {
  Recorder recorder;
  std::fprintf(stderr, "tacho: nothing is recorded: %s\n", why);
  try {
    recorder.error_ = why;
  } catch (...) {
    // Standard error has the reason.
  }
  return recorder;
}

Recorder::Recorder() noexcept : row_(&kNoRow) {}

Recorder::Recorder(Recorder&& other) noexcept : Recorder() { *this = std::move(other); }

Recorder& Recorder::operator=(Recorder&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(row_, other.row_);
  std::swap(error_, other.error_);
  return *this;
}

Recorder::~Recorder() {
  if (state_ == nullptr) return;
  if (state_->LeaveExit()) {
    state_->Close();
  } else {
    // exit() has closed this very state or is about to.
    static_cast<void>(state_.release());
  }
}

Recorder Recorder::Open(const RecorderOptions& options) noexcept {
  try {
    RingFileOptions file;
    auto ring = std::make_unique<RingFile>();
    std::string trouble = Resolve(options, &file);
    if (trouble.empty()) trouble = ring->Create(file);
    if (!trouble.empty()) return RecorderFactory::Failed(trouble.c_str());
    return RecorderFactory::Make(std::make_unique<RingWriter>(std::move(ring)), options);
  } catch (...) {
    // All that can be thrown above.
    return RecorderFactory::Failed("out of memory");
  }
}

std::string Recorder::path() const noexcept {
  try {
    return state_ == nullptr ? "" : state_->backend().path();
  } catch (...) {
    return "";
  }
}

void Recorder::LeaveToExit() noexcept {
  if (state_ != nullptr) state_->LeaveToExit();
}

uint64_t Recorder::refused() const noexcept { return state_ == nullptr ? 0 : state_->refused(); }

Metric Recorder::Gauge(std::string_view name, std::string_view unit,
                       std::string_view help) noexcept {
  if (state_ == nullptr) return Metric();
  return state_->DeclareMetric(MetricType::kGauge, name, unit, help);
}

Metric Recorder::Counter(std::string_view name, std::string_view unit,
                         std::string_view help) noexcept {
  if (state_ == nullptr) return Metric();
  return state_->DeclareMetric(MetricType::kCounter, name, unit, help);
}

HistogramMetric Recorder::Histogram(std::string_view name, std::string_view unit,
                                    std::string_view help,
                                    const HistogramBuckets& buckets) noexcept {
  if (state_ == nullptr) return HistogramMetric();
  return state_->DeclareHistogram(name, unit, help, buckets);
}

Metric Recorder::StepPhase(std::string_view name) noexcept {
  return state_ == nullptr ? Metric() : state_->DeclarePhase(name);
}

CollectiveMetric Recorder::StepCollective(std::string_view name,
                                          std::optional<uint32_t> peer) noexcept {
  return state_ == nullptr ? CollectiveMetric() : state_->DeclareCollective(name, peer);
}

StepScope Recorder::Step(int64_t step) noexcept {
  const bool begun = state_ != nullptr && state_->BeginStep(step);
  return StepScope(begun ? state_.get() : nullptr);
}

void Recorder::RefuseValue() noexcept {
  if (state_ != nullptr) state_->Refuse("a value is set for a metric that was refused");
}

void Recorder::Add(Metric metric, double amount) noexcept {
  if (state_ != nullptr) state_->Add(metric, amount);
}

void Recorder::Observe(HistogramMetric histogram, double value) noexcept {
  if (state_ != nullptr) state_->Observe(histogram, value);
}

void Recorder::CommitStep(int64_t step) noexcept {
  if (state_ != nullptr) state_->Commit(step, state_->now_unix_ns());
}

void Recorder::CommitStep(int64_t step, int64_t time_unix_ns) noexcept {
  if (state_ != nullptr) state_->Commit(step, time_unix_ns);
}

void Recorder::Commit() noexcept {
  if (state_ != nullptr) state_->Commit(std::nullopt, state_->now_unix_ns());
}

void Recorder::Event(std::string_view kind, std::string_view message,
                     std::span<const EventField> fields) noexcept {
  if (state_ != nullptr) state_->AddEvent(state_->last_step(), kind, message, fields);
}

void Recorder::EventAtStep(int64_t step, std::string_view kind, std::string_view message,
                           std::span<const EventField> fields) noexcept {
  if (state_ != nullptr) state_->AddEvent(step, kind, message, fields);
}

void Recorder::SetAttribute(std::string_view key, std::string_view value) noexcept {
  if (state_ != nullptr) state_->SetAttribute(key, value);
}

}  // namespace tacho::client
