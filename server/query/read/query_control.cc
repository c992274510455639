#include "server/query/read/query_control.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"

namespace tacho::server::query {

QueryControl::QueryControl(absl::Duration timeout, std::function<absl::Time()> monotonic,
                           const std::atomic<bool>* draining)
    : timeout_(timeout),
      monotonic_(std::move(monotonic)),
      deadline_(monotonic_() + timeout_),
      draining_(draining) {}

absl::Status QueryControl::Check() const {
  if (cancelled_) return absl::CancelledError("the client has gone");
  if (draining_ != nullptr && *draining_) return errors::Draining();
  if (deadline_ != absl::InfiniteFuture() && monotonic_() >= deadline_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the query ran longer than query.timeout, ", absl::FormatDuration(timeout_),
                     ": select fewer series, a shorter time or step range, or set max_points"));
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::query
