#include "server/metrics/metric_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tacho::server::metrics {

std::string Metric::Help() const {
  std::string text = absl::StrReplaceAll(info_.help, {{"`", ""}});
  if (!info_.when.empty()) absl::StrAppend(&text, ". ", info_.when);
  return absl::StrCat(text, ".");
}

}  // namespace tacho::server::metrics
