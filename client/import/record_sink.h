// The records that a reader finds in a foreign file, the sink that takes them, and the options of
// reading.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tacho/v1/ingest.pb.h"
#include "tacho/v1/types.pb.h"

namespace tacho::importer {

// A series without its job.
struct SeriesKey {
  std::optional<uint32_t> task;
  uint32_t attempt = 0;
  std::string host;
  std::string metric;
  v1::MetricType type = v1::METRIC_TYPE_GAUGE;
  std::string unit;
  std::string help;
  std::vector<std::pair<std::string, std::string>> labels;  // By name.
};

struct Cell {
  uint32_t series = 0;
  double value = 0;
};

// Samples at one time, all of one task, attempt and host, with no series twice.
struct Row {
  int64_t time_unix_ns = 0;
  std::optional<int64_t> step;
  std::vector<Cell> cells;
};

// Why a sample is skipped.
enum class Skip {
  kNotScalar,  // Histograms, images, text, lists.
  kNotNumber,  // Text where a number was expected.
  kNoTime,     // No time, or one outside of 1970 to 2262.
  kBadName,    // A name, label or text that is not allowed.
  kNoValue,    // The bits or the words that mean "no value".
  kTwice,      // The same name occurs twice in one record; the last one counts.
  kDamaged,    // The line or record is damaged, and skip_damaged is set.
};
inline constexpr int kSkips = 7;
const char* SkipName(Skip reason);   // "not_scalar": for programs.
const char* SkipWords(Skip reason);  // For people.

// Used from one thread. A status other than OK ends the reading, which returns it.
class RecordSink {
 public:
  virtual ~RecordSink() = default;

  // The number of the series, valid for the life of the sink. nullopt if one of its names or texts
  // is not allowed; the reader then skips its samples.
  //   RESOURCE_EXHAUSTED  there are too many series.
  virtual absl::Status FindSeries(const SeriesKey& key, std::optional<uint32_t>* series) = 0;
  virtual absl::Status AddRow(const Row& row) = 0;
  // The event has no job and no sequence.
  virtual absl::Status AddEvent(v1::Event event) = 0;
  virtual absl::Status AddAttributes(uint32_t attempt, const std::string& name,
                                     const std::string& value) = 0;
  // `where` is a place in the file or a name; the first of each reason is kept.
  virtual void AddSkipped(Skip reason, uint64_t samples, absl::string_view where) = 0;
  // Something the user should know; repeated texts are kept once.
  virtual void Note(absl::string_view text) = 0;
};

struct ReadOptions {
  // Defaults for series that do not have their own.
  std::optional<uint32_t> task = 0;
  uint32_t attempt = 0;
  bool fixed_attempt = false;  // Steps that start again then begin no further attempt.
  std::string host;
  std::vector<std::pair<std::string, std::string>> labels;  // Added to their own.

  // For files without times: the time of step 0, and the length of a step. Absent: what the file
  // says, or INVALID_ARGUMENT with a text that asks for it.
  std::optional<absl::Time> start;
  std::optional<absl::Duration> step_time;

  // Fields of CSV and JSON lines; empty: by their names.
  std::string step_field;
  std::string time_field;
  std::vector<std::string> metrics;           // Only these; none: every number.
  absl::TimeZone zone = absl::UTCTimeZone();  // For times without a zone.

  // Skip and count damaged lines and records, instead of failing.
  bool skip_damaged = false;

  SeriesKey Key(std::string metric) const {
    SeriesKey key;
    key.task = task;
    key.attempt = attempt;
    key.host = host;
    key.metric = std::move(metric);
    key.labels = labels;
    return key;
  }
  bool Wants(const std::string& metric) const {
    if (metrics.empty()) return true;
    for (const std::string& wanted : metrics) {
      if (wanted == metric) return true;
    }
    return false;
  }
};

}  // namespace tacho::importer
