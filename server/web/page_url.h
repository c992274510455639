// The address under which users reach the page, for links that lead to it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::web {

// Checks ui.url.
//   INVALID_ARGUMENT  it is neither empty nor http:// or https:// with a host; or it has a query, a
//                     fragment, a blank or a control character. The text begins with the key.
absl::Status CheckPageUrl(absl::string_view url);

// "tacho.example:7412" of ui.url; empty if that is empty. CheckPageUrl() was asked before.
std::string HostOfPageUrl(absl::string_view url);

// ui.url, with a slash at its end. If that is empty, an address made from listen.http, where
// listen.http_hosts replaces a host that stands for all interfaces; `port` is the real one. Empty:
// neither names a host. CheckPageUrl() was asked before.
std::string PageUrl(const config::v1::Collector& config, int port);

}  // namespace tacho::server::web
