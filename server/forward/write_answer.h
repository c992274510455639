// What a receiver's answer to a request of remote write means for its sender. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/forward/write_request.h"
#include "storage/bucket/http_pool.h"

namespace tacho::server::forward {

enum class NextStep : uint8_t {
  kGoOn,      // The receiver has it.
  kLeaveOut,  // It will never take all of it: go on without.
  kTryLater,  // The same again, after a pause.
  kUseFirst,  // The receiver does not know 2.0: the same at once in 1.0, and so from then on.
  kSplit,     // It is too large for one request: the same at once in two.
};

struct Verdict {
  NextStep step = NextStep::kTryLater;
  size_t written = 0;                   // Samples that the receiver took; of kGoOn and kLeaveOut.
  std::optional<absl::Duration> pause;  // The receiver asks for it.
};

struct Asked {
  WriteVersion version = WriteVersion::k2;
  size_t samples = 0;
  // The configuration leaves the version open, and this receiver has never answered as one of 2.0.
  bool may_fall_back = false;
};

// The rules of both specifications:
//   2xx        written. One of 2.0 says how much; an answer without that comes from a receiver of
//              1.0, which may have read nothing in the request.
//   415        the receiver does not know the version. So also a 400 before it has shown that it
//              does: some read whatever comes as 1.0.
//   429, 5xx   later, and no sooner than Retry-After.
//   401, 403, 404, 407, 408, 3xx, none
//              later: what is wrong is a token, an address or the network, not the samples.
//   413        too large: in smaller requests.
//   other 4xx  never; 2.0 says how much was written all the same.
Verdict Judge(const Asked& asked, const storage::HttpReply& reply, absl::Time now);

// Whether the answer is one of a receiver of 2.0.
bool CountsWritten(const storage::HttpReply& reply);

// The pause of a Retry-After: seconds, or a time as HTTP writes it. At most kLongestRetryAfter.
inline constexpr absl::Duration kLongestRetryAfter = absl::Hours(1);
std::optional<absl::Duration> ParseRetryAfter(absl::string_view text, absl::Time now);

}  // namespace tacho::server::forward
