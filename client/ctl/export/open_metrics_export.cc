// Exports as OpenMetrics with times. Names and labels that Prometheus does not allow are rewritten,
// and the original name goes into a label, so that no two series become one.
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/ctl/export/export_writer.h"
#include "client/ctl/text/format.h"
#include "client/import/values.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;

std::string PrometheusName(const std::string& name) {
  std::string safe;
  for (const char c : name) {
    const bool allowed = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':';
    safe += allowed ? c : '_';
  }
  if (safe.empty() || absl::ascii_isdigit(static_cast<unsigned char>(safe[0]))) safe = "_" + safe;
  return safe;
}

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return importer::NumberText(value);
}

// Seconds with three decimals: Prometheus keeps milliseconds.
std::string Seconds(int64_t ms) { return absl::StrFormat("%d.%03d", ms / 1000, ms % 1000); }

class OpenMetricsExport : public ExportWriter {
 public:
  explicit OpenMetricsExport(OutputFile* file) : file_(file) {}

  absl::Status Job(const v1::GetJobResponse&) override { return absl::OkStatus(); }
  absl::Status Event(const v1::RecordedEvent&) override {
    ++events_;
    return absl::OkStatus();
  }

  absl::Status Series(const v1::WatchedSeries& watched) override {
    TACHO_RETURN_IF_ERROR(EndSeries());
    const v1::SeriesInfo& series = watched.series();
    name_ = PrometheusName(series.metric().name());
    labels_ = absl::StrCat("job=\"", PrometheusEscaped(series.job()), "\"");
    if (series.has_task()) absl::StrAppend(&labels_, ",task=\"", series.task(), "\"");
    absl::StrAppend(&labels_, ",host=\"", PrometheusEscaped(series.host()), "\"");
    // Names that Prometheus would not tell apart.
    if (name_ != series.metric().name()) {
      ++renamed_;
      absl::StrAppend(&labels_, ",metric=\"", PrometheusEscaped(series.metric().name()), "\"");
    }
    for (const v1::Label& label : series.labels()) {
      const bool taken = label.name() == "attempt" || label.name() == "metric";
      absl::StrAppend(&labels_, taken ? ",exported_" : ",", label.name(), "=\"",
                      PrometheusEscaped(label.value()), "\"");
    }
    return Declare(series.metric());
  }

  absl::Status Samples(const v1::Points& points) override {
    for (int i = 0; i < points.times_unix_ns_size(); ++i) {
      const ExportedSample sample = SampleAt(points, i);
      if (sample.time_unix_ns % kNsPerMs != 0) ++rounded_times_;
      const int64_t ms = sample.time_unix_ns / kNsPerMs;
      std::optional<std::pair<int64_t, double>>& held = held_[sample.attempt];
      if (held && held->first == ms) {
        ++crowded_;
      } else if (held) {
        if (absl::Status status = WriteSample(sample.attempt, *held); !status.ok()) return status;
      }
      held = {ms, sample.value};
    }
    return absl::OkStatus();
  }

  absl::Status Finish(const v1::ExportEnd&) override {
    absl::Status status = EndSeries();
    if (status.ok()) status = file_->Write("# EOF\n");
    return status.ok() ? file_->Commit() : status;
  }

  std::vector<std::string> Losses() const override {
    std::vector<std::string> losses = {
        "OpenMetrics has no place for steps, attributes and events; the attempt is a label"};
    if (rounded_times_ > 0) {
      losses.push_back(absl::StrCat(Count(rounded_times_, "time"), " cut to milliseconds"));
    }
    if (crowded_ > 0) {
      losses.push_back(absl::StrCat(Count(crowded_, "sample"),
                                    " left out, in the same millisecond as the next of the "
                                    "series"));
    }
    if (renamed_ > 0) {
      losses.push_back(absl::StrCat(renamed_,
                                    " series have names that Prometheus does not allow; "
                                    "these stand in the label 'metric'"));
    }
    return losses;
  }

 private:
  // One TYPE a family, and only what the format's rules on names allow.
  absl::Status Declare(const v1::Metric& metric) {
    if (!declared_.insert(name_).second) return absl::OkStatus();
    if (metric.type() == v1::METRIC_TYPE_COUNTER && absl::EndsWith(name_, "_total")) {
      return file_->Write(
          absl::StrCat("# TYPE ", absl::StripSuffix(name_, "_total"), " counter\n"));
    }
    const bool gauge =
        metric.type() == v1::METRIC_TYPE_GAUGE || metric.type() == v1::METRIC_TYPE_UNSPECIFIED;
    return file_->Write(absl::StrCat("# TYPE ", name_, gauge ? " gauge\n" : " unknown\n"));
  }

  // A sample is written when the next one has another millisecond.
  absl::Status WriteSample(uint32_t attempt, const std::pair<int64_t, double>& sample) {
    return file_->Write(absl::StrCat(name_, "{", labels_, ",attempt=\"", attempt, "\"} ",
                                     Number(sample.second), " ", Seconds(sample.first), "\n"));
  }

  absl::Status EndSeries() {
    for (const auto& [attempt, held] : held_) {
      if (!held) continue;
      if (absl::Status status = WriteSample(attempt, *held); !status.ok()) return status;
    }
    held_.clear();
    return absl::OkStatus();
  }

  OutputFile* const file_;
  std::set<std::string> declared_;
  std::string name_, labels_;                                           // The current series.
  std::map<uint32_t, std::optional<std::pair<int64_t, double>>> held_;  // By attempt.
  uint64_t events_ = 0;
  uint64_t rounded_times_ = 0;
  uint64_t crowded_ = 0;
  uint64_t renamed_ = 0;
};

}  // namespace

std::unique_ptr<ExportWriter> MakeOpenMetricsExport(OutputFile* file) {
  return std::make_unique<OpenMetricsExport>(file);
}

}  // namespace tacho::ctl
