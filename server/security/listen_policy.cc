#include "server/security/listen_policy.h"

#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "server/security/access_control.h"
#include "server/security/tls_source.h"

namespace tacho::server::security {
namespace {

struct Port {
  const char* key;
  const std::string& address;
  bool tls;
};

absl::Status CheckPort(const Port& port, const config::v1::Collector::Auth& auth) {
  if (config::IsLoopback(port.address)) return absl::OkStatus();
  const std::string where =
      absl::StrCat(port.key, ": other machines can reach ", port.address, ", and ");
  if (auth.tokens_file().empty() && !auth.allow_anonymous()) {
    return absl::FailedPreconditionError(absl::StrCat(
        where,
        "there is no authentication: everybody could read and write. Set auth.tokens_file "
        "(tacho-collector --make-token makes its first entry), or listen on 127.0.0.1, or "
        "accept this with auth.allow_anonymous: true"));
  }
  if (!auth.tokens_file().empty() && !port.tls && !auth.allow_plaintext()) {
    return absl::FailedPreconditionError(absl::StrCat(
        where,
        "without TLS everybody on the network path could read the tokens. Set "
        "listen.tls.certificate and listen.tls.key, or listen on 127.0.0.1 behind a proxy that "
        "speaks TLS, or accept this with auth.allow_plaintext: true"));
  }
  return absl::OkStatus();
}

// StatsD has no credentials, whatever the others have to show.
absl::Status CheckStatsd(const std::string& address, const config::v1::Collector::Auth& auth) {
  if (address.empty() || config::IsLoopback(address) || auth.allow_anonymous()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "interop.statsd.listen: other machines can reach ", address,
      ", and StatsD has no authentication: everybody could write. Listen on 127.0.0.1",
      auth.tokens_file().empty() ? ", or accept this with auth.allow_anonymous: true" : ""));
}

}  // namespace

absl::Status CheckListen(const config::v1::Collector& config) {
  const auto& listen = config.listen();
  const auto& auth = config.auth();
  if (auth.allow_anonymous() && !auth.tokens_file().empty()) {
    return absl::InvalidArgumentError(
        "auth.allow_anonymous: is true, but with auth.tokens_file nobody is let in without a token "
        "or certificate: remove one of the two");
  }
  TACHO_RETURN_IF_ERROR(CheckStatsd(config.interop().statsd().listen(), auth));
  const bool tls = TlsIsOn(listen.tls());
  if (auto s = CheckPort({"listen.grpc", listen.grpc(), tls}, auth); !s.ok()) return s;
  return CheckPort({"listen.http", listen.http(), tls && listen.tls().http()}, auth);
}

absl::Status CheckSecurity(const config::v1::Collector& config) {
  TACHO_RETURN_IF_ERROR(CheckListen(config));
  if (const auto& tls = config.listen().tls(); TlsIsOn(tls)) {
    if (auto material = LoadTlsMaterial(tls, absl::Now()); !material.ok()) return material.status();
  }
  return AccessControl::Create(config.auth()).status();
}

ListenPolicy::ListenPolicy(const config::v1::Collector& started_with)
    : tls_(TlsIsOn(started_with.listen().tls())) {}

absl::StatusOr<std::function<void()>> ListenPolicy::Prepare(const config::v1::Collector& config) {
  TACHO_RETURN_IF_ERROR(CheckListen(config));
  if (TlsIsOn(config.listen().tls()) != tls_) {
    return absl::FailedPreconditionError(absl::StrCat("listen.tls.certificate: turning TLS ",
                                                      tls_ ? "off" : "on", " needs a restart"));
  }
  return std::function<void()>([] {});
}

}  // namespace tacho::server::security
