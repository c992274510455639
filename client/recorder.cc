#include "client/recorder.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <vector>

#include "client/ring_file.h"
#include "client/ring_format.h"
#include "client/ring_text.h"
#include "client/ring_writer.h"

namespace tacho::client {
namespace {

constexpr char kDefaultDirectory[] = "/run/tacho";
const double kNoValue = std::bit_cast<double>(kStaleMarkerBits);

int64_t SystemNow() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);  // By the vDSO: no system call.
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): only while opening.
  return value == nullptr ? "" : value;
}

// The number to use, or what is wrong with the environment's.
std::string Resolve(const std::optional<uint32_t>& given, const char* variable, uint32_t* out) {
  *out = given.value_or(0);
  const std::string text = given ? "" : Environment(variable);
  if (text.empty()) return "";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error == std::errc() && end == text.data() + text.size()) return "";
  return std::string(variable) + "=\"" + CleanText(text, 64) +
         "\" is no number from 0 to 4294967295";
}

std::string Resolve(const RecorderOptions& options, RingFileOptions* out) {
  out->job = options.job.empty() ? Environment("TACHO_JOB") : options.job;
  if (out->job.empty()) return "the job has no name: set TACHO_JOB or RecorderOptions::job";
  if (out->job.size() > kMaxJobBytes || !IsCleanText(out->job)) {
    return "the job's name must be 1 to 256 bytes of UTF-8 without control characters";
  }
  out->directory = options.directory.empty() ? Environment("TACHO_RING_DIR") : options.directory;
  if (out->directory.empty()) out->directory = kDefaultDirectory;
  out->record_bytes =
      std::bit_ceil(std::clamp(options.ring_bytes, kMinRecordBytes, kMaxRecordBytes));
  std::string trouble = Resolve(options.task, "TACHO_TASK", &out->task);
  if (trouble.empty()) trouble = Resolve(options.attempt, "TACHO_ATTEMPT", &out->attempt);
  return trouble;
}

void Say(const std::string& what) { std::fprintf(stderr, "tacho: %s\n", what.c_str()); }

}  // namespace

struct Recorder::State {
  explicit State(int64_t (*clock)()) : now(clock) {}

  int64_t (*const now)();
  RingFile file;
  std::optional<RingWriter> writer;  // Set once the file is there.

  // By metric, allocated for kMaxMetrics at once so that a late declaration moves nothing.
  std::vector<double> values = std::vector<double>(kMaxMetrics, kNoValue);
  std::vector<uint8_t> keeps = std::vector<uint8_t>(kMaxMetrics, 0);  // A counter keeps its value.
  std::vector<MetricType> types;
  std::map<std::string, uint32_t, std::less<>> by_name;
  std::map<std::string, std::string, std::less<>> attributes;  // As last written.
  std::optional<int64_t> last_step;
  uint64_t refused = 0;

  bool Mine() const { return file.OwnedByThisProcess(); }

  void Refuse(const char* what) noexcept {
    if (!Mine()) return;
    if (refused++ == 0) {
      std::fprintf(stderr, "tacho: job record incomplete: %s; further refusals are only counted\n",
                   what);
    }
    writer->SetRefused(refused);
  }
};

Recorder::Recorder() noexcept = default;

Recorder::Recorder(Recorder&& other) noexcept { *this = std::move(other); }

Recorder& Recorder::operator=(Recorder&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(values_, other.values_);
  std::swap(metric_count_, other.metric_count_);
  std::swap(error_, other.error_);
  return *this;
}

Recorder::~Recorder() {
  if (state_ != nullptr && state_->Mine()) state_->writer->SetClosed();
}

Recorder Recorder::Open(const RecorderOptions& options) noexcept {
  Recorder recorder;
  try {
    RingFileOptions file;
    std::string trouble = Resolve(options, &file);
    auto now = options.now_unix_ns == nullptr ? &SystemNow : options.now_unix_ns;
    auto state = std::make_unique<State>(now);
    file.created_unix_ns = now();
    if (trouble.empty()) trouble = state->file.Create(file);
    if (trouble.empty()) {
      state->writer.emplace(state->file.base(), file.record_bytes);
      recorder.values_ = state->values.data();
      recorder.state_ = std::move(state);
      return recorder;
    }
    recorder.error_ = trouble;
    Say("nothing is recorded: " + trouble);
  } catch (...) {
    // Out of memory is all that can be thrown above.
    std::fputs("tacho: nothing is recorded: out of memory\n", stderr);
  }
  return recorder;
}

std::string Recorder::path() const noexcept {
  try {
    return state_ == nullptr ? "" : state_->file.path();
  } catch (...) {
    return "";
  }
}

uint64_t Recorder::refused() const noexcept { return state_ == nullptr ? 0 : state_->refused; }

Metric Recorder::Gauge(std::string_view name, std::string_view unit,
                       std::string_view help) noexcept {
  return Declare(static_cast<uint32_t>(MetricType::kGauge), name, unit, help);
}

Metric Recorder::Counter(std::string_view name, std::string_view unit,
                         std::string_view help) noexcept {
  return Declare(static_cast<uint32_t>(MetricType::kCounter), name, unit, help);
}

