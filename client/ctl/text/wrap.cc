#include "client/ctl/text/wrap.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {

std::vector<std::string> Wrap(absl::string_view text, size_t width) {
  std::vector<std::string> lines;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const bool fits = !lines.empty() &&
                      (width == 0 || DisplayWidth(lines.back()) + 1 + DisplayWidth(word) <= width);
    if (fits) {
      absl::StrAppend(&lines.back(), " ", word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

}  // namespace tacho::ctl
