// What a receiver's configuration says about the way to it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tacho/config/v1/forward.pb.h"

namespace tacho::server::forward {

bool SpeaksOtlp(const config::v1::Forward& config);

//   INVALID_ARGUMENT  a key is wrong; the text names it behind `key`, like "forward[0].url".
absl::Status CheckForward(const config::v1::Forward& config, absl::string_view key);

// HOST:PORT of an http:// or https:// URL without a path; empty if it is none.
absl::string_view AuthorityOf(absl::string_view url);

// Value of the header Authorization, of printable ASCII; empty: there is none. Reads the file with
// the secret each time, because secrets change.
//   UNAVAILABLE  the file cannot be read, or holds no secret; the text names it.
absl::StatusOr<std::string> AuthorizationOf(const config::v1::Forward& config);

}  // namespace tacho::server::forward
