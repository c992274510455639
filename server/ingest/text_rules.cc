#include "server/ingest/text_rules.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tacho::server {
namespace {

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// Bytes of the code point at the front of `text`, which is not empty; 0 if there is none.
size_t CodePointBytes(absl::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                        : lead >= 0xE0 && lead <= 0xEF ? 3
                        : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(byte(i))) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool too_high = lead == 0xF4 && second > 0x8F;
  return overlong || surrogate || too_high ? 0 : length;
}

bool IsControl(char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); }

}  // namespace

bool IsUtf8(absl::string_view text) {
  // Nearly all text is ASCII, which a word tells at once.
  for (uint64_t word = 0; text.size() >= sizeof(word); text.remove_prefix(sizeof(word))) {
    std::memcpy(&word, text.data(), sizeof(word));
    if ((word & 0x8080808080808080) != 0) break;
  }
  while (!text.empty()) {
    const size_t length = CodePointBytes(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
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
  if (problem.empty() && std::any_of(name.begin(), name.end(), IsControl)) {
    problem = "has a control character";
  }
  return problem;
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

}  // namespace tacho::server
