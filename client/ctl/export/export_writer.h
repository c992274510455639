// Writers of an export, one for each format, and the file that they write.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

// A file that exists as a whole or not at all: it is written beside the target under a name of its
// own, ".NAME.PID.partial", and moved to its place by Commit(). Used from one thread.
class OutputFile {
 public:
  //   NOT_FOUND, PERMISSION_DENIED, …  as the system says; the text names the path.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path);
  // Writes to `out` at once; Commit() only flushes.
  static std::unique_ptr<OutputFile> To(std::ostream* out);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();  // Removes what was not committed.

  //   RESOURCE_EXHAUSTED, …  the disk refuses.
  //   CANCELLED              the reader of the stream has gone.
  absl::Status Write(absl::string_view bytes);
  // Makes the file durable, and replaces what was at the path.
  absl::Status Commit();

 private:
  OutputFile() = default;
  absl::Status Flush();

  std::string path_;
  std::string partial_;
  int fd_ = -1;
  std::ostream* out_ = nullptr;
  std::string buffer_;
};

// Receives the messages of an export in their order (query.proto, ExportResponse). Used from one
// thread. An error comes from the disk; after one, or without Finish(), nothing that looks complete
// is left.
class ExportWriter {
 public:
  virtual ~ExportWriter() = default;

  virtual absl::Status Job(const v1::GetJobResponse& job) = 0;
  virtual absl::Status Event(const v1::RecordedEvent& event) = 0;
  virtual absl::Status Series(const v1::WatchedSeries& series) = 0;
  // Samples of the last series.
  virtual absl::Status Samples(const v1::Points& points) = 0;
  virtual absl::Status Finish(const v1::ExportEnd& end) = 0;

  // Sentences about what the format could not hold; valid after Finish().
  virtual std::vector<std::string> Losses() const { return {}; }
};

// The first three write to `file`, which must outlive them.
std::unique_ptr<ExportWriter> MakeCsvExport(OutputFile* file);
std::unique_ptr<ExportWriter> MakeJsonLinesExport(OutputFile* file);
// OpenMetrics with times, as 'promtool tsdb create-blocks-from openmetrics' takes it.
std::unique_ptr<ExportWriter> MakeOpenMetricsExport(OutputFile* file);
// Directories JOB/ATTEMPT[/task-N] with an event file each, in `directory`.
//   ALREADY_EXISTS  the directory exists and is not empty.
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

// The series' own labels: {"chip":"0"}; {} if it has none.
std::string LabelsAsJson(const v1::SeriesInfo& series);

// Its own labels as Prometheus writes them within braces: chip="0",slice="a"; "" without any.
std::string LabelsAsMatchers(const v1::SeriesInfo& series);

// A value between quotes, as Prometheus escapes it.
std::string PrometheusEscaped(const std::string& value);

// The temporary name of what will be `path`.
std::string PartialName(const std::string& path);

}  // namespace tacho::ctl
