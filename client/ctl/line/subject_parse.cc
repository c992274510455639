#include "client/ctl/line/subject_parse.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tacho::ctl {

std::string SubjectName::Text() const {
  if (attempt) return absl::StrCat(job, "@", *attempt);
  return ParseSubject(job).job == job ? job : absl::StrCat(job, "@");
}

SubjectName ParseSubject(absl::string_view text) {
  const size_t at = text.rfind('@');
  if (at == absl::string_view::npos || at == 0) return {std::string(text), std::nullopt};
  const absl::string_view job = text.substr(0, at);
  const absl::string_view number = text.substr(at + 1);
  if (number.empty()) return {std::string(job), std::nullopt};
  uint32_t attempt = 0;
  const bool is_number = absl::ascii_isdigit(static_cast<unsigned char>(number[0])) &&
                         absl::SimpleAtoi(number, &attempt);
  if (!is_number) return {std::string(text), std::nullopt};
  return {std::string(job), attempt};
}

}  // namespace tacho::ctl
