// Shared by the readers of text formats: rows from names and numbers, and times where a file has
// none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/import/json_reader.h"
#include "client/import/record_sink.h"

namespace tacho::importer {

// Makes one row after the other: values, then Finish(). Used from one thread.
class RowMaker {
 public:
  RowMaker(const ReadOptions& options, RecordSink* sink) : options_(options), sink_(sink) {}

  // Adds a value of the metric, or of another series of the same task, attempt and host. If the
  // value is skipped, `where` shows a person its place.
  absl::Status Add(const std::string& metric, double value, absl::string_view where);
  absl::Status Add(const SeriesKey& key, double value, absl::string_view where);
  // Adds a number, or text that says NaN or infinity; skips anything else. null is no value.
  absl::Status Add(const JsonMember& member, absl::string_view where);
  // Without a time the row is skipped.
  absl::Status Finish(std::optional<int64_t> time_unix_ns, std::optional<int64_t> step,
                      absl::string_view where);
  bool empty() const { return row_.cells.empty(); }

 private:
  absl::Status AddCell(std::optional<uint32_t> series, double value, absl::string_view where);

  const ReadOptions& options_;
  RecordSink* const sink_;
  absl::flat_hash_map<std::string, std::optional<uint32_t>> metrics_;
  absl::flat_hash_map<uint32_t, size_t> in_row_;  // Series to its cell.
  Row row_;
};

// Makes times for a file that has none, or only times since its beginning.
class StepClock {
 public:
  // `hint` is the length of a step according to the file.
  StepClock(const ReadOptions& options, RecordSink* sink,
            std::optional<absl::Duration> hint = std::nullopt);

  //   INVALID_ARGUMENT  there is no --start; the text says so.
  // *time is nullopt if it lies outside of 1970 to 2262.
  absl::Status TimeOfStep(int64_t step, std::optional<int64_t>* time);
  absl::Status TimeSinceStart(absl::Duration elapsed, std::optional<int64_t>* time);

 private:
  absl::Status Begin(absl::string_view how);

  const std::optional<absl::Time> start_;
  const absl::Duration step_time_;
  const bool hinted_;
  RecordSink* const sink_;
  bool noted_ = false;
};

// Reads a field that holds times as text. Numbers below 10⁸ seconds are times since the beginning.
class TimeField {
 public:
  TimeField(absl::string_view name, const ReadOptions& options, StepClock* clock);
  // As StepClock; *time is nullopt if the text is no time.
  absl::Status Read(absl::string_view text, std::optional<int64_t>* time) const;

 private:
  const int unit_;
  const absl::TimeZone zone_;
  StepClock* const clock_;
};

// Whether this is one of the usual names of a step, or of a time. `rank` is its place among them:
// if a file has several such names, the one of the lowest rank counts.
bool IsStepName(absl::string_view name, size_t* rank);
bool IsTimeName(absl::string_view name, size_t* rank);

// "line 12".
std::string LineText(uint64_t line);

// Decides whether the reading goes on after a line that could not be read for this reason: OK if
// such lines are skipped and counted, else the status to end with. A missing --start ends every
// reading.
absl::Status OnDamagedLine(const absl::Status& reason, absl::string_view where,
                           const ReadOptions& options, RecordSink* sink);

}  // namespace tacho::importer
