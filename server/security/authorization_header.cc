#include "server/security/authorization_header.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"

namespace tacho::server::security {
namespace {

// Bounds what is decoded; four thirds of it is the longest token that can be meant.
constexpr size_t kMaxHeaderBytes = 2048;

}  // namespace

std::string TokenOf(absl::string_view authorization, bool allow_basic) {
  const absl::string_view header = absl::StripAsciiWhitespace(authorization);
  const size_t space = header.find(' ');
  if (space == absl::string_view::npos || header.size() > kMaxHeaderBytes) return "";
  const absl::string_view scheme = header.substr(0, space);
  const absl::string_view value = absl::StripLeadingAsciiWhitespace(header.substr(space));
  if (absl::EqualsIgnoreCase(scheme, "bearer")) return std::string(value);
  std::string pair;
  if (!allow_basic || !absl::EqualsIgnoreCase(scheme, "basic") ||
      !absl::Base64Unescape(value, &pair)) {
    return "";
  }
  const size_t colon = pair.find(':');
  return colon == std::string::npos ? "" : pair.substr(colon + 1);
}

}  // namespace tacho::server::security
