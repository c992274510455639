// Where an export goes: one format each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/ctl/export/output_file.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

// Gets the messages of an export in their order (query.proto, ExportResponse). One thread. An error
// is the disk's; then, and if Finish() is not reached, nothing stays that looks whole.
class ExportWriter {
 public:
  virtual ~ExportWriter() = default;

  virtual absl::Status Job(const v1::GetJobResponse& job) = 0;
  virtual absl::Status Event(const v1::RecordedEvent& event) = 0;
  virtual absl::Status Series(const v1::WatchedSeries& series) = 0;
  // Of the series that came last.
  virtual absl::Status Samples(const v1::Points& points) = 0;
  virtual absl::Status Finish(const v1::ExportEnd& end) = 0;

  // What the format could not hold, for a person; after Finish().
  virtual std::vector<std::string> Losses() const { return {}; }
};

// The first three write to `file`, which must outlive them.
std::unique_ptr<ExportWriter> MakeCsvExport(OutputFile* file);
std::unique_ptr<ExportWriter> MakeJsonLinesExport(OutputFile* file);
// OpenMetrics with times, as 'promtool tsdb create-blocks-from openmetrics' takes it.
std::unique_ptr<ExportWriter> MakeOpenMetricsExport(OutputFile* file);
// Directories JOB/ATTEMPT[/task-N] with an event file each, in `directory`.
//   ALREADY_EXISTS  it is there and not empty.
absl::StatusOr<std::unique_ptr<ExportWriter>> MakeEventFilesExport(const std::string& directory);

// A row without a step among rows with one has this in Points.steps.
inline constexpr int64_t kNoStep = INT64_MIN;

// Sample `index` of the points, which must have as many steps and attempts as samples, or none.
struct ExportedSample {
  int64_t time_unix_ns = 0;
  bool has_step = false;
  int64_t step = 0;
  uint32_t attempt = 0;
  double value = 0;
};
ExportedSample SampleAt(const v1::Points& points, int index);

}  // namespace tacho::ctl
