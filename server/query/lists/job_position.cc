#include "server/query/lists/job_position.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::query {

JobPosition JobPosition::Of(int64_t active_since_ns, int64_t seen_ns, std::string name) {
  return {active_since_ns, std::min(seen_ns, active_since_ns), std::move(name)};
}

bool IsBefore(const JobPosition& a, const JobPosition& b) {
  return std::tie(b.seen_ns, a.name) < std::tie(a.seen_ns, b.name);
}

// active_since,seen,name
std::string PageTokenOf(const JobPosition& position) {
  return absl::WebSafeBase64Escape(
      absl::StrCat(position.active_since_ns, ",", position.seen_ns, ",", position.name));
}

absl::StatusOr<JobPosition> ReadPageToken(absl::string_view token) {
  JobPosition position;
  std::string text;
  if (absl::WebSafeBase64Unescape(token, &text)) {
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(',', 2));
    if (parts.size() == 3 && absl::SimpleAtoi(parts[0], &position.active_since_ns) &&
        absl::SimpleAtoi(parts[1], &position.seen_ns)) {
      position.name = parts[2];
      return position;
    }
  }
  return errors::InvalidFieldError("page_token", "is not one of a previous answer");
}

}  // namespace tacho::server::query
