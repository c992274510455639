#include "client/tfevents/position.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tacho::client {
namespace {

// Words in the order below, separated by spaces; the tag is last since it may hold spaces.
constexpr absl::string_view kVersion = "1";
constexpr int kWords = 12;
constexpr absl::string_view kNone = "-";

template <typename Integer>
bool Parse(absl::string_view word, Integer* value) {
  return absl::SimpleAtoi(word, value);
}

bool ParseFlag(absl::string_view word, bool* value) {
  *value = word == "1";
  return word == "0" || word == "1";
}

bool ParseStep(absl::string_view word, std::optional<int64_t>* step) {
  if (word == kNone) return true;
  int64_t value = 0;
  if (!Parse(word, &value)) return false;
  *step = value;
  return true;
}

}  // namespace

std::string TfeventsPosition::Encode() const {
  return absl::StrCat(kVersion, " ", offset, " ", first_crc, " ", last_crc, " ", dead ? 1 : 0, " ",
                      placed ? 1 : 0, " ", attempt, " ",
                      highest.has_value() ? absl::StrCat(*highest) : std::string(kNone), " ",
                      chunk_end, " ", done_attempt, " ", done_rows) +
         " " + done_tag;
}

std::optional<TfeventsPosition> TfeventsPosition::Decode(absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::MaxSplits(' ', kWords - 1));
  TfeventsPosition position;
  if (words.size() != kWords || words[0] != kVersion || !Parse(words[1], &position.offset) ||
      !Parse(words[2], &position.first_crc) || !Parse(words[3], &position.last_crc) ||
      !ParseFlag(words[4], &position.dead) || !ParseFlag(words[5], &position.placed) ||
      !Parse(words[6], &position.attempt) || !ParseStep(words[7], &position.highest) ||
      !Parse(words[8], &position.chunk_end) || !Parse(words[9], &position.done_attempt) ||
      !Parse(words[10], &position.done_rows)) {
    return std::nullopt;
  }
  position.done_tag = std::string(words[11]);
  return position;
}

}  // namespace tacho::client
