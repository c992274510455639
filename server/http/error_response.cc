#include "server/http/error_response.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"

namespace tacho::server::http {

HttpResponse ErrorResponse(const absl::Status& status, uint64_t spread) {
  HttpResponse response;
  response.status = errors::RowOf(status).http_status;
  response.body = absl::StrCat(status.message(), "\n");
  if (const auto delay = errors::RetryAfter(status, spread); delay.has_value()) {
    const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(*delay, absl::Seconds(1)));
    response.headers.emplace_back("Retry-After", absl::StrCat(seconds));
  }
  return response;
}

}  // namespace tacho::server::http
