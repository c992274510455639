#include "client/ctl/text/json_writer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/time_format.h"

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
  const bool had_members = has_members_.back();
  const size_t depth = has_members_.size();
  has_members_.pop_back();
  if (had_members && !one_line_ && depth <= kBreakDepth)
    out_ << '\n' << std::string(2 * (depth - 1), ' ');
  out_ << bracket;
  if (has_members_.empty()) out_ << '\n';
}

void JsonWriter::Key(absl::string_view name) {
  Separate();
  out_ << JsonString(name) << ": ";
  after_key_ = true;
}

void JsonWriter::String(absl::string_view value) {
  Separate();
  out_ << JsonString(value);
}

void JsonWriter::Int(int64_t value) {
  Separate();
  out_ << absl::StrCat(value);
}

void JsonWriter::Uint(uint64_t value) {
  Separate();
  out_ << absl::StrCat(value);
}

void JsonWriter::Double(double value) {
  Separate();
  const std::string number = ExactNumber(value);
  out_ << (std::isfinite(value) ? number : JsonString(number));
}

void JsonWriter::Bool(bool value) {
  Separate();
  out_ << (value ? "true" : "false");
}

void JsonWriter::Null() {
  Separate();
  out_ << "null";
}

void JsonWriter::TimeFields(absl::string_view name, std::optional<int64_t> unix_ns) {
  Key(name);
  if (unix_ns) {
    String(ExactTime(*unix_ns));
  } else {
    Null();
  }
  Key(absl::StrCat(name, "_unix_ns"));
  if (unix_ns) {
    Int(*unix_ns);
  } else {
    Null();
  }
}

}  // namespace tacho::ctl
