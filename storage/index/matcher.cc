#include "storage/index/matcher.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "re2/re2.h"

namespace tacho::storage {
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

bool Matcher::MatchesSource(const SeriesSource& source) const {
  if (label_ == "host") return MatchesValue(source.host);
  return MatchesValue(source.task ? absl::StrCat(*source.task) : "");
}

bool Matcher::Matches(const Series& series) const {
  return names_source() ? MatchesSource(*series.source) : MatchesValue(series.labels->Find(label_));
}

}  // namespace tacho::storage
