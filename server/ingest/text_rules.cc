#include "server/ingest/text_rules.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/utf8.h"

namespace tacho::server::ingest {

bool IsControl(char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); }

std::string ControlProblem(absl::string_view text) {
  return std::any_of(text.begin(), text.end(), IsControl) ? "has a control character" : "";
}

std::string TextProblem(absl::string_view text, size_t min_bytes, size_t max_bytes) {
  if (text.size() < min_bytes) return "must not be empty";
  if (text.size() > max_bytes) {
    return absl::StrCat("has ", text.size(), " bytes; at most ", max_bytes, " are allowed");
  }
  return IsUtf8(text) ? "" : "is not valid UTF-8";
}

std::string MetricNameProblem(absl::string_view name) {
  std::string problem = TextProblem(name, 1, kMaxMetricNameBytes);
  return problem.empty() ? ControlProblem(name) : problem;
}

std::string LabelNameProblem(absl::string_view name) {
  if (name.empty()) return "must not be empty";
  if (name.size() > kMaxLabelNameBytes) {
    return absl::StrCat("has ", name.size(), " bytes; at most ", kMaxLabelNameBytes,
                        " are allowed");
  }
  const auto allowed = [](char c) {
    return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c));
  };
  if (!std::all_of(name.begin(), name.end(), allowed) ||
      absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) {
    return "must match [a-zA-Z_][a-zA-Z0-9_]*";
  }
  if (name == "job" || name == "task" || name == "host" || name == "overflow" ||
      absl::StartsWith(name, "__")) {
    return absl::StrCat("\"", name, "\" is reserved");
  }
  return "";
}

std::string LabelValueProblem(absl::string_view value) {
  return TextProblem(value, 1, kMaxLabelValueBytes);
}

}  // namespace tacho::server::ingest
