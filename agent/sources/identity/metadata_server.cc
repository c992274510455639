#include "agent/sources/identity/metadata_server.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "agent/sources/host/host_text.h"

namespace tacho::agent {
namespace {

constexpr char kLinkLocal[] = "169.254.169.254";
constexpr char kRoot[] = "/computeMetadata/v1/";
constexpr char kFlavorName[] = "metadata-flavor";
constexpr char kFlavor[] = "Google";
constexpr int kHttpOk = 200;
constexpr int kHttpForbidden = 403;
constexpr int kHttpNotFound = 404;

bool IsGoogles(const std::string& sys) {
  const auto product = ReadProcFile(sys + "/class/dmi/id/product_name");
  if (!product.ok()) return false;
  const absl::string_view name = absl::StripAsciiWhitespace(*product);
  return name == "Google Compute Engine" || name == "Google";
}

}  // namespace

absl::StatusOr<std::optional<HttpUrl>> FindMetadataServer(
    const std::string& sys, const client::EnvironmentGetter& environment, bool always) {
  for (const char* variable : {"GCE_METADATA_HOST", "GCE_METADATA_IP"}) {
    const char* const host = environment ? environment(variable) : nullptr;
    if (host == nullptr || *host == '\0') continue;
    auto url = ParseHttpUrl(absl::StrCat("http://", host));
    if (!url.ok() || url->path != "/") {
      return absl::InvalidArgumentError(
          absl::StrCat(variable, ": expected a host or host:port; unset it if this is no test"));
    }
    return *std::move(url);
  }
  if (!always && !IsGoogles(sys)) return std::nullopt;
  HttpUrl url;
  url.host = kLinkLocal;
  return url;
}

MetadataServer::MetadataServer(HttpUrl address, absl::Duration timeout)
    : address_(std::move(address)), timeout_(timeout) {}

absl::StatusOr<std::string> MetadataServer::Get(absl::string_view path) const {
  HttpUrl url = address_;
  url.path = absl::StrCat(kRoot, path);
  auto response = HttpGet(url, {.timeout = timeout_,
                                .max_body_bytes = kMaxBytes,
                                .headers = {absl::StrCat("Metadata-Flavor: ", kFlavor)}});
  const auto because = [&](absl::StatusCode code, absl::string_view why) {
    return absl::Status(code, absl::StrCat("metadata server ", authority(), ", ", path, ": ", why));
  };
  if (!response.ok()) return because(response.status().code(), response.status().message());
  if (response->status == kHttpNotFound || response->status == kHttpForbidden) {
    return because(absl::StatusCode::kNotFound, "there is no such fact");
  }
  if (response->status != kHttpOk) {
    return because(absl::StatusCode::kUnavailable, absl::StrCat("HTTP status ", response->status));
  }
  const auto flavor = response->headers.find(kFlavorName);
  if (flavor == response->headers.end() || flavor->second != kFlavor) {
    return because(absl::StatusCode::kUnavailable,
                   "the server is no metadata server: its answer lacks Metadata-Flavor: Google");
  }
  return std::move(response->body);
}

}  // namespace tacho::agent
