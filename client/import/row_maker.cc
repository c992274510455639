// Shared by the text formats: rows from names and numbers, and times where a file has none.
#include "client/import/row_maker.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/import/values.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

constexpr absl::Duration kDefaultStepTime = absl::Seconds(1);
// No clock shows an earlier time today; a smaller number counts from the beginning of a run.
constexpr int64_t kEarliestClockNs = int64_t{100'000'000} * 1'000'000'000;

constexpr absl::string_view kStepNames[] = {"step",       "global_step", "iteration", "iter",
                                            "train_step", "_step",       "steps",     "step_num"};
constexpr absl::string_view kTimeNames[] = {
    "time_unix_ns", "time_ns",   "timestamp_ns", "timestamp", "_timestamp",
    "time",         "wall_time", "wall time",    "walltime",  "timestamp_ms",
    "time_ms",      "datetime",  "date",         "ts",        "_runtime"};

template <size_t kSize>
bool Find(const absl::string_view (&names)[kSize], absl::string_view name, size_t* rank) {
  for (*rank = 0; *rank < kSize; ++*rank) {
    if (absl::EqualsIgnoreCase(names[*rank], name)) return true;
  }
  return false;
}

std::optional<int64_t> Checked(absl::Time time) {
  if (time < absl::UnixEpoch() || time > absl::FromUnixNanos(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  return absl::ToUnixNanos(time);
}

}  // namespace

bool IsStepName(absl::string_view name, size_t* rank) { return Find(kStepNames, name, rank); }
bool IsTimeName(absl::string_view name, size_t* rank) { return Find(kTimeNames, name, rank); }

std::string LineText(uint64_t line) { return absl::StrCat("line ", line); }

absl::Status OnDamagedLine(const absl::Status& reason, absl::string_view where,
                           const ReadOptions& options, RecordSink* sink) {
  if (!absl::IsInvalidArgument(reason) || absl::StrContains(reason.message(), "--start")) {
    return reason;
  }
  if (options.skip_damaged) {
    sink->AddSkipped(Skip::kDamaged, 1, where);
    return absl::OkStatus();
  }
  // A text that names a flag already says what helps.
  const bool has_remedy = absl::StrContains(reason.message(), "--");
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": ", reason.message(),
                   has_remedy ? "" : "; to pass over such lines: --skip-damaged"));
}

absl::Status RowMaker::Add(const std::string& metric, double value, absl::string_view where) {
  auto found = metrics_.find(metric);
  if (found == metrics_.end()) {
    std::optional<uint32_t> series;
    absl::Status status = sink_->FindSeries(options_.Key(metric), &series);
    if (!status.ok()) return status;
    found = metrics_.emplace(metric, series).first;
  }
  return AddCell(found->second, value, where);
}

absl::Status RowMaker::Add(const SeriesKey& key, double value, absl::string_view where) {
  std::optional<uint32_t> series;
  TACHO_RETURN_IF_ERROR(sink_->FindSeries(key, &series));
  return AddCell(series, value, where);
}

absl::Status RowMaker::Add(const JsonMember& member, absl::string_view where) {
  std::optional<double> value;
  switch (member.kind) {
    case JsonToken::kNull:
      return absl::OkStatus();
    case JsonToken::kTrue:
    case JsonToken::kFalse:
      value = member.kind == JsonToken::kTrue ? 1 : 0;
      break;
    case JsonToken::kNumber:
      value = ParseNumber(member.text);
      break;
    case JsonToken::kString:
      // A number in quotes is text; but NaN and infinity, which JSON lacks, stand in quotes.
      value = ParseNumber(member.text);
      if (value && value == value && value < HUGE_VAL && value > -HUGE_VAL) value.reset();
      break;
    default:
      sink_->AddSkipped(Skip::kNotScalar, 1, absl::StrCat(where, ", ", member.name));
      return absl::OkStatus();
  }
  if (value) return Add(member.name, *value, where);
  sink_->AddSkipped(Skip::kNotNumber, 1, absl::StrCat(where, ", ", member.name));
  return absl::OkStatus();
}

absl::Status RowMaker::AddCell(std::optional<uint32_t> series, double value,
                               absl::string_view where) {
  if (!series) {
    sink_->AddSkipped(Skip::kBadName, 1, where);
  } else if (IsStaleMarker(value)) {
    sink_->AddSkipped(Skip::kNoValue, 1, where);
  } else if (const auto [at, added] = in_row_.emplace(*series, row_.cells.size()); added) {
    row_.cells.push_back({*series, value});
  } else {
    sink_->AddSkipped(Skip::kTwice, 1, where);
    row_.cells[at->second].value = value;
  }
  return absl::OkStatus();
}

absl::Status RowMaker::Finish(std::optional<int64_t> time_unix_ns, std::optional<int64_t> step,
                              absl::string_view where) {
  absl::Status status;
  if (!row_.cells.empty()) {
    if (time_unix_ns) {
      row_.time_unix_ns = *time_unix_ns;
      row_.step = step;
      status = sink_->AddRow(row_);
    } else {
      sink_->AddSkipped(Skip::kNoTime, row_.cells.size(), where);
    }
  }
  row_.cells.clear();
  in_row_.clear();
  return status;
}

StepClock::StepClock(const ReadOptions& options, RecordSink* sink,
                     std::optional<absl::Duration> hint)
    : start_(options.start),
      step_time_(options.step_time.value_or(hint.value_or(kDefaultStepTime))),
      hinted_(hint.has_value() && !options.step_time.has_value()),
      sink_(sink) {}

absl::Status StepClock::Begin(absl::string_view how) {
  if (!start_) {
    return absl::InvalidArgumentError(
        "it has no times: say when its step 0 was, like --start 2026-01-31T12:00:00Z, and how long "
        "a step took, like --step-time 2s");
  }
  if (!noted_) {
    sink_->Note(absl::StrCat("times are made: it began at ",
                             absl::FormatTime(absl::RFC3339_full, *start_, absl::UTCTimeZone()),
                             how));
    noted_ = true;
  }
  return absl::OkStatus();
}

absl::Status StepClock::TimeOfStep(int64_t step, std::optional<int64_t>* time) {
  absl::Status status = Begin(absl::StrCat(", a step took ", absl::FormatDuration(step_time_),
                                           hinted_ ? " (the file's own average)" : ""));
  if (!status.ok()) return status;
  *time = Checked(*start_ + step * step_time_);
  return absl::OkStatus();
}

absl::Status StepClock::TimeSinceStart(absl::Duration elapsed, std::optional<int64_t>* time) {
  absl::Status status = Begin(", the file has the times since then");
  if (!status.ok()) return status;
  *time = Checked(*start_ + elapsed);
  return absl::OkStatus();
}

TimeField::TimeField(absl::string_view name, const ReadOptions& options, StepClock* clock)
    : unit_(static_cast<int>(absl::EqualsIgnoreCase(name, "_runtime") ? TimeUnit::kSeconds
                                                                      : UnitOfName(name))),
      zone_(options.zone),
      clock_(clock) {}

absl::Status TimeField::Read(absl::string_view text, std::optional<int64_t>* time) const {
  const auto unit = static_cast<TimeUnit>(unit_);
  *time = ParseTimeNs(text, unit, zone_);
  if (!*time || **time >= kEarliestClockNs || !ParseNumber(text)) return absl::OkStatus();
  return clock_->TimeSinceStart(absl::Nanoseconds(**time), time);
}

}  // namespace tacho::importer
