#include "storage/matcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "re2/re2.h"

namespace tacho::storage {
namespace {

// The value of a label of a series; "" if it has none.
std::string LabelValue(const Series& series, absl::string_view label) {
  if (label == "task") return series.source->task ? absl::StrCat(*series.source->task) : "";
  if (label == "host") return series.source->host;
  const auto found = std::lower_bound(
      series.labels->begin(), series.labels->end(), label,
      [](const LabelSet::Label& pair, absl::string_view name) { return pair.first < name; });
  if (found == series.labels->end() || found->first != label) return std::string();
  return std::string(found->second);
}

}  // namespace

absl::StatusOr<Matcher> Matcher::Create(std::string label, Op op, std::string value) {
  if (label.empty()) return absl::InvalidArgumentError("a matcher needs a label name");
  std::shared_ptr<const re2::RE2> regex;
  if (op == Op::kMatches || op == Op::kNotMatches) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(64 << 10);
    regex = std::make_shared<const re2::RE2>(value, options);
    if (!regex->ok()) {
      return absl::InvalidArgumentError(absl::StrCat("matcher on label \"", label, "\": \"", value,
                                                     "\" is no RE2 expression: ", regex->error()));
    }
  }
  return Matcher(std::move(label), op, std::move(value), std::move(regex));
}

Matcher::Matcher(std::string label, Op op, std::string value, std::shared_ptr<const re2::RE2> regex)
    : label_(std::move(label)), op_(op), value_(std::move(value)), regex_(std::move(regex)) {}

bool Matcher::MatchesValue(absl::string_view label_value) const {
  const auto full_match = [&] {
    return re2::RE2::FullMatch(re2::StringPiece(label_value.data(), label_value.size()), *regex_);
  };
  switch (op_) {
    case Op::kEqual:
      return label_value == value_;
    case Op::kNotEqual:
      return label_value != value_;
    case Op::kMatches:
      return full_match();
    case Op::kNotMatches:
      return !full_match();
  }
  return false;
}

bool Matcher::Matches(const Series& series) const {
  return MatchesValue(LabelValue(series, label_));
}

}  // namespace tacho::storage
