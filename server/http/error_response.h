// An error of the table of server/errors/error_table.h as an answer over HTTP.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/http/http_server.h"

namespace tacho::server::http {

// The row's status with the text as body, and Retry-After in whole seconds where a retry helps.
// `spread` as for RetryAfter().
HttpResponse ErrorResponse(const absl::Status& status, uint64_t spread = 0);

}  // namespace tacho::server::http
