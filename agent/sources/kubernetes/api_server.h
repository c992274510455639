// Kubernetes' API server, as the pod's service account sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/sources/fetch/http_get.h"
#include "client/environment_identity.h"

namespace tacho::agent {

// Where this process asks for its node, and as whom.
struct NodePlace {
  HttpUrl url;                  // The node's object, over TLS.
  std::string node;             // Its name.
  std::string service_account;  // Directory with token and ca.crt.
};

// From KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and NODE_NAME of the environment, which may
// be null. None outside Kubernetes. The url is parsed as one of http://, and asked over TLS.
//   FAILED_PRECONDITION  this is a pod, and something is missing; the text says what to add.
//   INVALID_ARGUMENT     a variable is no host, port or name of a node.
absl::StatusOr<std::optional<NodePlace>> FindNode(const client::EnvironmentGetter& environment,
                                                  const std::string& service_account);

// A Node with the names of a thousand images has 300 KB.
inline constexpr uint64_t kMaxNodeBytes = uint64_t{4} << 20;

// The node's object as JSON, untrusted. Reads ca.crt and the token each time, since the kubelet
// renews the token each hour. `timeout` is for all of it, unless looking up a name hangs.
//   PERMISSION_DENIED   the service account has no right to it; the text has the rule to add.
//   UNAUTHENTICATED     the server refuses the token, or ca.crt does not vouch for the server.
//   NOT_FOUND           there is no node of that name.
//   UNAVAILABLE         it fails, or nothing answers.
//   DEADLINE_EXCEEDED   not in time.
//   others              of the files, or as HttpsGet().
absl::StatusOr<std::string> GetNode(const NodePlace& place, absl::Duration timeout);

}  // namespace tacho::agent
