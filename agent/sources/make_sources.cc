#include "agent/sources/make_sources.h"

#include <unistd.h>

#include <utility>

#include "agent/sources/host/host_source.h"
#include "agent/sources/ring_source.h"
#include "agent/sources/tfevents_source.h"

namespace tacho::agent {

absl::StatusOr<std::vector<std::unique_ptr<Source>>> MakeSources(const config::v1::Agent& config,
                                                                 const SourceIdentity& identity,
                                                                 LogCallback log) {
  std::vector<std::unique_ptr<Source>> sources;
  const config::v1::Agent::Sources& wanted = config.sources();
  if (wanted.host().enabled()) {
    HostOptions options;
    options.host = identity.host;
    options.log = log;
    options.ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
    options.page_bytes = static_cast<double>(::sysconf(_SC_PAGESIZE));
    sources.push_back(std::make_unique<HostSource>(wanted.host(), std::move(options)));
  }
  if (wanted.tfevents().directories_size() > 0) {
    TfeventsOptions options;
    options.host = identity.host;
    options.log = log;
    absl::StatusOr<std::unique_ptr<TfeventsSource>> tfevents =
        TfeventsSource::Create(wanted.tfevents(), std::move(options));
    if (!tfevents.ok()) return tfevents.status();
    sources.push_back(*std::move(tfevents));
  }
  if (!wanted.rings().directory().empty()) {
    RingOptions options;
    options.host = identity.host;
    options.log = log;
    sources.push_back(std::make_unique<RingSource>(wanted.rings(), std::move(options)));
  }
  return sources;
}

}  // namespace tacho::agent
