// The metadata server of a Google Compute Engine machine: facts of the machine over HTTP, at a
// link-local address.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/fetch/http_get.h"
#include "client/environment_identity.h"

namespace tacho::agent {

// Where it is, found out without a network: elsewhere its name may lead nowhere, or to somebody
// else.
//
//   1  GCE_METADATA_HOST, else GCE_METADATA_IP, of the environment: "host" or "host:port"
//   2  169.254.169.254, if `sys`/class/dmi/id/product_name is one of Google's, or if `always`. The
//      address and not the name metadata.google.internal: it is needed where names do not resolve.
//
// None: this is no machine of Google's.
//   INVALID_ARGUMENT  the variable is no host; the text names it.
absl::StatusOr<std::optional<HttpUrl>> FindMetadataServer(
    const std::string& sys, const client::EnvironmentGetter& environment, bool always);

// A value: its address. Thread-safe.
class MetadataServer {
 public:
  // The server itself allows 512 KiB for all that is set on an instance.
  static constexpr uint64_t kMaxBytes = uint64_t{512} << 10;

  // `timeout` is for each Get().
  MetadataServer(HttpUrl address, absl::Duration timeout);

  // The text at /computeMetadata/v1/`path`, untrusted. Redirects are not followed.
  //   NOT_FOUND           there is nothing, or it is concealed from pods.
  //   UNAVAILABLE         nothing answers, it is overloaded, or it is no metadata server:
  //                       the answers of one say "Metadata-Flavor: Google".
  //   DEADLINE_EXCEEDED   not in time.
  //   others              as HttpGet().
  absl::StatusOr<std::string> Get(absl::string_view path) const;

  std::string authority() const { return address_.authority(); }

 private:
  HttpUrl address_;
  absl::Duration timeout_;
};

}  // namespace tacho::agent
