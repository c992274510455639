// What a reader of a foreign file finds, and where it puts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tacho/v1/ingest.pb.h"
#include "tacho/v1/types.pb.h"

namespace tacho::importer {

// A series, but for its job.
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

// Samples of one time. All of one task, attempt and host, and no series twice.
struct Row {
  int64_t time_unix_ns = 0;
  std::optional<int64_t> step;
  std::vector<Cell> cells;
};

// Why a sample that was read is not written.
enum class Skip {
  kNotScalar,  // Histograms, images, text, lists.
  kNotNumber,  // Text where a number was expected.
  kNoTime,     // No time, or one outside of 1970 to 2262.
  kBadName,    // A name, label or text that is not allowed.
  kNoValue,    // The bits that mean "no value".
  kTwice,      // The same name twice in one record: the last counts.
  kDamaged,    // In a line or record that is damaged, which was to be passed over.
};
inline constexpr int kSkips = 7;
const char* SkipName(Skip reason);   // "not_scalar": for programs.
const char* SkipWords(Skip reason);  // For people.

// One thread. A status other than OK ends the reading and is returned by it.
class RecordSink {
 public:
  virtual ~RecordSink() = default;

  // The number of the series, which stays good for the life of the sink. nullopt if a name or text
  // of it is not allowed; the reader skips its samples then.
  //   RESOURCE_EXHAUSTED  there are too many.
  virtual absl::Status FindSeries(const SeriesKey& key, std::optional<uint32_t>* series) = 0;
  virtual absl::Status AddRow(const Row& row) = 0;
  // Without job and sequence.
  virtual absl::Status AddEvent(v1::Event event) = 0;
  virtual absl::Status AddAttributes(uint32_t attempt, const std::string& name,
                                     const std::string& value) = 0;
  // `where` is a place in the file or a name, for the first of each reason.
  virtual void AddSkipped(Skip reason, uint64_t samples, absl::string_view where) = 0;
  // Something a person should know, once each.
  virtual void Note(absl::string_view text) = 0;
};

}  // namespace tacho::importer
