// Tails files with one JSON object a line, such as trainers write: each number of a line is a value
// of the metric that is named like its member.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"
#include "agent/sources/text/endpoint_source.h"
#include "agent/sources/text/line_tail.h"
#include "agent/sources/text/series_rules.h"
#include "tacho/config/v1/text_sources.pb.h"

namespace tacho::agent {

// All files, in turns. Lines with the same members are rows of one layout. The place in each file
// is stored with its rows ("jsonlines/PATH"), so that a restart neither skips nor repeats a line. A
// line that is no JSON object, or has no number, is passed over and counted. One thread.
class JsonLinesSource : public Source {
 public:
  // One line may have this many members; each is a metric.
  static constexpr size_t kMaxMembers = 1000;
  static constexpr size_t kRowsAtOnce = 512;
  // Read of one file before it is another's turn.
  static constexpr int kReadsATurn = 8;

  //   INVALID_ARGUMENT  the text names the key.
  static absl::StatusOr<std::unique_ptr<JsonLinesSource>> Create(
      const config::v1::JsonLines& config, const TextSourceOptions& options);

  absl::string_view name() const override { return "json_lines"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;
  absl::Status status() const override { return status_; }

 private:
  struct File {
    config::v1::JsonLinesFile config;
    NamePatterns names;
    std::unique_ptr<LineTail> tail = nullptr;
    LayoutBudget budget = {};
    absl::flat_hash_map<std::string, uint32_t> layouts = {};  // By the members' names.
    uint64_t lines_left_out = 0;
    std::string why = {};  // The last one was.
  };
  // Rows of one layout that wait to be appended.
  struct Pending {
    std::vector<std::string> metrics = {};
    bool has_steps = false;
    std::vector<int64_t> times_ns = {};
    std::vector<int64_t> steps = {};
    std::vector<double> values = {};
    std::string place = {};  // Behind the last of them.
  };
  struct Row {
    std::vector<std::string> metrics = {};
    std::vector<double> values = {};
    int64_t time_ns = 0;
    bool has_step = false;
    int64_t step = 0;
  };

  JsonLinesSource(const config::v1::JsonLines& config, std::vector<File> files,
                  const TextSourceOptions& options);

  // Whether there may be more to read.
  absl::StatusOr<bool> ReadFile(absl::Time now, File* file, RowSink* sink);
  static absl::Status ParseLine(absl::Time now, const File& file, absl::string_view line, Row* row);
  absl::Status Append(absl::Time now, File* file, Row row, const std::string& place,
                      Pending* pending, RowSink* sink);
  absl::Status Flush(absl::Time now, File* file, Pending* pending, RowSink* sink);
  absl::StatusOr<uint32_t> LayoutOf(absl::Time now, File* file, const Pending& pending,
                                    RowSink* sink);

  const absl::Duration poll_interval_;
  const std::string host_;
  SourceLog log_;
  std::vector<File> files_;
  absl::Status status_;
};

}  // namespace tacho::agent
