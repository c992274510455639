// Checks the configuration before a port is opened to other machines.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/process/reloadable.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::security {

// Each text names the key that is wrong, and every way to correct it.
//   FAILED_PRECONDITION  an address that other machines reach, without authentication and without
//                        auth.allow_anonymous; or with tokens, without TLS and without
//                        auth.allow_plaintext.
//   INVALID_ARGUMENT     keys that exclude each other.
absl::Status CheckListen(const config::v1::Collector& config);

// CheckListen(), and all files that the security keys name, as a start would check them.
absl::Status CheckSecurity(const config::v1::Collector& config);

// Refuses a reload that fails CheckListen(), or that turns TLS on or off.
class ListenPolicy final : public process::Reloadable {
 public:
  explicit ListenPolicy(const config::v1::Collector& started_with);
  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override;

 private:
  const bool tls_;
};

}  // namespace tacho::server::security
