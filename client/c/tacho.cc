// The C interface: handles over a Recorder. No exception crosses it; a null handle is an error,
// and a null text counts as empty.
#include "client/c/tacho.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/recorder.h"

using tacho::client::CollectiveMetric;
using tacho::client::CollectiveScope;
using tacho::client::HistogramBuckets;
using tacho::client::HistogramMetric;
using tacho::client::Metric;
using tacho::client::Recorder;
using tacho::client::RecorderOptions;
using tacho::client::StepScope;

// The recorder behind a C handle.
struct tacho_recorder {
  Recorder recorder;
  std::string path;
  pid_t pid = 0;             // The process that opened it.
  int32_t metric_count = 0;  // Handles below it are metrics.
  int32_t histogram_count = 0;
  std::optional<StepScope> step;
  int32_t collective_count = 0;
  std::optional<CollectiveScope> collective;  // After the step: it ends first.
  char error[512] = "";
};

namespace {

std::string_view Text(const char* text) { return text == nullptr ? "" : text; }

// A handle is the metric's own index, so that setting a value looks nothing up.
static_assert(sizeof(Metric) == sizeof(tacho_metric));
static_assert(std::bit_cast<tacho_metric>(Metric()) == TACHO_NO_METRIC);
static_assert(std::bit_cast<tacho_histogram>(HistogramMetric()) == TACHO_NO_HISTOGRAM);
static_assert(std::bit_cast<tacho_collective>(CollectiveMetric()) == TACHO_NO_COLLECTIVE);

Metric FromHandle(tacho_metric handle) { return std::bit_cast<Metric>(handle); }

// The caller's options, whatever version of the header it was compiled with.
tacho_options Complete(const tacho_options* given) {
  tacho_options options = TACHO_OPTIONS_INIT;
  if (given != nullptr) std::memcpy(&options, given, std::min(given->size, sizeof(options)));
  return options;
}

RecorderOptions Translate(const tacho_options& given) {
  RecorderOptions options;
  options.directory = Text(given.directory);
  options.job = Text(given.job);
  // A number too large for the option's type becomes the nearest one, which the recorder refuses.
  if (given.task >= 0)
    options.task = static_cast<uint32_t>(std::min<int64_t>(given.task, UINT32_MAX));
  if (given.attempt >= 0) {
    options.attempt = static_cast<uint32_t>(std::min<int64_t>(given.attempt, UINT32_MAX));
  }
  if (given.ring_bytes != 0) options.ring_bytes = given.ring_bytes;
  options.now_unix_ns = given.now_unix_ns;
  options.now_monotonic_ns = given.now_monotonic_ns;
  if (given.histogram_interval_ns >= 0) options.histogram_interval_ns = given.histogram_interval_ns;
  if (given.ring_mode != 0) options.ring_mode = given.ring_mode;
  options.group = Text(given.group);
  return options;
}

int Refused(tacho_recorder* recorder, const char* what, const char* name, const char* rule) {
  std::snprintf(recorder->error, sizeof(recorder->error), "%s \"%.200s\" was refused: %s", what,
                name == nullptr ? "" : name, rule);
  return TACHO_REFUSED;
}

// TACHO_OK, or why nothing can be recorded.
int Check(const tacho_recorder* recorder) {
  if (recorder == nullptr) return TACHO_INVALID;
  return recorder->recorder.recording() ? TACHO_OK : TACHO_NOT_RECORDING;
}

tacho_metric Declared(tacho_recorder* recorder, Metric metric, const char* name) {
  const auto handle = std::bit_cast<tacho_metric>(metric);
  if (handle != TACHO_NO_METRIC) {
    recorder->metric_count = std::max(recorder->metric_count, handle + 1);
    return handle;
  }
  // In a child of fork() nothing is declared, and nothing is counted as refused.
  if (recorder->pid == getpid()) {
    Refused(recorder, "the metric", name,
            "a name has 1 to 256 bytes of UTF-8 without control characters and one type, and there "
            "are at most 1024 metrics");
  }
  return TACHO_NO_METRIC;
}

// Requires a recorder that records.
int SetValue(tacho_recorder* recorder, tacho_metric metric, double value) {
  if (metric >= 0 && metric < recorder->metric_count) {
    recorder->recorder.Set(FromHandle(metric), value);
    return TACHO_OK;
  }
  recorder->recorder.Set(Metric(), value);
  return Refused(recorder, "a value", "", "its metric was refused, or is none of this recorder");
}

int SetValues(tacho_recorder* recorder, const tacho_metric* metrics, const double* values,
              size_t count) {
  if (count != 0 && (metrics == nullptr || values == nullptr)) return TACHO_INVALID;
  int result = TACHO_OK;
  for (size_t i = 0; i < count; ++i) result |= SetValue(recorder, metrics[i], values[i]);
  return result;
}

// Makes the call, and returns whether it was refused.
template <typename Call>
int Counted(tacho_recorder* recorder, const char* what, const char* name, const char* rule,
            Call call) {
  const uint64_t before = recorder->recorder.refused();
  call(&recorder->recorder);
  return recorder->recorder.refused() == before ? TACHO_OK : Refused(recorder, what, name, rule);
}

// Applies a call to the open step; some calls end it.
template <typename Call>
int InStep(tacho_recorder* recorder, bool last, Call call) {
  if (const int trouble = Check(recorder); trouble != TACHO_OK) return trouble;
  if (!recorder->step.has_value()) {
    return Refused(recorder, "the end or phase of a step", "", "no step has begun");
  }
  const uint64_t before = recorder->recorder.refused();
  call(&*recorder->step);
  if (last) recorder->collective.reset();
  if (last) recorder->step.reset();
  if (recorder->recorder.refused() == before) return TACHO_OK;
  return Refused(recorder, "a step's phase, collective or row", "",
                 "it is none of this recorder, or a collective within another one");
}

template <typename Call>
int CommitRow(tacho_recorder* recorder, Call call) {
  return Counted(recorder, "a row", "", "no metric is declared, or its time is before 1970", call);
}

// Gives the translated fields to `record`, which records the event.
template <typename Record>
int RecordEvent(tacho_recorder* recorder, const char* kind, const tacho_field* fields, size_t count,
                const Record& record) {
  if (const int trouble = Check(recorder); trouble != TACHO_OK) return trouble;
  if (count != 0 && fields == nullptr) return TACHO_INVALID;
  constexpr char kRule[] =
      "its kind and the names of its at most 32 fields have 1 to 128 bytes of UTF-8";
  try {
    std::vector<Recorder::EventField> translated;
    // One more than is allowed is enough to be refused.
    for (size_t i = 0; i < std::min<size_t>(count, 33); ++i) {
      translated.emplace_back(Text(fields[i].name), Text(fields[i].value));
    }
    return Counted(recorder, "the event", kind, kRule,
                   [&](Recorder* to) { record(to, translated); });
  } catch (...) {
    return Refused(recorder, "the event", kind, "out of memory");
  }
}

}  // namespace

