// What a refused call says about trying again.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "grpcpp/support/status.h"

namespace tacho {

// The delay of the google.rpc.RetryInfo in the status' details; nullopt if there is none, or if the
// details are not a google.rpc.Status. The sender may have written any number, also a negative one.
std::optional<absl::Duration> RetryDelay(const grpc::Status& status);

}  // namespace tacho
