// Scrapes one endpoint with Prometheus or OpenMetrics text. Each endpoint is a source of its own,
// so that one that hangs delays no other, and has its own health
// (agent/sources/self/self_source.h).
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/fetch/http_get.h"
#include "agent/sources/rows/cadence.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"
#include "agent/sources/text/exposition_rows.h"
#include "tacho/config/v1/text_sources.pb.h"

namespace tacho::agent {

struct TextSourceOptions {
  std::string host = {};     // Label of every row.
  std::string own_job = {};  // Job of the agent's own series about the source.
  log::Log log = {};
};

// One thread.
class EndpointSource : public Source {
 public:
  // Every series gets the label instance, "host:port" of the URL, unless it has one.
  //   INVALID_ARGUMENT  the text names the key.
  static absl::StatusOr<std::unique_ptr<EndpointSource>> Create(const config::v1::Endpoint& config,
                                                                const TextSourceOptions& options);

  absl::string_view name() const override { return name_; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;
  absl::Status status() const override { return status_; }

 private:
  EndpointSource(const config::v1::Endpoint& config, HttpUrl url, std::string name,
                 SeriesRuler ruler, const TextSourceOptions& options);

  absl::StatusOr<Exposition> Scrape();
  void ReportLapses(const Exposition& read);

  const config::v1::Endpoint config_;
  const HttpUrl url_;
  const std::string name_;
  SourceLog log_;
  Cadence cadence_;
  ExpositionRows rows_;
  bool lapse_logged_ = false;
  absl::Status status_;
};

}  // namespace tacho::agent
