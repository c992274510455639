#include "agent/sources/text/textfile_source.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/sources/fetch/bounded_file.h"
#include "agent/sources/rows/agent_metrics.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {

namespace fs = std::filesystem;

absl::StatusOr<std::unique_ptr<TextfileSource>> TextfileSource::Create(
    const config::v1::Textfiles& config, const TextSourceOptions& options) {
  auto ruler = SeriesRuler::Create(config.series(), options.host, {});
  if (!ruler.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sources.textfiles.series.", ruler.status().message()));
  }
  return std::unique_ptr<TextfileSource>(new TextfileSource(config, *std::move(ruler), options));
}

TextfileSource::TextfileSource(const config::v1::Textfiles& config, SeriesRuler ruler,
                               const TextSourceOptions& options)
    : config_(config),
      log_("textfiles", options.log),
      cadence_(absl::Nanoseconds(config.interval())),
      rows_(std::move(ruler), {.source = "textfiles",
                               .host = options.host,
                               .own_job = options.own_job,
                               .max_series = config.max_series(),
                               .timestamps = false}) {}

absl::StatusOr<std::vector<std::string>> TextfileSource::Files() const {
  std::error_code error;
  std::vector<std::string> paths;
  fs::directory_iterator entry(config_.directory(), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (absl::EndsWith(path, ".prom")) paths.push_back(path);
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("the directory ", config_.directory(),
                                                           " of sources.textfiles cannot be read"));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::Status TextfileSource::ReadInto(const std::string& path, Exposition* all) const {
  TACHO_ASSIGN_OR_RETURN(const std::string text, ReadBoundedFile(path, config_.max_file_bytes()));
  if (!text.empty() && text.back() != '\n') {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", std::count(text.begin(), text.end(), '\n') + 1,
                     ": the last line has no end: the file is cut off"));
  }
  TACHO_ASSIGN_OR_RETURN(Exposition read, ReadPrometheusText(text));
  for (const ExpositionSample& sample : read.samples) {
    if (sample.time_ns) {
      return absl::InvalidArgumentError(
          absl::StrCat("the sample ", sample.name, " has a time; write files without times"));
    }
  }
  if (all->lapses == 0 && read.lapses > 0) {
    all->first_lapse = absl::StrCat(path, ": ", read.first_lapse);
  }
  all->lapses += read.lapses;
  const size_t families = all->families.size();
  for (ExpositionFamily& family : read.families) all->families.push_back(std::move(family));
  for (ExpositionSample& sample : read.samples) {
    sample.family += families;
    all->samples.push_back(std::move(sample));
  }
  return absl::OkStatus();
}

absl::Time TextfileSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  Exposition all;
  const absl::StatusOr<std::vector<std::string>> files = Files();
  status_ = files.status();
  size_t used = 0;
  size_t refused = 0;
  absl::Status last;
  for (size_t i = 0; files.ok() && i < std::min(files->size(), kMaxFiles); ++i) {
    const std::string& path = (*files)[i];
    const absl::Status read = ReadInto(path, &all);
    if (absl::IsNotFound(read)) continue;  // Renamed away since it was listed.
    read.ok() ? ++used : ++refused;
    if (read.ok()) continue;
    last = absl::InvalidArgumentError(absl::StrCat(path, ": ", read.message()));
    log_.Warn("leaves out a file", {{"reason", last.message()}});
  }
  if (files.ok() && files->size() > kMaxFiles) {
    refused += files->size() - kMaxFiles;
    log_.Warn("leaves out the files with the last names: there are too many",
              {{"directory", config_.directory()}, {"files", files->size()}, {"most", kMaxFiles}});
  }
  if (used == 0 && refused > 0) status_ = last;
  rows_.SetOwn(own::kTextfilesRead, static_cast<double>(used));
  rows_.SetOwn(own::kTextfilesLeftOut, static_cast<double>(refused));
  rows_.SetOwn(own::kScrapeLapses, static_cast<double>(all.lapses));
  if (all.lapses > 0 && !std::exchange(lapse_logged_, true)) {
    log_.Warn("a file breaks its format, and is taken all the same",
              {{"first", all.first_lapse}, {"lapses", all.lapses}});
  }
  if (const absl::Status written = rows_.Write(now, all, sink); !written.ok()) {
    log_.Warn("a reading is lost", {{"reason", written.ToString()}});
  }
  return cadence_.due();
}

}  // namespace tacho::agent