Metric Recorder::Declare(uint32_t type_number, std::string_view name, std::string_view unit,
                         std::string_view help) noexcept {
  if (state_ == nullptr || !state_->Mine()) return Metric();
  State& state = *state_;
  const auto type = static_cast<MetricType>(type_number);
  const auto refuse = [&](const char* why) {
    state.Refuse(why);
    return Metric();
  };
  try {
    const auto known = state.by_name.find(name);
    if (known != state.by_name.end()) {
      if (state.types[known->second] == type) return Metric(known->second);
      return refuse("a metric is declared with two types");
    }
    if (name.empty() || name.size() > kMaxMetricNameBytes || !IsCleanText(name)) {
      return refuse("a metric's name must be 1 to 256 bytes of UTF-8 without control characters");
    }
    if (metric_count_ == kMaxMetrics) return refuse("more than 1024 metrics");
    const std::string clean_unit = CleanText(unit, kMaxUnitBytes);
    const std::string clean_help = CleanText(help, kMaxHelpBytes);
    state.types.reserve(state.types.size() + 1);
    const auto added = state.by_name.emplace(name, metric_count_).first;
    if (!state.writer->AddMetric(type, name, clean_unit, clean_help)) {
      state.by_name.erase(added);
      return refuse("no room for the definition of another metric");
    }
    state.types.push_back(type);
  } catch (...) {
    return refuse("out of memory");
  }
  state.keeps[metric_count_] = type == MetricType::kCounter ? 1 : 0;
  return Metric(metric_count_++);
}

void Recorder::Add(Metric metric, double amount) noexcept {
  if (metric.index_ >= metric_count_) return RefuseValue();
  double& value = values_[metric.index_];
  value = std::bit_cast<uint64_t>(value) == kStaleMarkerBits ? amount : value + amount;
}

void Recorder::RefuseValue() noexcept {
  if (state_ != nullptr) state_->Refuse("a value is set for a metric that was refused");
}

void Recorder::CommitStep(int64_t step) noexcept {
  if (state_ != nullptr) CommitRow(step, state_->now());
}

void Recorder::CommitStep(int64_t step, int64_t time_unix_ns) noexcept {
  if (state_ != nullptr) CommitRow(step, time_unix_ns);
}

void Recorder::Commit() noexcept {
  if (state_ != nullptr) CommitRow(std::nullopt, state_->now());
}

void Recorder::CommitRow(std::optional<int64_t> step, int64_t time_unix_ns) noexcept {
  State& state = *state_;
  if (!state.Mine()) return;
  if (metric_count_ == 0) return state.Refuse("a row without any metric");
  if (time_unix_ns < 0) return state.Refuse("a row before 1970");
  state.writer->AddRow(time_unix_ns, step, {values_, metric_count_});
  state.last_step = step;
  const uint8_t* keeps = state.keeps.data();
  for (uint32_t i = 0; i < metric_count_; ++i) {
    values_[i] = keeps[i] != 0 ? values_[i] : kNoValue;
  }
}

void Recorder::Event(std::string_view kind, std::string_view message,
                     std::span<const EventField> fields) noexcept {
  if (state_ == nullptr || !state_->Mine()) return;
  State& state = *state_;
  if (kind.empty() || kind.size() > kMaxEventKindBytes || !IsCleanText(kind)) {
    return state.Refuse("an event's kind must be 1 to 128 bytes of UTF-8");
  }
  if (fields.size() > kMaxEventFields) return state.Refuse("an event with more than 32 fields");
  for (const auto& [name, value] : fields) {
    if (name.empty() || name.size() > kMaxEventFieldNameBytes || !IsCleanText(name)) {
      return state.Refuse("the name of an event's field must be 1 to 128 bytes of UTF-8");
    }
  }
  try {
    std::vector<std::string> values;
    values.reserve(fields.size());  // The views below point into its elements.
    std::vector<RingWriter::Field> clean;
    for (const auto& [name, value] : fields) {
      values.push_back(CleanText(value, kMaxEventFieldValueBytes));
      clean.emplace_back(name, values.back());
    }
    state.writer->AddEvent(std::max<int64_t>(state.now(), 0), state.last_step, kind,
                           CleanText(message, kMaxEventMessageBytes), clean);
  } catch (...) {
    state.Refuse("out of memory");
  }
}

void Recorder::SetAttribute(std::string_view key, std::string_view value) noexcept {
  if (state_ == nullptr || !state_->Mine()) return;
  State& state = *state_;
  if (key.empty() || key.size() > kMaxAttributeKeyBytes || !IsCleanText(key)) {
    return state.Refuse("an attribute's key must be 1 to 128 bytes of UTF-8");
  }
  try {
    std::string clean = CleanText(value, kMaxAttributeValueBytes);
    std::string& last = state.attributes[std::string(key)];
    if (clean == last) return;  // Of a new key: empty, which removes what is not there.
    if (!state.writer->AddAttribute(key, clean)) {
      return state.Refuse("no room for another attribute");
    }
    last = std::move(clean);
  } catch (...) {
    state.Refuse("out of memory");
  }
}

}  // namespace tacho::client
