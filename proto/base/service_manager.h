// Reports the state of the process to systemd, as sd_notify(3) does, without its library.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tacho {

// Thread-safe. Without a socket every call does nothing and succeeds; one that fails changes
// nothing for the process: the manager then waits until its own timeout.
class ServiceManager {
 public:
  // `socket` is what $NOTIFY_SOCKET says: a path, or "@name" in the abstract namespace; may be
  // empty.
  explicit ServiceManager(std::string socket) : socket_(std::move(socket)) {}

  // Started up: what depends on this service may start. `status` is shown by systemctl status.
  absl::Status Ready(absl::string_view status) const;
  // Shutting down.
  absl::Status Stopping(absl::string_view status) const;

 private:
  absl::Status Send(absl::string_view state, absl::string_view status) const;

  const std::string socket_;
};

}  // namespace tacho
