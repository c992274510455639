#include "agent/sources/text/endpoint_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/sources/rows/agent_metrics.h"
#include "proto/base/clock.h"

namespace tacho::agent {
namespace {

constexpr char kAccept[] =
    "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.8,*/*;q=0.1";
constexpr int kHttpOk = 200;

}  // namespace

absl::StatusOr<std::unique_ptr<EndpointSource>> EndpointSource::Create(
    const config::v1::Endpoint& config, const TextSourceOptions& options) {
  const auto in_config = [](const absl::Status& status) {
    return absl::InvalidArgumentError(
        absl::StrCat("sources.endpoints.targets: ", status.message()));
  };
  auto url = ParseHttpUrl(config.url());
  if (!url.ok()) return in_config(url.status());
  auto ruler = SeriesRuler::Create(config.series(), options.host, {{"instance", url->authority()}});
  if (!ruler.ok()) return in_config(ruler.status());
  std::string name =
      absl::StrCat("endpoint:", config.name().empty() ? url->authority() : config.name());
  return std::unique_ptr<EndpointSource>(
      new EndpointSource(config, *std::move(url), std::move(name), *std::move(ruler), options));
}

EndpointSource::EndpointSource(const config::v1::Endpoint& config, HttpUrl url, std::string name,
                               SeriesRuler ruler, const TextSourceOptions& options)
    : config_(config),
      url_(std::move(url)),
      name_(std::move(name)),
      log_(name_, options.log),
      cadence_(absl::Nanoseconds(config.interval())),
      rows_(std::move(ruler), {.source = name_,
                               .host = options.host,
                               .own_job = options.own_job,
                               .max_series = config.max_series(),
                               .timestamps = config.timestamps()}) {}

absl::Time EndpointSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  const absl::Time began = MonotonicNow();
  const absl::StatusOr<Exposition> read = Scrape();
  rows_.SetOwn(own::kScrapeDuration, absl::ToDoubleSeconds(MonotonicNow() - began));
  status_ = read.ok() ? absl::OkStatus()
                      : absl::Status(read.status().code(),
                                     absl::StrCat(config_.url(), ": ", read.status().message()));
  if (read.ok()) ReportLapses(*read);
  const absl::Status written = rows_.Write(now, read.ok() ? *read : Exposition(), sink);
  if (!written.ok()) {
    log_.Warn("a scrape is lost", {{"reason", written.ToString()}});
  }
  if (rows_.left_out() > 0) {
    log_.Warn("leaves out samples; tacho_agent_scrape_left_out_samples says why",
              {{"url", config_.url()}, {"samples", rows_.left_out()}});
  }
  return cadence_.due();
}

void EndpointSource::ReportLapses(const Exposition& read) {
  rows_.SetOwn(own::kScrapeLapses, static_cast<double>(read.lapses));
  if (read.lapses == 0 || lapse_logged_) return;
  lapse_logged_ = true;  // Once: every scrape of the exporter has it.
  log_.Warn("the text breaks its format, and is taken all the same",
            {{"url", config_.url()}, {"first", read.first_lapse}, {"lapses", read.lapses}});
}

absl::StatusOr<Exposition> EndpointSource::Scrape() {
  const absl::Duration timeout = absl::Nanoseconds(config_.timeout());
  const auto response =
      HttpGet(url_, {.timeout = timeout,
                     .max_body_bytes = config_.max_body_bytes(),
                     .accept = kAccept,
                     .headers = {absl::StrCat("X-Prometheus-Scrape-Timeout-Seconds: ",
                                              absl::ToDoubleSeconds(timeout))}});
  if (!response.ok()) return response.status();
  if (response->status != kHttpOk) {
    return absl::UnavailableError(
        absl::StrCat("HTTP status ", response->status, "; is it the path of its metrics?"));
  }
  rows_.SetOwn(own::kScrapeBody, static_cast<double>(response->body.size()));
  if (IsOpenMetricsType(response->content_type)) return ReadOpenMetricsText(response->body);
  // The rest of the last number may be missing.
  if (!response->has_end && !response->body.empty() && response->body.back() != '\n') {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", std::count(response->body.begin(), response->body.end(), '\n') + 1,
                     ": the last line has no end, and the answer no length: it may be cut off; the "
                     "exporter should end its last line, or send Content-Length"));
  }
  return ReadPrometheusText(response->body);
}

}  // namespace tacho::agent
