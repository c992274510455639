#include "agent/sources/kubernetes/api_server.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/sources/fetch/bounded_file.h"
#include "agent/sources/fetch/http_response.h"
#include "agent/sources/fetch/https_get.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

constexpr uint64_t kMaxCredentialBytes = 1 << 20;
constexpr size_t kMaxNodeName = 253;  // Kubernetes' limit.
constexpr char kNotNeeded[] = ", or set sources.node.enabled to false";

std::string Variable(const client::EnvironmentGetter& environment, const char* name) {
  const char* const value = environment ? environment(name) : nullptr;
  return value == nullptr ? "" : value;
}

// It becomes a part of the path.
bool IsNodeName(absl::string_view name) {
  return name.size() <= kMaxNodeName && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '.';
         });
}

absl::StatusOr<std::string> ReadCredential(const NodePlace& place, const char* name) {
  const std::string path = absl::StrCat(place.service_account, "/", name);
  absl::StatusOr<std::string> text = ReadBoundedFile(path, kMaxCredentialBytes);
  if (text.ok()) return text;
  return absl::Status(text.status().code(), absl::StrCat(path, ": ", text.status().message()));
}

absl::StatusOr<std::string> ReadToken(const NodePlace& place) {
  TACHO_ASSIGN_OR_RETURN(std::string token, ReadCredential(place, "token"));
  absl::StripAsciiWhitespace(&token);
  const bool is_token = !token.empty() && std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (is_token) return token;
  return absl::InvalidArgumentError(absl::StrCat(place.service_account, "/token holds no token"));
}

absl::StatusOr<std::string> BodyOf(const NodePlace& place, HttpResponse response) {
  constexpr int kOk = 200;
  constexpr int kUnauthorized = 401;
  constexpr int kForbidden = 403;
  constexpr int kNotFound = 404;
  const std::string server = absl::StrCat("Kubernetes' API server ", place.url.authority());
  switch (response.status) {
    case kOk:
      return std::move(response.body);
    case kUnauthorized:
      return absl::UnauthenticatedError(absl::StrCat(server, " refuses the token in ",
                                                     place.service_account,
                                                     ": check the pod's service account"));
    case kForbidden:
      return absl::PermissionDeniedError(absl::StrCat(
          "the pod's service account may not read the node ", place.node,
          ": bind it to a ClusterRole with the rule {apiGroups: [''], resources: [nodes], verbs: "
          "[get]}",
          kNotNeeded));
    case kNotFound:
      return absl::NotFoundError(absl::StrCat(server, " has no node '", place.node,
                                              "': set NODE_NAME from spec.nodeName"));
    default:
      return absl::UnavailableError(
          absl::StrCat(server, " answers with the status ", response.status));
  }
}

}  // namespace

absl::StatusOr<std::optional<NodePlace>> FindNode(const client::EnvironmentGetter& environment,
                                                  const std::string& service_account) {
  const std::string host = Variable(environment, "KUBERNETES_SERVICE_HOST");
  if (host.empty()) return std::nullopt;
  std::string port = Variable(environment, "KUBERNETES_SERVICE_PORT");
  if (port.empty()) port = "443";
  const std::string node = Variable(environment, "NODE_NAME");
  if (node.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the node of this pod is not known: set NODE_NAME from spec.nodeName in the "
                     "pod's environment",
                     kNotNeeded));
  }
  if (::access(absl::StrCat(service_account, "/token").c_str(), F_OK) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no ", service_account,
                     "/token: set automountServiceAccountToken: true in the pod", kNotNeeded));
  }
  // Checks host and port, which come from the environment.
  const std::string authority = absl::StrContains(host, ':') ? absl::StrCat("[", host, "]") : host;
  absl::StatusOr<HttpUrl> url =
      ParseHttpUrl(absl::StrCat("http://", authority, ":", port, "/api/v1/nodes/", node));
  if (!url.ok() || url->host != host || !IsNodeName(node)) {
    return absl::InvalidArgumentError(
        absl::StrCat("KUBERNETES_SERVICE_HOST '", host, "', KUBERNETES_SERVICE_PORT '", port,
                     "' or NODE_NAME '", node, "' is wrong: correct the pod's environment"));
  }
  return NodePlace{.url = *std::move(url), .node = node, .service_account = service_account};
}

absl::StatusOr<std::string> GetNode(const NodePlace& place, absl::Duration timeout) {
  TACHO_ASSIGN_OR_RETURN(const std::string token, ReadToken(place));
  TlsAuthorities authorities{.path = absl::StrCat(place.service_account, "/ca.crt"), .pem = {}};
  TACHO_ASSIGN_OR_RETURN(authorities.pem, ReadCredential(place, "ca.crt"));
  const HttpGetOptions options{.timeout = timeout,
                               .max_body_bytes = kMaxNodeBytes,
                               .accept = "application/json",
                               .headers = {absl::StrCat("Authorization: Bearer ", token)}};
  absl::StatusOr<HttpResponse> response = HttpsGet(place.url, authorities, options);
  if (response.ok()) return BodyOf(place, *std::move(response));
  return absl::Status(response.status().code(), absl::StrCat("cannot ask Kubernetes' API server: ",
                                                             response.status().message()));
}

}  // namespace tacho::agent
