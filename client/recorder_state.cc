// The implementation of a recorder: it checks whatever the trainer passes, refuses and counts what
// a ring cannot hold, and hands the rest to the backend. Nothing here throws or ends the process,
// because the training matters more than its record.
#include "client/recorder_state.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "client/ring/ring_text.h"
#include "proto/base/check.h"
#include "proto/base/stale_marker.h"
#include "proto/base/task_end.h"

namespace tacho::client {
namespace {

constexpr double kNoValue = StaleMarker();  // A recorder may be opened before main().
constexpr std::string_view kSumSuffix = "_sum";
constexpr char kWrongText[] =
    "a metric's name must be 1 to 256 bytes of UTF-8 without control characters";

// States of this process that exit() flushes. A trainer that calls exit(), or keeps its recorder in
// a variable that outlives main(), runs no destructor in time. Those beyond are flushed by their
// destructors only. There is no lock, which a fork() could copy while it is held. Initialised by
// the compiler and never destroyed, so that it can be used at any time of the process.
constexpr size_t kMaxFlushed = 64;
constinit std::array<std::atomic<RecorderState*>, kMaxFlushed> flushed_at_exit = {};
constinit std::atomic<bool> exiting = false;

void FlushAll(int exit_code, void* /*unused*/) {
  exiting = true;
  for (auto& slot : flushed_at_exit) {
    if (RecorderState* const state = slot.exchange(nullptr)) state->FlushAtExit(exit_code);
  }
}

// Puts `to` where `from` stands. False if it stands nowhere.
bool ReplaceFlushed(RecorderState* from, RecorderState* to) {
  return std::any_of(flushed_at_exit.begin(), flushed_at_exit.end(), [=](auto& slot) {
    RecorderState* expected = from;
    return slot.compare_exchange_strong(expected, to);
  });
}

}  // namespace

RecorderState::RecorderState(std::unique_ptr<RecorderBackend> backend, RecorderClocks clocks,
                             int64_t histogram_interval_ns)
    : backend_(std::move(backend)),
      clocks_(clocks),
      histogram_interval_ns_(histogram_interval_ns),
      values_(kMaxMetrics, kNoValue),
      keeps_(kMaxMetrics, 0) {
  TACHO_DCHECK(backend_ != nullptr && clocks_.unix_ns != nullptr &&
               clocks_.monotonic_ns != nullptr);
  row_.values = values_.data();
  histograms_.reserve(kMaxHistograms);
  // Not atexit(), which does not say what the process returns.
  static const bool registered = on_exit(FlushAll, nullptr) == 0;
  if (registered) ReplaceFlushed(nullptr, this);
}

void RecorderState::Refuse(const char* what) noexcept {
  if (!Mine()) return;
  if (refused_++ == 0) {
    std::fprintf(stderr, "tacho: job record incomplete: %s; further refusals are only counted\n",
                 what);
  }
  backend_->SetRefused(refused_);
}

const char* RecorderState::WrongName(std::string_view name) const {
  if (name.empty() || name.size() > kMaxMetricNameBytes || !IsCleanText(name)) return kWrongText;
  std::string_view histogram = name;
  if (histogram.ends_with(kSumSuffix)) histogram.remove_suffix(kSumSuffix.size());
  if (histogram_by_name_.contains(name) || histogram_by_name_.contains(histogram)) {
    return "a metric and a histogram have the same name";
  }
  return nullptr;
}

// Returns kNone, having refused it, if it cannot be.
uint32_t RecorderState::Declare(MetricType type, std::string_view name, std::string_view unit,
                                std::string_view help) {
  const auto refuse = [this](const char* why) {
    Refuse(why);
    return kNone;
  };
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) {
    if (types_[known->second] == type) return known->second;
    return refuse("a metric is declared with two types");
  }
  if (const char* wrong = WrongName(name)) return refuse(wrong);
  const uint32_t index = row_.metric_count;
  if (index == kMaxMetrics) return refuse("more than 1024 metrics");
  TACHO_DCHECK(types_.size() == index);
  const std::string clean_unit = CleanText(unit, kMaxUnitBytes);
  const std::string clean_help = CleanText(help, kMaxHelpBytes);
  types_.reserve(types_.size() + 1);
  const auto added = by_name_.emplace(name, index).first;
  if (!backend_->AddMetric(type, name, clean_unit, clean_help)) {
    by_name_.erase(added);
    return refuse("no room for the definition of another metric");
  }
  types_.push_back(type);
  keeps_[index] = type == MetricType::kCounter ? 1 : 0;
  ++row_.metric_count;
  return index;
}

