#include "server/web/page_url.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/address.h"

namespace tacho::server::web {
namespace {

bool IsEveryInterface(absl::string_view host) { return host == "0.0.0.0" || host == "::"; }

// As a URL spells it: an IPv6 address has brackets.
std::string UrlHost(absl::string_view host) {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]") : std::string(host);
}

bool IsPlain(char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); }

}  // namespace

absl::Status CheckPageUrl(absl::string_view url) {
  if (url.empty()) return absl::OkStatus();
  absl::string_view rest = url;
  const bool has_scheme =
      absl::ConsumePrefix(&rest, "http://") || absl::ConsumePrefix(&rest, "https://");
  const bool has_host = !rest.empty() && rest.front() != '/' && rest.front() != ':';
  const bool is_plain = std::all_of(rest.begin(), rest.end(), IsPlain) &&
                        rest.find_first_of("?#@\"<>\\") == absl::string_view::npos;
  if (has_scheme && has_host && is_plain) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ui.url: '", url,
                   "' is not the address of a page: write it like https://tacho.example/ui/, "
                   "without '?', '#', a user or blanks"));
}

std::string HostOfPageUrl(absl::string_view url) {
  const std::vector<std::string> parts = absl::StrSplit(url, absl::MaxSplits('/', 3));
  return parts.size() < 3 ? "" : parts[2];
}

std::string PageUrl(const config::v1::Collector& config, int port) {
  if (const std::string& url = config.ui().url(); !url.empty()) {
    return absl::StrCat(absl::StripSuffix(url, "/"), "/");
  }
  const auto& listen = config.listen();
  std::string host = config::HostOf(listen.http());
  if (host.empty() || IsEveryInterface(host)) {
    if (listen.http_hosts().empty()) return "";
    host = config::HostOf(listen.http_hosts(0));
  }
  const bool tls = !listen.tls().certificate().empty() && listen.tls().http();
  return absl::StrCat(tls ? "https://" : "http://", UrlHost(host), ":", port, "/ui/");
}

}  // namespace tacho::server::web