extern "C" {

const char* tacho_version(void) { return TACHO_VERSION; }

tacho_recorder* tacho_open(const tacho_options* options) {
  try {
    auto* opened = new tacho_recorder;
    opened->pid = getpid();
    try {
      opened->recorder = Recorder::Open(Translate(Complete(options)));
      opened->path = opened->recorder.path();
      std::snprintf(opened->error, sizeof(opened->error), "%s", opened->recorder.error().c_str());
    } catch (...) {
      std::snprintf(opened->error, sizeof(opened->error), "out of memory");
    }
    return opened;
  } catch (...) {
    return nullptr;
  }
}

void tacho_close(tacho_recorder* recorder) { delete recorder; }

void tacho_leave_to_exit(tacho_recorder* recorder) {
  if (recorder == nullptr) return;
  recorder->collective.reset();
  recorder->step.reset();
  recorder->recorder.LeaveToExit();
}

int tacho_recording(const tacho_recorder* recorder) {
  return Check(recorder) == TACHO_OK && recorder->pid == getpid() ? 1 : 0;
}

const char* tacho_error(const tacho_recorder* recorder) {
  return recorder == nullptr ? "no recorder: NULL was given" : recorder->error;
}

const char* tacho_path(const tacho_recorder* recorder) {
  return recorder == nullptr ? "" : recorder->path.c_str();
}

uint64_t tacho_refused(const tacho_recorder* recorder) {
  return recorder == nullptr ? 0 : recorder->recorder.refused();
}

tacho_metric tacho_gauge(tacho_recorder* recorder, const char* name, const char* unit,
                         const char* help) {
  if (Check(recorder) != TACHO_OK) return TACHO_NO_METRIC;
  return Declared(recorder, recorder->recorder.Gauge(Text(name), Text(unit), Text(help)), name);
}

tacho_metric tacho_counter(tacho_recorder* recorder, const char* name, const char* unit,
                           const char* help) {
  if (Check(recorder) != TACHO_OK) return TACHO_NO_METRIC;
  return Declared(recorder, recorder->recorder.Counter(Text(name), Text(unit), Text(help)), name);
}

int tacho_set(tacho_recorder* recorder, tacho_metric metric, double value) {
  const int trouble = Check(recorder);
  return trouble != TACHO_OK ? trouble : SetValue(recorder, metric, value);
}

int tacho_add(tacho_recorder* recorder, tacho_metric metric, double amount) {
  if (const int trouble = Check(recorder); trouble != TACHO_OK) return trouble;
  if (metric < 0 || metric >= recorder->metric_count) return SetValue(recorder, metric, amount);
  recorder->recorder.Add(FromHandle(metric), amount);
  return TACHO_OK;
}

int tacho_set_values(tacho_recorder* recorder, const tacho_metric* metrics, const double* values,
                     size_t count) {
  const int trouble = Check(recorder);
  return trouble != TACHO_OK ? trouble : SetValues(recorder, metrics, values, count);
}

int tacho_commit_step(tacho_recorder* recorder, int64_t step) {
  if (const int trouble = Check(recorder); trouble != TACHO_OK) return trouble;
  return CommitRow(recorder, [&](Recorder* to) { to->CommitStep(step); });
}

int tacho_commit_step_at(tacho_recorder* recorder, int64_t step, int64_t time_unix_ns) {
  if (const int trouble = Check(recorder); trouble != TACHO_OK) return trouble;
  return CommitRow(recorder, [&](Recorder* to) { to->CommitStep(step, time_unix_ns); });
}

int tacho_commit(tacho_recorder* recorder) {
  if (const int trouble = Check(recorder); trouble != TACHO_OK) return trouble;
  return CommitRow(recorder, [](Recorder* to) { to->Commit(); });
}

int tacho_log(tacho_recorder* recorder, int64_t step, const tacho_metric* metrics,
              const double* values, size_t count) {
  if (const int trouble = Check(recorder); trouble != TACHO_OK) return trouble;
  const int set = SetValues(recorder, metrics, values, count);
  if (set == TACHO_INVALID) return set;
  return set | CommitRow(recorder, [&](Recorder* to) { to->CommitStep(step); });
}

int tacho_begin_step(tacho_recorder* recorder, int64_t step) {
  if (const int trouble = Check(recorder); trouble != TACHO_OK) return trouble;
  return Counted(recorder, "a step", "", "it begins within another one", [&](Recorder* to) {
    StepScope scope = to->Step(step);
    if (!recorder->step.has_value()) recorder->step.emplace(std::move(scope));
  });
}

int tacho_end_step(tacho_recorder* recorder) {
  return InStep(recorder, /*last=*/true, [](StepScope* step) { step->End(); });
}

int tacho_abandon_step(tacho_recorder* recorder) {
  return InStep(recorder, /*last=*/true, [](StepScope* step) { step->Abandon(); });
}

tacho_metric tacho_declare_phase(tacho_recorder* recorder, const char* name) {
  if (Check(recorder) != TACHO_OK) return TACHO_NO_METRIC;
  return Declared(recorder, recorder->recorder.StepPhase(Text(name)), name);
}

int tacho_enter_phase(tacho_recorder* recorder, tacho_metric phase) {
  return InStep(recorder, /*last=*/false, [&](StepScope* step) { step->Phase(FromHandle(phase)); });
}

int tacho_leave_phase(tacho_recorder* recorder) {
  return InStep(recorder, /*last=*/false, [](StepScope* step) { step->EndPhase(); });
}

tacho_collective tacho_declare_collective(tacho_recorder* recorder, const char* name,
                                          int64_t peer) {
  if (Check(recorder) != TACHO_OK) return TACHO_NO_COLLECTIVE;
  constexpr char kRule[] =
      "a name has a letter or a digit and at most 200 bytes, a peer is the number of a task, and "
      "there are at most 16 collectives, each peer counted";
  auto handle = TACHO_NO_COLLECTIVE;
  const int result = Counted(recorder, "the collective", name, kRule, [&](Recorder* to) {
    std::optional<uint32_t> other;
    // A number too large is refused as an empty name is.
    if (peer >= 0) other = static_cast<uint32_t>(std::min<int64_t>(peer, UINT32_MAX));
    handle = std::bit_cast<tacho_collective>(
        to->StepCollective(peer > UINT32_MAX ? "" : Text(name), other));
  });
  if (result == TACHO_OK) {
    recorder->collective_count = std::max(recorder->collective_count, handle + 1);
  }
  return handle;
}

int tacho_begin_collective(tacho_recorder* recorder, tacho_collective collective, uint64_t bytes) {
  return InStep(recorder, /*last=*/false, [&](StepScope* step) {
    const uint64_t before = recorder->recorder.refused();
    const bool known = collective >= 0 && collective < recorder->collective_count;
    CollectiveScope scope = step->Collective(
        known ? std::bit_cast<CollectiveMetric>(collective) : CollectiveMetric(), bytes);
    if (recorder->recorder.refused() == before) recorder->collective.emplace(std::move(scope));
  });
}

int tacho_end_collective(tacho_recorder* recorder) {
  return InStep(recorder, /*last=*/false, [&](StepScope*) { recorder->collective.reset(); });
}

tacho_histogram tacho_declare_histogram(tacho_recorder* recorder, const char* name,
                                        const char* unit, const char* help, double first,
                                        double factor, uint32_t bounds) {
  if (Check(recorder) != TACHO_OK) return TACHO_NO_HISTOGRAM;
  HistogramBuckets buckets;
  if (first != 0) buckets.first = first;
  if (factor != 0) buckets.factor = factor;
  if (bounds != 0) buckets.count = bounds;
  const HistogramMetric histogram =
      recorder->recorder.Histogram(Text(name), Text(unit), Text(help), buckets);
  const auto handle = std::bit_cast<tacho_histogram>(histogram);
  recorder->histogram_count = std::max(recorder->histogram_count, handle + 1);
  if (handle == TACHO_NO_HISTOGRAM && recorder->pid == getpid()) {
    Refused(recorder, "the histogram", name,
            "a name is that of one thing, its buckets ascend, and there are at most 32 histograms");
  }
  return handle;
}

int tacho_observe(tacho_recorder* recorder, tacho_histogram histogram, const double* values,
                  size_t count) {
  if (const int trouble = Check(recorder); trouble != TACHO_OK) return trouble;
  if (count != 0 && values == nullptr) return TACHO_INVALID;
  const bool known = histogram >= 0 && histogram < recorder->histogram_count;
  const auto to = known ? std::bit_cast<HistogramMetric>(histogram) : HistogramMetric();
  return Counted(recorder, "an observation", "", "its histogram was refused", [&](Recorder* from) {
    for (size_t i = 0; i < count; ++i) from->Observe(to, values[i]);
  });
}

int tacho_event(tacho_recorder* recorder, const char* kind, const char* message,
                const tacho_field* fields, size_t count) {
  return RecordEvent(recorder, kind, fields, count, [&](Recorder* to, const auto& translated) {
    to->Event(Text(kind), Text(message), translated);
  });
}

int tacho_event_at_step(tacho_recorder* recorder, int64_t step, const char* kind,
                        const char* message, const tacho_field* fields, size_t count) {
  return RecordEvent(recorder, kind, fields, count, [&](Recorder* to, const auto& translated) {
    to->EventAtStep(step, Text(kind), Text(message), translated);
  });
}

int tacho_set_attribute(tacho_recorder* recorder, const char* key, const char* value) {
  if (const int trouble = Check(recorder); trouble != TACHO_OK) return trouble;
  return Counted(recorder, "the attribute", key,
                 "a key has 1 to 128 bytes of UTF-8, and all values of a run 128 KiB together",
                 [&](Recorder* to) { to->SetAttribute(Text(key), Text(value)); });
}

}  // extern "C"
