// What an answer of the service means for a call of Bucket.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/http_pool.h"

namespace tacho::storage {

enum class BucketCall { kGet, kGetIfChanged, kGetRange, kPutNew, kPutIf, kPut, kList, kDelete };

// As FinishedRequest::operation.
const char* NameOf(BucketCall call);
inline bool IsWrite(BucketCall call) {
  return call == BucketCall::kPutNew || call == BucketCall::kPutIf || call == BucketCall::kPut;
}

// Whether sending the same request again may give another outcome, and cannot do harm.
enum class Again {
  kNo,
  kSlow,     // At once, on a new connection.
  kFailed,   // After a pause, on a new connection.
  kBusy,     // After a pause.
  kError,    // After a pause.
  kExpired,  // With other credentials.
};
// As FinishedRequest::retry.
const char* NameOf(Again again);

// The rules. Where the service says that it has not done anything (409, 429, 503), and where it
// never got the request, everything is repeated. Otherwise reads are, and writes: the same bytes
// under the same condition harm nothing, and if the first try did happen the caller learns that an
// object is there. Not so after a 5xx for a conditional write: Ceph 16 answers 500 to some that
// lose a race, and the caller will read anyway. A deletion whose answer was lost is not repeated:
// another object may have come since.
Again ShouldRepeat(BucketCall call, const HttpReply& reply);

// The status of a finished call; OK for what succeeds. `name` is the object's or the bucket's,
// `source` the one of the credentials.
absl::Status StatusOf(BucketCall call, const HttpReply& reply, absl::string_view name,
                      absl::string_view source);

}  // namespace tacho::storage