Metric RecorderState::DeclareMetric(MetricType type, std::string_view name, std::string_view unit,
                                    std::string_view help) noexcept {
  if (!Mine()) return Metric();
  try {
    return Metric(Declare(type, name, unit, help));
  } catch (...) {
    Refuse("out of memory");
    return Metric();
  }
}

HistogramMetric RecorderState::DeclareHistogram(std::string_view name, std::string_view unit,
                                                std::string_view help,
                                                const HistogramBuckets& buckets) noexcept {
  if (!Mine()) return HistogramMetric();
  const auto refuse = [this](const char* why) {
    Refuse(why);
    return HistogramMetric();
  };
  try {
    std::optional<std::vector<double>> bounds = MakeBounds(buckets);
    if (!bounds) {
      return refuse("a histogram needs first > 0, factor > 1, 1 to 64 finite bounds");
    }
    const auto known = histogram_by_name_.find(name);
    if (known != histogram_by_name_.end()) {
      const std::span<const double> before = histograms_[known->second].bounds();
      if (std::equal(bounds->begin(), bounds->end(), before.begin(), before.end())) {
        return HistogramMetric(known->second);
      }
      return refuse("a histogram is declared with two sets of buckets");
    }
    // The collector has a metric for the sum, too.
    if (name.empty() || name.size() + kSumSuffix.size() > kMaxMetricNameBytes ||
        !IsCleanText(name)) {
      return refuse(
          "a histogram's name must be 1 to 252 bytes of UTF-8 without control characters");
    }
    const std::string sum_name = std::string(name).append(kSumSuffix);
    if (by_name_.contains(name) || by_name_.contains(sum_name)) {
      return refuse("a metric and a histogram have the same name");
    }
    if (histograms_.size() == kMaxHistograms) return refuse("more than 32 histograms");
    LiveHistogram live(*bounds);
    const auto index = static_cast<uint32_t>(histograms_.size());
    const auto added = histogram_by_name_.emplace(name, index).first;
    if (!backend_->AddHistogram(name, CleanText(unit, kMaxUnitBytes),
                                CleanText(help, kMaxHelpBytes), *bounds)) {
      histogram_by_name_.erase(added);
      return refuse("no room for the definition of another histogram");
    }
    TACHO_DCHECK(histograms_.capacity() > index);
    histograms_.push_back(std::move(live));
    return HistogramMetric(index);
  } catch (...) {
    return refuse("out of memory");
  }
}

void RecorderState::Add(Metric metric, double amount) noexcept {
  if (metric.index_ >= row_.metric_count) {
    return Refuse("a value is set for a metric that was refused");
  }
  double& value = values_[metric.index_];
  value = IsStaleMarker(value) ? amount : value + amount;
}

void RecorderState::Observe(HistogramMetric histogram, double value) noexcept {
  if (histogram.index_ >= histograms_.size()) {
    return Refuse("a value is observed for a histogram that was refused");
  }
  histograms_[histogram.index_].Observe(value);
}

void RecorderState::ClearGauges() {
  TACHO_DCHECK(row_.metric_count <= kMaxMetrics);
  const uint8_t* keeps = keeps_.data();
  double* values = values_.data();
  for (uint32_t i = 0; i < row_.metric_count; ++i) values[i] = keeps[i] != 0 ? values[i] : kNoValue;
}

void RecorderState::Commit(std::optional<int64_t> step, int64_t time_unix_ns) noexcept {
  if (!Mine()) return;
  if (row_.metric_count == 0 && histograms_.empty()) return Refuse("a row without any metric");
  if (time_unix_ns < 0) return Refuse("a row before 1970");
  last_thread_ = static_cast<uint64_t>(pthread_self());
  try {
    if (row_.metric_count != 0) {
      backend_->AddRow(time_unix_ns, step, {row_.values, row_.metric_count});
      last_step_ = step;
      end_recorded_ = false;
      ClearGauges();
    }
    if (!histograms_.empty() && (time_unix_ns - histograms_recorded_ns_ >= histogram_interval_ns_ ||
                                 time_unix_ns < histograms_recorded_ns_)) {
      RecordHistograms(step, time_unix_ns);
    }
  } catch (...) {
    Refuse("out of memory");
  }
}

