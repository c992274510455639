// What a status says about when to try again.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "grpcpp/support/status.h"

namespace tacho::client {

// The delay of the google.rpc.RetryInfo in the status' details; nullopt if there is none, or bytes
// that are no google.rpc.Status.
std::optional<absl::Duration> RetryDelay(const grpc::Status& status);

}  // namespace tacho::client
