// Reads what Google Compute Engine says of maintenance to come.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::agent {

// The value of instance/maintenance-event or instance/preempted: empty if nothing is announced
// (NONE, FALSE), else the word, such as TERMINATE_ON_HOST_MAINTENANCE.
//   INVALID_ARGUMENT  no word of capitals, digits and underscores.
absl::StatusOr<std::string> ParseNotice(absl::string_view untrusted);

// The members of an announced maintenance, by name: type, maintenance_status, can_reschedule,
// window_start_time, window_end_time, latest_window_start_time, maintenance_reasons (separated by
// commas). A missing member has no entry; other members are left out.
using PlannedMaintenance = std::map<std::string, std::string>;
inline constexpr size_t kMaxPlannedText = 200;  // Per member; an event's message quotes some.

// The value of instance/upcoming-maintenance?alt=json: an object, whose members are named as above
// or in camelCase. None is announced by NONE, an empty object, or one that has an "error", which is
// what the server says until there was a first one.
//   INVALID_ARGUMENT  it is none of these.
absl::StatusOr<std::optional<PlannedMaintenance>> ParsePlannedMaintenance(
    absl::string_view untrusted);

}  // namespace tacho::agent
