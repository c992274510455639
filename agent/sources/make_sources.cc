// The only place that knows every source: it turns the configuration into them.
#include "agent/sources/make_sources.h"

#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/sources/chips/process_jobs.h"
#include "agent/sources/gpu/gpu_source.h"
#include "agent/sources/host/file_systems.h"
#include "agent/sources/host/host_settings.h"
#include "agent/sources/host/host_source.h"
#include "agent/sources/host/process_source.h"
#include "agent/sources/host/sampled_source.h"
#include "agent/sources/kubernetes/node_source.h"
#include "agent/sources/notices/notices_source.h"
#include "agent/sources/rings/ring_source.h"
#include "agent/sources/text/endpoint_source.h"
#include "agent/sources/text/json_lines_source.h"
#include "agent/sources/text/textfile_source.h"
#include "agent/sources/tfevents/tfevents_source.h"
#include "agent/sources/tpu/tpu_source.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

// Each endpoint is a source of its own, and so has a thread of its own.
absl::Status AddTextSources(const config::v1::Agent::Sources& wanted,
                            const TextSourceOptions& options,
                            std::vector<std::unique_ptr<Source>>* sources) {
  std::set<std::string, std::less<>> names;
  for (const config::v1::Endpoint& target : wanted.endpoints().targets()) {
    TACHO_ASSIGN_OR_RETURN(auto endpoint, EndpointSource::Create(target, options));
    if (!names.emplace(endpoint->name()).second) {
      return absl::InvalidArgumentError(absl::StrCat("sources.endpoints.targets: two are called ",
                                                     endpoint->name(),
                                                     "; give one of them another name"));
    }
    sources->push_back(std::move(endpoint));
  }
  if (!wanted.textfiles().directory().empty()) {
    TACHO_ASSIGN_OR_RETURN(auto textfiles, TextfileSource::Create(wanted.textfiles(), options));
    sources->push_back(std::move(textfiles));
  }
  if (wanted.json_lines().files_size() > 0) {
    TACHO_ASSIGN_OR_RETURN(auto json_lines, JsonLinesSource::Create(wanted.json_lines(), options));
    sources->push_back(std::move(json_lines));
  }
  return absl::OkStatus();
}

// Parts of a host that may hang, or are not needed often, are sources of their own.
void AddHostSources(const config::v1::Agent::Sources& wanted, const HostOptions& options,
                    std::vector<std::unique_ptr<Source>>* sources) {
  const config::v1::Agent::Host& host = wanted.host();
  const auto add = [&](const char* name, SampledSource::Take take) {
    sources->push_back(std::make_unique<SampledSource>(
        SampledSourceOptions{.name = name,
                             .job = host.job(),
                             .host = options.host,
                             .interval = absl::Nanoseconds(host.slow_interval()),
                             .log = options.log},
        std::move(take)));
  };
  add("host_settings", [sys = host.sys(), page = options.page_bytes](Sample* out) {
    return TakeHostSettings(sys, page, out);
  });
  add("filesystems", [proc = host.proc()](Sample* out) { return TakeLocalFill(proc, out); });
  add("network_filesystems",
      [proc = host.proc()](Sample* out) { return TakeNetworkFileSystems(proc, out); });
  if (host.max_processes() == 0 || wanted.rings().directory().empty()) return;
  sources->push_back(
      std::make_unique<ProcessSource>(ProcessOptions{.job = host.job(),
                                                     .host = options.host,
                                                     .rings = wanted.rings().directory(),
                                                     .proc = host.proc(),
                                                     .interval = absl::Nanoseconds(host.interval()),
                                                     .max_processes = host.max_processes(),
                                                     .log = options.log,
                                                     .ticks_per_second = options.ticks_per_second,
                                                     .page_bytes = options.page_bytes}));
}

std::function<std::vector<ProcessJob>()> RunningTasksOf(const config::v1::Agent::Sources& wanted) {
  return
      [places = RunningTasksPlaces{.rings = wanted.rings().directory(),
                                   .proc = wanted.host().proc(),
                                   .dev = wanted.tpu().dev()}] { return FindRunningTasks(places); };
}

std::unique_ptr<Source> MakeNoticesSource(const config::v1::Agent::Sources& wanted,
                                          const SourceIdentity& identity, log::Log log) {
  NoticesOptions options;
  options.job = wanted.host().job();
  options.host = identity.host;
  options.interval = absl::Nanoseconds(wanted.notices().interval());
  options.running_tasks = RunningTasksOf(wanted);
  options.log = std::move(log);
  return std::make_unique<NoticesSource>(*identity.metadata, std::move(options));
}

std::unique_ptr<Source> MakeNodeSource(const config::v1::Agent::Sources& wanted,
                                       const SourceIdentity& identity, log::Log log) {
  return std::make_unique<NodeSource>(
      *identity.node, NodeSourceOptions{.job = wanted.host().job(),
                                        .host = identity.host,
                                        .interval = absl::Nanoseconds(wanted.node().interval()),
                                        .running_tasks = RunningTasksOf(wanted),
                                        .log = std::move(log)});
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Source>>> MakeSources(const config::v1::Agent& config,
                                                                 const SourceIdentity& identity,
                                                                 log::Log log) {
  std::vector<std::unique_ptr<Source>> sources;
  const config::v1::Agent::Sources& wanted = config.sources();
  if (wanted.host().enabled()) {
    HostOptions options;
    options.host = identity.host;
    options.log = log;
    options.ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
    options.page_bytes = static_cast<double>(::sysconf(_SC_PAGESIZE));
    sources.push_back(std::make_unique<HostSource>(wanted.host(), options));
    AddHostSources(wanted, options, &sources);
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
  if (wanted.gpu().enabled()) {
    GpuOptions options;
    options.host = identity.host;
    options.rings = wanted.rings().directory();
    options.log = log;
    sources.push_back(std::make_unique<GpuSource>(wanted.gpu(), std::move(options)));
  }
  if (wanted.tpu().enabled()) {
    TpuOptions options;
    options.host = identity.host;
    options.rings = wanted.rings().directory();
    options.log = log;
    const char* const ports = std::getenv("TPU_RUNTIME_METRICS_PORTS");
    options.metrics_ports = ports != nullptr ? ports : identity.tpu_metrics_ports;
    sources.push_back(std::make_unique<TpuSource>(wanted.tpu(), std::move(options)));
  }
  if (wanted.notices().enabled() && identity.metadata.has_value()) {
    sources.push_back(MakeNoticesSource(wanted, identity, log));
  }
  if (wanted.node().enabled() && identity.node.has_value()) {
    sources.push_back(MakeNodeSource(wanted, identity, log));
  }
  const TextSourceOptions text{.host = identity.host, .own_job = wanted.host().job(), .log = log};
  TACHO_RETURN_IF_ERROR(AddTextSources(wanted, text, &sources));
  return sources;
}

}  // namespace tacho::agent
