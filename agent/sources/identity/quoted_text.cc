#include "agent/sources/identity/quoted_text.h"

#include "absl/strings/strip.h"

namespace tacho::agent {

std::optional<std::string> ConsumeQuoted(absl::string_view* rest) {
  constexpr absl::string_view kNames = "\\\"nt";
  constexpr absl::string_view kMeant = "\\\"\n\t";
  if (!absl::ConsumePrefix(rest, "\"")) return std::nullopt;
  std::string value;
  while (!rest->empty()) {
    const char c = rest->front();
    rest->remove_prefix(1);
    if (c == '"') return value;
    if (c != '\\') {
      value += c;
      continue;
    }
    const size_t escape = rest->empty() ? absl::string_view::npos : kNames.find(rest->front());
    if (escape == absl::string_view::npos) return std::nullopt;
    value += kMeant[escape];
    rest->remove_prefix(1);
  }
  return std::nullopt;
}

}  // namespace tacho::agent
