#include "server/http/accept.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tacho::server::http {
namespace {

// One part of a header: "text/plain;version=0.0.4;q=0.5".
struct Range {
  std::string name;     // Lower case.
  std::string version;  // Empty if there is none.
  double q = 1;
};

// A q that is not a number from 0 to 1 counts as 1: a client that names a format wants it.
double ParseQ(absl::string_view text) {
  double q = 1;
  if (!absl::SimpleAtod(text, &q) || !(q >= 0 && q <= 1)) return 1;
  return q;
}

std::vector<Range> ParseRanges(absl::string_view header) {
  std::vector<Range> ranges;
  for (const absl::string_view part : absl::StrSplit(header, ',')) {
    const std::vector<absl::string_view> pieces = absl::StrSplit(part, ';');
    Range range;
    range.name = absl::AsciiStrToLower(absl::StripAsciiWhitespace(pieces[0]));
    if (range.name.empty()) continue;
    for (size_t i = 1; i < pieces.size(); ++i) {
      const std::pair<absl::string_view, absl::string_view> parameter =
          absl::StrSplit(pieces[i], absl::MaxSplits('=', 1));
      const absl::string_view key = absl::StripAsciiWhitespace(parameter.first);
      absl::string_view value = absl::StripAsciiWhitespace(parameter.second);
      absl::ConsumePrefix(&value, "\"");
      absl::ConsumeSuffix(&value, "\"");
      if (absl::EqualsIgnoreCase(key, "q")) range.q = ParseQ(value);
      if (absl::EqualsIgnoreCase(key, "version")) range.version = std::string(value);
    }
    ranges.push_back(std::move(range));
  }
  return ranges;
}

// How closely a range names text/plain 0.0.4; 0 if it does not.
int Closeness(const Range& range) {
  if (!range.version.empty() && range.version != "0.0.4") return 0;
  if (range.name == "text/plain") return range.version.empty() ? 3 : 4;
  if (range.name == "text/*") return 2;
  return range.name == "*/*" ? 1 : 0;
}

}  // namespace

bool AcceptsPrometheusText(absl::string_view accept) {
  const std::vector<Range> ranges = ParseRanges(accept);
  if (ranges.empty()) return true;
  int closest = 0;
  double q = 0;
  for (const Range& range : ranges) {
    const int closeness = Closeness(range);
    if (closeness == 0 || closeness < closest) continue;
    q = closeness == closest ? std::max(q, range.q) : range.q;
    closest = closeness;
  }
  return q > 0;
}

bool AcceptsGzip(absl::string_view accept_encoding) {
  double gzip = -1;
  double any = -1;
  for (const Range& range : ParseRanges(accept_encoding)) {
    if (range.name == "gzip" || range.name == "x-gzip") gzip = range.q;
    if (range.name == "*") any = range.q;
  }
  return gzip >= 0 ? gzip > 0 : any > 0;
}

}  // namespace tacho::server::http
