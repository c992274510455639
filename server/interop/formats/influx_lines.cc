// The text is cut into lines first, and then each line is read, so that what follows a bad line
// does not depend on what is wrong with it. Both steps have the same rules for backslashes and
// quotes: else a quoted text with a newline in it could smuggle in a line of its own.
#include "server/interop/formats/influx_lines.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"
#include "server/interop/formats/label_mapping.h"

namespace tacho::server::interop {
namespace {

// Characters that end a name or value, and stand for themselves after a backslash.
constexpr absl::string_view kEndMeasurement = ", ";
constexpr absl::string_view kEndWord = ",= ";
// How much of a line or name a problem shows.
constexpr size_t kShownBytes = 80;

bool IsOneOf(char c, absl::string_view characters) {
  return characters.find(c) != absl::string_view::npos;
}

// Whether the backslash at `at` stands for the character after it.
bool Escapes(absl::string_view text, size_t at, absl::string_view characters) {
  return text[at] == '\\' && at + 1 < text.size() && IsOneOf(text[at + 1], characters);
}

// Where the quoted text that begins at `at`, after its first quote, has its last one; npos if it
// has none.
size_t EndOfQuoted(absl::string_view text, size_t at) {
  for (; at < text.size(); ++at) {
    if (Escapes(text, at, "\"\\")) {
      ++at;
    } else if (text[at] == '"') {
      return at;
    }
  }
  return absl::string_view::npos;
}

size_t SkipBlanks(absl::string_view text, size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  return at;
}

// Where the line that begins at `at` has its newline; the text's end if it has none. A quoted text
// begins after the = of a field.
size_t EndOfLine(absl::string_view text, size_t at) {
  at = SkipBlanks(text, at);
  if (at < text.size() && text[at] == '#') return std::min(text.find('\n', at), text.size());
  bool in_fields = false;
  bool after_equals = false;
  for (; at < text.size() && text[at] != '\n'; ++at) {
    const char c = text[at];
    if (Escapes(text, at, in_fields ? kEndWord : kEndMeasurement)) {
      ++at;
      after_equals = false;
      continue;
    }
    if (c == '"' && after_equals) {
      at = EndOfQuoted(text, at + 1);
      if (at == absl::string_view::npos) return text.size();
    }
    after_equals = in_fields && c == '=';
    in_fields = in_fields || c == ' ';
  }
  return std::min(at, text.size());
}

std::string Shown(absl::string_view text) {
  return absl::StrCat("'", text.substr(0, kShownBytes), text.size() > kShownBytes ? "…" : "", "'");
}

// True for digits, which may follow a minus where `is_signed`.
bool IsWhole(absl::string_view text, bool is_signed) {
  if (is_signed && !text.empty() && text[0] == '-') text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

// False for infinities, NaN and hexadecimal numbers, too, which the protocol does not have.
bool ReadFloat(absl::string_view text, double* value) {
  const auto allowed = [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || IsOneOf(c, ".eE+-");
  };
  return !text.empty() && text[0] != '+' && std::all_of(text.begin(), text.end(), allowed) &&
         absl::SimpleAtod(text, value) && std::isfinite(*value);
}

bool ReadBoolean(absl::string_view text, double* value) {
  const auto is_text = [text](const char* one) { return text == one; };
  const char* const yes[] = {"t", "T", "true", "True", "TRUE"};
  const char* const no[] = {"f", "F", "false", "False", "FALSE"};
  *value = std::any_of(std::begin(yes), std::end(yes), is_text) ? 1 : 0;
  return *value == 1 || std::any_of(std::begin(no), std::end(no), is_text);
}

template <typename Integer>
bool ReadWholeNumber(absl::string_view digits, double* value) {
  Integer whole = 0;
  if (!IsWhole(digits, std::is_signed_v<Integer>) || !absl::SimpleAtoi(digits, &whole)) {
    return false;
  }
  *value = static_cast<double>(whole);
  return true;
}

// The value of a field that is no text.
bool ReadNumber(absl::string_view text, double* value) {
  if (text.empty()) return false;
  const absl::string_view digits = text.substr(0, text.size() - 1);
  if (text.back() == 'i') return ReadWholeNumber<int64_t>(digits, value);
  if (text.back() == 'u') return ReadWholeNumber<uint64_t>(digits, value);
  return ReadFloat(text, value) || ReadBoolean(text, value);
}

// One request.
class LineReader {
 public:
  LineReader(int64_t unit_ns, int64_t now_ns) : unit_ns_(unit_ns), now_ns_(now_ns) {}

  absl::StatusOr<InfluxLines> Read(absl::string_view text) && {
    uint64_t number = 1;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = EndOfLine(text, begin);
      const absl::string_view line = text.substr(begin, end - begin);
      ReadWhole(line, number);
      TACHO_RETURN_IF_ERROR(result_.write.CheckSize());
      number += 1 + static_cast<uint64_t>(std::count(line.begin(), line.end(), '\n'));
      begin = end + 1;
    }
    return std::move(result_);
  }

 private:
  // Adds all of the line's fields, or none and the problem.
  void ReadWhole(absl::string_view line, uint64_t number) {
    absl::ConsumeSuffix(&line, "\r");
    line.remove_prefix(SkipBlanks(line, 0));
    if (line.empty() || line[0] == '#') return;
    ForeignWrite& write = result_.write;
    const size_t series = write.series.size();
    const uint64_t strings = result_.strings;
    in_ = line;
    at_ = 0;
    std::string problem = ReadMeasurement();
    if (problem.empty()) problem = ReadTags();
    if (problem.empty()) problem = ReadFields();
    int64_t time_ns = now_ns_;
    if (problem.empty()) problem = ReadTime(&time_ns);
    if (problem.empty()) {
      // Each series of the line has one sample, and the time comes last.
      for (size_t i = series; i < write.series.size(); ++i) {
        write.samples[write.series[i].first].time_ns = time_ns;
      }
      return;
    }
    write.samples.resize(write.samples.size() - (write.series.size() - series));
    write.texts.resize(write.texts.size() - (write.series.size() - series));
    write.series.resize(series);
    result_.strings = strings;
    if (result_.rejected++ > 0) return;
    result_.problem =
        absl::StrCat("unable to parse line ", number, ", ", Shown(line), ": ", problem);
  }

  // Each of these reads on from `at_`, and returns what is wrong, or an empty string.

  std::string ReadMeasurement() {
    name_ = Word(kEndMeasurement);
    return name_.empty() ? "the measurement is missing" : "";
  }

  std::string ReadTags() {
    std::vector<std::string> tags;
    storage::Labels labels;
    while (IsAt(',')) {
      ++at_;
      std::string tag = Word(kEndWord);
      if (tag.empty()) return "a tag has no name";
      if (!IsAt('=')) return absl::StrCat("the tag ", Shown(tag), " has no value");
      ++at_;
      const std::string value = Word(kEndWord);
      if (value.empty()) return absl::StrCat("the tag ", Shown(tag), " has no value");
      if (IsAt('=')) {
        return absl::StrCat("the value of the tag ", Shown(tag),
                            " has an = without a backslash before it");
      }
      if (std::find(tags.begin(), tags.end(), tag) != tags.end()) {
        return absl::StrCat("the tag ", Shown(tag), " is there twice");
      }
      if (at_ > kMaxInfluxKeyBytes || tags.size() == kMaxInfluxTags) {
        return absl::StrCat("the measurement and tags have more than ", kMaxInfluxKeyBytes,
                            " bytes, or there are more than ", kMaxInfluxTags, " tags");
      }
      std::string name = LabelNameOf(tag);
      if (name == kNameLabel) return "a tag has the name __name__, which is the metric's here";
      tags.push_back(std::move(tag));
      const auto known = std::find_if(labels.begin(), labels.end(),
                                      [&](const auto& label) { return label.first == name; });
      if (known == labels.end()) {
        labels.emplace_back(std::move(name), value);
      } else {
        absl::StrAppend(&known->second, ";", value);
      }
    }
    if (at_ > kMaxInfluxKeyBytes) {
      return absl::StrCat("the measurement has more than ", kMaxInfluxKeyBytes, " bytes");
    }
    labels_.clear();
    for (const auto& [name, value] : labels) AppendLabel(name, value, &labels_);
    return "";
  }

  std::string ReadFields() {
    at_ = SkipBlanks(in_, at_);
    if (at_ == in_.size()) return "the line has no fields";
    while (true) {
      const std::string field = Word(kEndWord);
      if (field.empty()) return "a field has no name";
      if (!IsAt('=')) return absl::StrCat("the field ", Shown(field), " has no value");
      ++at_;
      if (std::string problem = ReadValue(field); !problem.empty()) return problem;
      // The caller finds that the request is too large.
      if (!result_.write.CheckSize().ok() || !IsAt(',')) return "";
      ++at_;
    }
  }

  std::string ReadValue(const std::string& field) {
    if (IsAt('"')) {
      const size_t end = EndOfQuoted(in_, at_ + 1);
      if (end == absl::string_view::npos) {
        return absl::StrCat("the text of the field ", Shown(field), " has no last quote");
      }
      at_ = end + 1;
      ++result_.strings;
      if (at_ == in_.size() || IsAt(',') || IsAt(' ')) return "";
      return absl::StrCat("the text of the field ", Shown(field),
                          " goes on after its last quote; a quote in it needs a backslash");
    }
    const size_t end = std::min(in_.find_first_of(", ", at_), in_.size());
    const absl::string_view text = in_.substr(at_, end - at_);
    at_ = end;
    double value = 0;
    if (!ReadNumber(text, &value)) {
      return absl::StrCat("the field ", Shown(field), " has the value ", Shown(text),
                          ", which is no finite number (0.5, 5i, 5u), no boolean (t, f, true, "
                          "false) and no text in quotes");
    }
    std::string key;
    AppendLabel(kNameLabel, field == "value" ? name_ : absl::StrCat(name_, "_", field), &key);
    key += labels_;
    result_.write.AddSeriesWithText(std::move(key), nullptr, ForeignSeries::Part::kSample);
    result_.write.AddSample(0, value);
    return "";
  }

  std::string ReadTime(int64_t* time_ns) {
    at_ = SkipBlanks(in_, at_);
    const absl::string_view text = absl::StripTrailingAsciiWhitespace(in_.substr(at_));
    if (text.empty()) return "";
    int64_t time = 0;
    if (!IsWhole(text, true)) {
      return absl::StrCat("the time ", Shown(text), " is no whole number");
    }
    if (!absl::SimpleAtoi(text, &time) || __builtin_mul_overflow(time, unit_ns_, time_ns)) {
      return absl::StrCat(
          "the time ", Shown(text),
          " does not fit into 64 bits of nanoseconds; is the request's precision right?");
    }
    return "";
  }

  // The text up to one of `ends` that has no backslash before it, without such backslashes.
  std::string Word(absl::string_view ends) {
    std::string word;
    for (; at_ < in_.size() && !IsOneOf(in_[at_], ends); ++at_) {
      if (Escapes(in_, at_, ends)) ++at_;
      word.push_back(in_[at_]);
    }
    return word;
  }

  bool IsAt(char c) const { return at_ < in_.size() && in_[at_] == c; }

  const int64_t unit_ns_;
  const int64_t now_ns_;
  InfluxLines result_;
  // The line at hand, and how much of it is read.
  absl::string_view in_;
  size_t at_ = 0;
  std::string name_;    // The measurement.
  std::string labels_;  // As a part of a key.
};

}  // namespace

absl::StatusOr<InfluxLines> ReadInfluxLines(absl::string_view text, int64_t unit_ns,
                                            int64_t now_ns) {
  return LineReader(unit_ns, now_ns).Read(text);
}

}  // namespace tacho::server::interop
