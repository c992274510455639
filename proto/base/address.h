// Addresses as a configuration spells them.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tacho::config {

// "host" of "host:port", "v6" of "[v6]:port"; the whole text if it is neither.
std::string HostOf(absl::string_view address);

// Whether only this machine is meant: 127.0.0.0/8, ::1 (also mapped into IPv6), the name localhost
// and names below it. No name is resolved: what another name stands for can change.
bool IsLoopback(absl::string_view address);

}  // namespace tacho::config
