// How the protocol repeats requests whose outcome is not known.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket.h"

namespace tacho::storage {

// Called before a request is sent again, with how many tries there were. It waits as long as it
// likes; how long is a matter of load, never of correctness. An error gives up: the call that
// repeats returns it, and then nobody knows whether the request has happened, or still will.
using BeforeRetry = std::function<absl::Status(int tries)>;

// Bucket::Get(), repeated while it is UNAVAILABLE.
//   NOT_FOUND  there is no such object.
//   others     of the bucket, or of `before_retry`.
inline absl::StatusOr<StoredObject> GetUntilAnswered(Bucket& bucket, absl::string_view key,
                                                     const BeforeRetry& before_retry) {
  for (int tries = 1;; ++tries) {
    absl::StatusOr<StoredObject> got = bucket.Get(key);
    if (!absl::IsUnavailable(got.status())) return got;
    if (absl::Status waited = before_retry(tries); !waited.ok()) return waited;
  }
}

}  // namespace tacho::storage
