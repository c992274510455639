#include <string>

#include "absl/strings/str_cat.h"
#include "client/ctl/export/export_writer.h"
#include "client/ctl/export/series_text.h"
#include "client/ctl/text/csv.h"
#include "client/ctl/text/series_name.h"
#include "client/import/values.h"

namespace tacho::ctl {
namespace {

// A line for each sample, with what 'tachoctl import csv' needs to store it as it was.
class CsvExport : public ExportWriter {
 public:
  explicit CsvExport(OutputFile* file) : file_(file) {}

  absl::Status Job(const v1::GetJobResponse&) override {
    return file_->Write(
        "job,metric,type,unit,task,host,labels,attempt,time_unix_ns,step,value\r\n");
  }
  absl::Status Event(const v1::RecordedEvent&) override {
    ++events_;
    return absl::OkStatus();
  }
  absl::Status Series(const v1::WatchedSeries& watched) override {
    const v1::SeriesInfo& series = watched.series();
    series_ = absl::StrCat(CsvField(series.job()), ",", CsvField(series.metric().name()), ",",
                           TypeName(series.metric().type()), ",", CsvField(series.metric().unit()),
                           ",", series.has_task() ? absl::StrCat(series.task()) : "", ",",
                           CsvField(series.host()), ",", CsvField(LabelsAsJson(series)), ",");
    return absl::OkStatus();
  }
  absl::Status Samples(const v1::Points& points) override {
    for (int i = 0; i < points.times_unix_ns_size(); ++i) {
      const ExportedSample sample = SampleAt(points, i);
      absl::Status status =
          file_->Write(absl::StrCat(series_, sample.attempt, ",", sample.time_unix_ns, ",",
                                    sample.has_step ? absl::StrCat(sample.step) : "", ",",
                                    importer::NumberText(sample.value), "\r\n"));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  absl::Status Finish(const v1::ExportEnd&) override { return file_->Commit(); }

  std::vector<std::string> Losses() const override {
    std::vector<std::string> losses = {"CSV has no place for attributes and help texts"};
    if (events_ > 0) losses.push_back(absl::StrCat(events_, " events are left out"));
    losses.back() += "; --format jsonl has everything";
    return losses;
  }

 private:
  OutputFile* const file_;
  std::string series_;  // What all samples of it begin with.
  uint64_t events_ = 0;
};

}  // namespace

std::unique_ptr<ExportWriter> MakeCsvExport(OutputFile* file) {
  return std::make_unique<CsvExport>(file);
}

ExportedSample SampleAt(const v1::Points& points, int index) {
  ExportedSample sample;
  sample.time_unix_ns = points.times_unix_ns(index);
  if (!points.steps().empty() && points.steps(index) != kNoStep) {
    sample.has_step = true;
    sample.step = points.steps(index);
  }
  if (!points.attempts().empty()) sample.attempt = points.attempts(index);
  sample.value = points.values(index);
  return sample;
}

}  // namespace tacho::ctl
