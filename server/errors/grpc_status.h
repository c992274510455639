// The only place that turns a status of ours into one of gRPC, and back.
//
//   from                    to the peer           with
//   any absl code           the same gRPC code    its text
//   a payload of it         the same              google.rpc.Status.details, same type URL
//   its row in error_table  where a retry helps   google.rpc.RetryInfo
//
// Details travel as a serialized google.rpc.Status in the trailer grpc-status-details-bin; a status
// without details has no such trailer. proto/tacho/v1 says which codes a service uses, and what its
// caller does next.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"

namespace tacho::server::errors {

// INVALID_ARGUMENT with the text "field: problem" and a google.rpc.BadRequest as payload. `field`
// is a path of the message as its proto spells it: "batch.times_unix_ns".
absl::Status InvalidFieldError(absl::string_view field, absl::string_view problem);

// Calls that are turned away together should pass different values of `spread`, for example a
// number that counts up.
grpc::Status ToGrpcStatus(const absl::Status& status, uint64_t spread = 0);

// The status with which a peer has ended a call, with its details but RetryInfo, which
// ToGrpcStatus() adds.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace tacho::server::errors
