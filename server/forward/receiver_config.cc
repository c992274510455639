#include "server/forward/receiver_config.h"

#include <algorithm>
#include <fstream>
#include <ios>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"

namespace tacho::server::forward {
namespace {

// A secret of more bytes is none.
constexpr size_t kMaxSecretBytes = 64 << 10;

bool IsPrintable(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)); });
}

bool HasControls(absl::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); });
}

absl::StatusOr<std::string> ReadSecret(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::UnavailableError(absl::StrCat(path, ": the file cannot be read"));
  std::string text(kMaxSecretBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  absl::StripAsciiWhitespace(&text);
  if (text.empty() || HasControls(text)) {
    return absl::UnavailableError(absl::StrCat(path, ": the file has no secret of one line"));
  }
  return text;
}

// gRPC ends the process if a call has metadata that breaks its rules.
bool IsMetadata(absl::string_view name, absl::string_view value) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  return std::all_of(name.begin(), name.end(), allowed) && IsPrintable(value) &&
         !absl::EndsWithIgnoreCase(name, "-bin") && !absl::StartsWithIgnoreCase(name, "grpc-");
}

absl::string_view WithoutScheme(absl::string_view url) {
  if (absl::ConsumePrefix(&url, "http://") || absl::ConsumePrefix(&url, "https://")) return url;
  return {};
}

}  // namespace

bool SpeaksOtlp(const config::v1::Forward& config) { return config.protocol() == "otlp"; }

absl::string_view AuthorityOf(absl::string_view url) {
  absl::string_view authority = WithoutScheme(url);
  absl::ConsumeSuffix(&authority, "/");
  const size_t colon = authority.rfind(':');
  if (colon == absl::string_view::npos || colon == 0 || colon + 1 == authority.size()) return {};
  const absl::string_view port = authority.substr(colon + 1);
  const bool digits = std::all_of(port.begin(), port.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  return digits && authority.find_first_of("/?#@ ") == absl::string_view::npos
             ? authority
             : absl::string_view();
}

absl::Status CheckForward(const config::v1::Forward& config, absl::string_view key) {
  const auto wrong = [&key](absl::string_view name, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(key, ".", name, ": ", what));
  };
  const bool otlp = SpeaksOtlp(config);
  if (config.name().empty()) return wrong("name", "give the receiver a name");
  if (otlp && AuthorityOf(config.url()).empty()) {
    return wrong("url",
                 "write http://HOST:PORT or https://HOST:PORT: OTLP goes over gRPC, which has no "
                 "path in its address");
  }
  if (WithoutScheme(config.url()).empty()) {
    return wrong("url", "write http://HOST:PORT/PATH or https://HOST:PORT/PATH");
  }
  if (!config.series() && config.aggregates().interval() == 0) {
    return wrong("series",
                 "it is false, so give aggregates.interval, or the receiver gets nothing");
  }
  if (!config.bearer_token_file().empty() && !config.username().empty()) {
    return wrong("username", "use it or bearer_token_file, not both");
  }
  if (config.username().empty() != config.password_file().empty()) {
    return wrong("password_file", "basic authentication needs username and password_file");
  }
  for (const auto& [name, value] : config.headers()) {
    for (const char* own : {"Content-Encoding", "Content-Type", "User-Agent", "Authorization",
                            "X-Prometheus-Remote-Write-Version"}) {
      if (absl::EqualsIgnoreCase(name, own)) {
        return wrong("headers", absl::StrCat(name, " is set by the collector; remove it"));
      }
    }
    if (name.empty() || name.find_first_of(": ") != std::string::npos || HasControls(name) ||
        HasControls(value) || (otlp && !IsMetadata(name, value))) {
      return wrong("headers",
                   absl::StrCat("\"", name, "\" or its value cannot be a header's",
                                otlp ? ": gRPC takes names of letters, digits, -, _ and . that do "
                                       "not begin with grpc- or end with -bin, and values of "
                                       "printable ASCII"
                                     : ""));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> AuthorizationOf(const config::v1::Forward& config) {
  std::string value;
  if (!config.bearer_token_file().empty()) {
    TACHO_ASSIGN_OR_RETURN(const auto token, ReadSecret(config.bearer_token_file()));
    value = absl::StrCat("Bearer ", token);
  } else if (!config.username().empty()) {
    TACHO_ASSIGN_OR_RETURN(const auto password, ReadSecret(config.password_file()));
    value =
        absl::StrCat("Basic ", absl::Base64Escape(absl::StrCat(config.username(), ":", password)));
  }
  if (!IsPrintable(value)) {
    return absl::UnavailableError(
        absl::StrCat(config.bearer_token_file(), ": the token has characters other than ASCII's"));
  }
  return value;
}

}  // namespace tacho::server::forward
