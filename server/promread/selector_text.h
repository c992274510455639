// Series selectors as PromQL writes them: metric{label="x",other=~"y"}. Pure.
//
// https://prometheus.io/docs/prometheus/latest/querying/basics/#instant-vector-selectors and
// #string-literals. Of the language, only this is here.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/index/matcher.h"

namespace tacho::server::promread {

// The longest selector in bytes: a hundred matchers of 300 bytes are below it.
inline constexpr size_t kMaxSelectorBytes = size_t{32} << 10;

// The matchers of a selector; its metric is one on __name__. Takes the operators = != =~ !~, values
// in double quotes, single quotes (both with Go's escapes) and backquotes, a comma at the end, and
// names in quotes: {"a.b", "label.c"="x"}. `text` is not trusted; memory is linear in it, and each
// regular expression is bounded as Matcher::Create() says.
//   INVALID_ARGUMENT (MALFORMED)    it is no selector, names its metric twice, or would select
//                                   every series; the text says what is wrong at which character
//                                   (a byte, from 1).
//   RESOURCE_EXHAUSTED (TOO_LARGE)  it is longer, or has more matchers than kMaxMatchers.
absl::StatusOr<std::vector<storage::Matcher>> ParseSelector(absl::string_view text);

}  // namespace tacho::server::promread
