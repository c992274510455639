// Exports as CSV and as JSON lines. Both have a line for each sample; JSON lines also hold
// events and attributes, so they are a complete copy.
#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/ctl/export/export_writer.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/samples.h"
#include "client/ctl/text/text.h"
#include "client/import/values.h"
#include "proto/base/json_text.h"

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
    if (events_ > 0) losses.push_back(absl::StrCat(Count(events_, "event"), " left out"));
    losses.back() += "; --format jsonl has everything";
    return losses;
  }

 private:
  OutputFile* const file_;
  std::string series_;  // The beginning of every line of the current series.
  uint64_t events_ = 0;
};

std::string MapAsJson(const google::protobuf::Map<std::string, std::string>& map) {
  std::string text = "{";
  for (const auto& [name, value] : std::map<std::string, std::string>(map.begin(), map.end())) {
    absl::StrAppend(&text, text.size() > 1 ? "," : "", JsonString(name), ":", JsonString(value));
  }
  return text + "}";
}

std::string NumberAsJson(double value) {
  const std::string text = importer::NumberText(value);
  return std::isfinite(value) ? text : JsonString(text);
}

// Everything about a job, one object a line. The last line has the counts, so that a file that was
// cut short is noticed.
class JsonLinesExport : public ExportWriter {
 public:
  explicit JsonLinesExport(OutputFile* file) : file_(file) {}

  absl::Status Job(const v1::GetJobResponse& job) override {
    std::string lines =
        absl::StrCat("{\"tachograph_export\":1,\"job\":", JsonString(job.job().name()), "}\n");
    for (const v1::Attempt& attempt : job.attempts()) {
      if (attempt.attributes().empty()) continue;
      absl::StrAppend(&lines, "{\"attributes\":", MapAsJson(attempt.attributes()),
                      ",\"attempt\":", attempt.attempt(), "}\n");
    }
    return file_->Write(lines);
  }

  absl::Status Event(const v1::RecordedEvent& event) override {
    const v1::Source& source = event.source();
    return file_->Write(absl::StrCat(
        "{\"event\":", JsonString(event.kind()), ",\"time_unix_ns\":", event.time_unix_ns(),
        event.has_step() ? absl::StrCat(",\"step\":", event.step()) : "", ",\"attempt\":",
        source.attempt(), source.has_task() ? absl::StrCat(",\"task\":", source.task()) : "",
        ",\"host\":", JsonString(source.host()), ",\"message\":", JsonString(event.message()),
        ",\"fields\":", MapAsJson(event.fields()), "}\n"));
  }

  absl::Status Series(const v1::WatchedSeries& watched) override {
    const v1::SeriesInfo& series = watched.series();
    series_ =
        absl::StrCat("{\"metric\":", JsonString(series.metric().name()),
                     series.has_task() ? absl::StrCat(",\"task\":", series.task()) : "",
                     ",\"host\":", JsonString(series.host()), ",\"labels\":", LabelsAsJson(series));
    return file_->Write(absl::StrCat(series_, ",\"type\":\"", TypeName(series.metric().type()),
                                     "\",\"unit\":", JsonString(series.metric().unit()),
                                     ",\"help\":", JsonString(series.metric().help()), "}\n"));
  }

  absl::Status Samples(const v1::Points& points) override {
    for (int i = 0; i < points.times_unix_ns_size(); ++i) {
      const ExportedSample sample = SampleAt(points, i);
      absl::Status status = file_->Write(absl::StrCat(
          series_, ",\"attempt\":", sample.attempt, ",\"time_unix_ns\":", sample.time_unix_ns,
          sample.has_step ? absl::StrCat(",\"step\":", sample.step) : "",
          absl::StrCat(",\"value\":", NumberAsJson(sample.value), "}\n")));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Finish(const v1::ExportEnd& end) override {
    absl::Status status = file_->Write(absl::StrCat("{\"end\":{\"series\":", end.series(),
                                                    ",\"samples\":", end.samples(),
                                                    ",\"events\":", end.events(), "}}\n"));
    return status.ok() ? file_->Commit() : status;
  }

 private:
  OutputFile* const file_;
  std::string series_;  // The beginning of every line of the current series.
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

std::unique_ptr<ExportWriter> MakeJsonLinesExport(OutputFile* file) {
  return std::make_unique<JsonLinesExport>(file);
}

}  // namespace tacho::ctl
