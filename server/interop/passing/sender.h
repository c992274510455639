// Who sends a request of another tool.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "server/security/access_control.h"
#include "server/security/rights.h"

namespace tacho::server::interop {

struct Sender {
  std::string protocol;         // "remote_write".
  security::Credentials shown;  // `peer` is its address without a port.
  security::RightsPtr rights;
  // Another member of the cluster has passed the request on: it goes no further.
  bool passed_on = false;

  // As quotas know it: by who it is, or else by its address.
  std::string Name() const {
    if (!rights->owner().empty()) return absl::StrCat(protocol, ":", rights->owner());
    return shown.peer.empty() ? protocol : absl::StrCat(protocol, ":", shown.peer);
  }
};

}  // namespace tacho::server::interop
