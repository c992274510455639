#include "server/interop/formats/foreign_events.h"

#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"

namespace tacho::server::interop {

absl::Status ForeignEvents::CheckSize() const {
  if (events.size() <= kMaxEvents && text_bytes <= kMaxTextBytes) return absl::OkStatus();
  return errors::ErrorOf(
      errors::Failure::kTooLarge,
      absl::StrCat("the request has more than ", kMaxEvents, " events, or texts of more than ",
                   kMaxTextBytes, " bytes in all: send fewer records a request"));
}

}  // namespace tacho::server::interop
