#include "agent/sources/identity/fact_files.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tacho::agent {

std::optional<std::string> ConsumeQuoted(absl::string_view* rest) {
  constexpr absl::string_view kNames = "\\\"nt";
  constexpr absl::string_view kMeant = "\\\"\n\t";
  if (!absl::ConsumePrefix(rest, "\"")) return std::nullopt;
  std::string value;
  while (!rest->empty()) {
    const char c = rest->front();
    rest->remove_prefix(1);
    if (c == '"') return value;
    if (c != '\\') {
      value += c;
      continue;
    }
    const size_t escape = rest->empty() ? absl::string_view::npos : kNames.find(rest->front());
    if (escape == absl::string_view::npos) return std::nullopt;
    value += kMeant[escape];
    rest->remove_prefix(1);
  }
  return std::nullopt;
}

namespace {

using ObjectLabels = std::map<std::string, std::string>;

void Add(absl::string_view key, std::string value, ObjectLabels* labels) {
  if (key.empty() || labels->size() >= kMaxPodLabels) return;
  labels->try_emplace(std::string(key), std::move(value));
}

}  // namespace

ObjectLabels ParsePodLabels(absl::string_view untrusted) {
  ObjectLabels labels;
  for (const absl::string_view line : absl::StrSplit(untrusted, '\n')) {
    const size_t equals = line.find('=');
    if (equals == absl::string_view::npos) continue;
    absl::string_view rest = line.substr(equals + 1);
    std::optional<std::string> value = ConsumeQuoted(&rest);
    if (!value.has_value() || !absl::StripAsciiWhitespace(rest).empty()) continue;
    Add(line.substr(0, equals), *std::move(value), &labels);
  }
  return labels;
}

ObjectLabels ParseNodeLabels(absl::string_view untrusted) {
  ObjectLabels labels;
  for (const absl::string_view entry : absl::StrSplit(untrusted, ',')) {
    const size_t equals = entry.find('=');
    if (equals == absl::string_view::npos) continue;
    Add(absl::StripAsciiWhitespace(entry.substr(0, equals)),
        std::string(absl::StripAsciiWhitespace(entry.substr(equals + 1))), &labels);
  }
  return labels;
}

namespace {

bool IsKey(absl::string_view key) {
  return !key.empty() && key.size() <= kMaxTpuEnvKey &&
         std::all_of(key.begin(), key.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// White space, or a comment that white space sets off.
bool IsEndOfLine(absl::string_view rest) {
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(rest);
  return text.empty() || (text.size() < rest.size() && text.front() == '#');
}

// `text` begins behind the quote.
std::optional<std::string> SingleQuoted(absl::string_view text) {
  std::string value;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\'') {
      value += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '\'') {
      value += text[++i];
    } else if (IsEndOfLine(text.substr(i + 1))) {
      return value;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<std::string> DoubleQuoted(absl::string_view text) {
  std::optional<std::string> value = ConsumeQuoted(&text);
  return IsEndOfLine(text) ? value : std::nullopt;
}

std::string Bare(absl::string_view text) {
  size_t end = text.find('#');
  while (end != absl::string_view::npos && end > 0 &&
         !absl::ascii_isspace(static_cast<unsigned char>(text[end - 1]))) {
    end = text.find('#', end + 1);
  }
  return std::string(absl::StripTrailingAsciiWhitespace(text.substr(0, end)));
}

std::optional<std::string> ValueOf(absl::string_view text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  if (absl::ConsumePrefix(&text, "'")) return SingleQuoted(text);
  if (absl::StartsWith(text, "\"")) return DoubleQuoted(text);
  return Bare(text);
}

}  // namespace

std::map<std::string, std::string> ParseTpuEnv(absl::string_view untrusted) {
  constexpr char kByteOrderMark[] = "\xef\xbb\xbf";
  std::map<std::string, std::string> found;
  absl::ConsumePrefix(&untrusted, kByteOrderMark);
  for (absl::string_view line : absl::StrSplit(untrusted, '\n')) {
    absl::ConsumeSuffix(&line, "\r");
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos || absl::StrContains(line, '\0')) continue;
    const absl::string_view key = absl::StripAsciiWhitespace(line.substr(0, colon));
    if (!IsKey(key)) continue;
    std::optional<std::string> value = ValueOf(line.substr(colon + 1));
    if (!value.has_value() || value->size() > kMaxTpuEnvValue) continue;
    const std::string name(key);
    if (found.size() >= kMaxTpuEnvEntries && !found.contains(name)) continue;
    found[name] = *std::move(value);
  }
  return found;
}

}  // namespace tacho::agent
