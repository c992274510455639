#include "client/ctl/text/json_writer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/format.h"
#include "proto/base/check.h"

namespace tacho::ctl {
namespace {

// Brackets nested deeper than this stay on one line: rows are easier to read and to grep.
constexpr size_t kBreakDepth = 4;

}  // namespace

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_members_.empty()) return;
  if (has_members_.back()) out_ << ',';
  if (!one_line_ && has_members_.size() <= kBreakDepth) {
    out_ << '\n' << std::string(2 * has_members_.size(), ' ');
  } else if (has_members_.back()) {
    out_ << ' ';
  }
  has_members_.back() = true;
}

void JsonWriter::Begin(char bracket) {
  Separate();
  out_ << bracket;
  has_members_.push_back(false);
}

void JsonWriter::End(char bracket) {
  TACHO_CHECK(!has_members_.empty() && !after_key_);
  const bool had_members = has_members_.back();
  const size_t depth = has_members_.size();
  has_members_.pop_back();
  if (had_members && !one_line_ && depth <= kBreakDepth)
    out_ << '\n' << std::string(2 * (depth - 1), ' ');
  out_ << bracket;
  if (has_members_.empty()) out_ << '\n';
}

void JsonWriter::Key(absl::string_view name) {
  TACHO_CHECK(!after_key_);
  Separate();
  out_ << JsonString(name) << ": ";
  after_key_ = true;
}

void JsonWriter::Raw(absl::string_view text) {
  Separate();
  out_ << std::string(text);
}

void JsonWriter::String(absl::string_view value) { Raw(JsonString(value)); }

void JsonWriter::Int(int64_t value) { Raw(absl::StrCat(value)); }

void JsonWriter::Uint(uint64_t value) { Raw(absl::StrCat(value)); }

void JsonWriter::Double(double value) {
  const std::string number = ExactNumber(value);
  Raw(std::isfinite(value) ? number : JsonString(number));
}

void JsonWriter::TimeFields(absl::string_view name, std::optional<int64_t> unix_ns) {
  Field(name, unix_ns ? std::optional(ExactTime(*unix_ns)) : std::nullopt);
  Field(absl::StrCat(name, "_unix_ns"), unix_ns);
}

}  // namespace tacho::ctl
