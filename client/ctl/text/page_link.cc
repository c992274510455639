#include "client/ctl/text/page_link.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "proto/base/address.h"

namespace tacho::ctl {
namespace {

std::string Escaped(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || absl::StrContains("-_.~", c)) {
      escaped.push_back(c);
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", byte);
    }
  }
  return escaped;
}

}  // namespace

std::string ReachablePage(absl::string_view page, absl::string_view address) {
  // "https://tacho.example:7412/ui/"
  const std::vector<absl::string_view> parts = absl::StrSplit(page, '/');
  const bool is_local = parts.size() > 2 && config::IsLoopback(parts[2]);
  return is_local && !config::IsLoopback(address) ? "" : std::string(page);
}

std::string JobLink(absl::string_view page, absl::string_view job, absl::string_view condition) {
  if (page.empty()) return "";
  return absl::StrCat(page, "#/job/", Escaped(job),
                      condition.empty() ? "" : "?v=", Escaped(condition));
}

}  // namespace tacho::ctl
