// What must be configured before a port is opened to other machines.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/process/reloadable.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::security {

// Each text says which key it is about, and every way out.
//   FAILED_PRECONDITION  an address that other machines reach, without authentication and without
//                        auth.allow_anonymous; or with tokens, without TLS and without
//                        auth.allow_plaintext.
//   INVALID_ARGUMENT     keys that exclude each other.
absl::Status CheckListen(const config::v1::Collector& config);

// CheckListen(), and everything that the security keys name, as a start would find it.
absl::Status CheckSecurity(const config::v1::Collector& config);

// Holds a reload to CheckListen(), and to TLS being on or off as it was at the start.
class ListenPolicy final : public process::Reloadable {
 public:
  explicit ListenPolicy(const config::v1::Collector& started_with);
  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override;

 private:
  const bool tls_;
};

}  // namespace tacho::server::security
