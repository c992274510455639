// A directory of files in the Prometheus text format, as node_exporter's textfile collector takes
// them: *.prom, each written aside and renamed into place.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rows/cadence.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"
#include "agent/sources/text/endpoint_source.h"
#include "agent/sources/text/exposition_rows.h"
#include "tacho/config/v1/text_sources.pb.h"

namespace tacho::agent {

// All files are read as one text. A file that cannot be read, is too long, is damaged, or has
// samples with times (which could be of any age) is left out as a whole and counted; the others
// count. A file whose last line has no end was cut off or is being written: nothing says how long
// it should be. A series that is in two files has the value of the later name. One
// thread.
class TextfileSource : public Source {
 public:
  // Read in name order. More than any machine's cron jobs write.
  static constexpr size_t kMaxFiles = 1000;

  //   INVALID_ARGUMENT  the text names the key.
  static absl::StatusOr<std::unique_ptr<TextfileSource>> Create(const config::v1::Textfiles& config,
                                                                const TextSourceOptions& options);

  absl::string_view name() const override { return "textfiles"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;
  // NOT_FOUND or PERMISSION_DENIED if the directory cannot be read; INVALID_ARGUMENT if none of its
  // files can be used.
  absl::Status status() const override { return status_; }

 private:
  TextfileSource(const config::v1::Textfiles& config, SeriesRuler ruler,
                 const TextSourceOptions& options);

  absl::StatusOr<std::vector<std::string>> Files() const;
  absl::Status ReadInto(const std::string& path, Exposition* all) const;

  const config::v1::Textfiles config_;
  SourceLog log_;
  Cadence cadence_;
  ExpositionRows rows_;
  bool lapse_logged_ = false;
  absl::Status status_;
};

}  // namespace tacho::agent