void RecorderState::RecordHistograms(std::optional<int64_t> step, int64_t time_unix_ns) {
  for (uint32_t i = 0; i < histograms_.size(); ++i) {
    if (!histograms_[i].TakeChanged()) continue;
    backend_->AddHistogramState(i, time_unix_ns, step, histograms_[i].sum(),
                                histograms_[i].counts());
    histograms_recorded_ns_ = time_unix_ns;
  }
}

void RecorderState::AddEvent(std::optional<int64_t> step, std::string_view kind,
                             std::string_view message,
                             std::span<const EventField> fields) noexcept {
  if (!Mine()) return;
  if (kind.empty() || kind.size() > kMaxEventKindBytes || !IsCleanText(kind)) {
    return Refuse("an event's kind must be 1 to 128 bytes of UTF-8");
  }
  if (fields.size() > kMaxEventFields) return Refuse("an event with more than 32 fields");
  for (const auto& [name, value] : fields) {
    if (name.empty() || name.size() > kMaxEventFieldNameBytes || !IsCleanText(name)) {
      return Refuse("the name of an event's field must be 1 to 128 bytes of UTF-8");
    }
  }
  try {
    std::vector<std::string> values;
    values.reserve(fields.size());  // The views below point into its elements.
    std::vector<EventField> clean;
    for (const auto& [name, value] : fields) {
      values.push_back(CleanText(value, kMaxEventFieldValueBytes));
      clean.emplace_back(name, values.back());
    }
    backend_->AddEvent(std::max<int64_t>(clocks_.unix_ns(), 0), step, kind,
                       CleanText(message, kMaxEventMessageBytes), clean);
    if (IsEndKind(kind)) end_recorded_ = true;
  } catch (...) {
    Refuse("out of memory");
  }
}

void RecorderState::SetAttribute(std::string_view key, std::string_view value) noexcept {
  if (!Mine()) return;
  if (key.empty() || key.size() > kMaxAttributeKeyBytes || !IsCleanText(key)) {
    return Refuse("an attribute's key must be 1 to 128 bytes of UTF-8");
  }
  try {
    std::string clean = CleanText(value, kMaxAttributeValueBytes);
    std::string& last = attributes_[std::string(key)];
    if (clean == last) return;  // An empty value of a new key removes nothing.
    if (!backend_->AddAttribute(key, clean)) return Refuse("no room for another attribute");
    last = std::move(clean);
  } catch (...) {
    Refuse("out of memory");
  }
}

bool RecorderState::LeaveExit() noexcept { return ReplaceFlushed(this, nullptr) || !exiting; }

void RecorderState::CloseBackend(int exit_code) noexcept {
  try {
    backend_->Close({.time_unix_ns = std::max<int64_t>(clocks_.unix_ns(), 0),
                     .exit_code = exit_code,
                     .recorded = end_recorded_});
  } catch (...) {
    Refuse("out of memory");
  }
}

void RecorderState::Close(std::optional<int> exit_code) noexcept {
  if (!Mine()) return;
  try {
    RecordHistograms(last_step_, std::max<int64_t>(clocks_.unix_ns(), 0));
  } catch (...) {
    Refuse("out of memory");
  }
  if (exit_code.has_value() && !end_recorded_) RecordExit(*exit_code);
  CloseBackend(exit_code.value_or(0));
}

void RecorderState::RecordExit(int exit_code) noexcept {
  char code[16];
  const auto end = std::to_chars(std::begin(code), std::end(code), exit_code).ptr;
  const std::string_view text(code, static_cast<size_t>(end - code));
  const EventField fields[] = {{"status", exit_code == 0 ? "succeeded" : "failed"},
                               {"exit_code", text}};
  // Nothing may throw here, so the message needs no memory of the heap.
  char message[64] = "The process returned ";
  char* const behind =
      std::copy(text.begin(), text.end(), message + std::string_view(message).size());
  AddEvent(last_step_, exit_code == 0 ? kEndedKind : kExitedKind,
           {message, static_cast<size_t>(behind - message)}, fields);
}

void RecorderState::FlushAtExit(int exit_code) noexcept {
  if (!Mine()) return;
  if (last_thread_ == static_cast<uint64_t>(pthread_self())) return Close(exit_code);
  CloseBackend(exit_code);  // The thread that records may be about to write.
}

void RecorderState::LeaveToExit() noexcept { last_thread_ = static_cast<uint64_t>(pthread_self()); }

}  // namespace tacho::client
