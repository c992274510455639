// Links to screens of the collector's page (docs/page.md).
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tacho::ctl {

// `page` as a collector at `address` says it; empty if it is a page for the collector's machine
// alone and `address` is not of this machine.
std::string ReachablePage(absl::string_view page, absl::string_view address);

// The screen of a job, at the verdict on `condition` unless that is empty:
// "https://tacho.example/ui/#/job/NAME?v=Straggling". `page` is WhoAmIResponse.page_url; empty if
// that is empty. The names are untrusted: what is no letter, digit or -_.~ is escaped (RFC 3986,
// 2).
std::string JobLink(absl::string_view page, absl::string_view job, absl::string_view condition);

}  // namespace tacho::ctl
