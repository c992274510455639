// Builds the sources that a configuration asks for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/sources/identity/metadata_server.h"
#include "agent/sources/kubernetes/api_server.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

struct SourceIdentity {
  std::string host;  // The host label of everything that is sampled. Not empty.
  // Where maintenance is announced; none: nowhere.
  std::optional<MetadataServer> metadata = std::nullopt;
  // This machine's node in Kubernetes; none: nobody is asked.
  std::optional<NodePlace> node = std::nullopt;
  // TPU_RUNTIME_METRICS_PORTS as the metadata server has it, for want of one in the environment.
  std::string tpu_metrics_ports = {};
};

// `log` takes the sources' lines; it may be null and must outlive them.
//   INVALID_ARGUMENT  a value of the configuration cannot work (a job template that names a group
//                     which its pattern does not have, …); the text names the key.
absl::StatusOr<std::vector<std::unique_ptr<Source>>> MakeSources(const config::v1::Agent& config,
                                                                 const SourceIdentity& identity,
                                                                 log::Log log);

}  // namespace tacho::agent
