// A line is cut at its bars, and each field is read for itself: what follows the type may come in
// any order, and newer clients add fields that older servers skip.
#include "server/interop/formats/statsd_lines.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/interop/formats/foreign_write.h"
#include "server/interop/formats/label_mapping.h"

namespace tacho::server::interop {
namespace {

constexpr size_t kShownStatsdBytes = 80;

std::string ShownStatsd(absl::string_view text) {
  return absl::StrCat("'", text.substr(0, kShownStatsdBytes),
                      text.size() > kShownStatsdBytes ? "…" : "", "'");
}

// Decimal alone: no hexadecimal numbers, no infinities, no NaN.
bool ReadStatsdNumber(absl::string_view text, double* value) {
  const bool allowed = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.' || c == 'e' || c == 'E' ||
           c == '+' || c == '-';
  });
  return allowed && absl::SimpleAtod(text, value) && std::isfinite(*value);
}

// The part of `rest` up to `end`, which is taken away with it.
absl::string_view Cut(char end, absl::string_view* rest) {
  const size_t at = rest->find(end);
  const absl::string_view part = rest->substr(0, at);
  rest->remove_prefix(at == absl::string_view::npos ? rest->size() : at + 1);
  return part;
}

bool ReadKind(absl::string_view type, StatsdPoint* point) {
  using Kind = StatsdPoint::Kind;
  constexpr std::pair<absl::string_view, Kind> kKinds[] = {
      {"c", Kind::kCounter}, {"g", Kind::kGauge}, {"s", Kind::kSet},
      {"ms", Kind::kTimer},  {"h", Kind::kTimer}, {"d", Kind::kTimer},
  };
  for (const auto& [name, kind] : kKinds) {
    if (type != name) continue;
    point->kind = kind;
    point->milliseconds = type == "ms";
    return true;
  }
  return false;
}

// These return what is wrong, or an empty string.

std::string ReadStatsdTags(absl::string_view tags, StatsdPoint* point) {
  std::map<std::string, std::string> labels;
  size_t count = 0;
  for (const absl::string_view tag : absl::StrSplit(tags, ',', absl::SkipEmpty())) {
    if (++count > kMaxStatsdTags)
      return absl::StrCat("there are more than ", kMaxStatsdTags, " tags");
    const size_t colon = tag.find(':');
    std::string name = LabelNameOf(tag.substr(0, colon));
    if (name.empty()) return absl::StrCat("the tag ", ShownStatsd(tag), " has no name");
    if (name == kNameLabel) return "a tag has the name __name__, which is the metric's here";
    const absl::string_view value =
        colon == absl::string_view::npos ? absl::string_view("true") : tag.substr(colon + 1);
    if (value.empty()) continue;  // A label without a value is none.
    const auto [known, is_new] = labels.try_emplace(std::move(name), value);
    if (!is_new) absl::StrAppend(&known->second, ";", value);
  }
  point->labels.clear();
  for (const auto& [name, value] : labels) AppendLabel(name, value, &point->labels);
  return "";
}

std::string ReadStatsdField(absl::string_view field, StatsdPoint* point) {
  if (absl::ConsumePrefix(&field, "#")) return ReadStatsdTags(field, point);
  if (absl::ConsumePrefix(&field, "@")) {
    if (ReadStatsdNumber(field, &point->rate) && point->rate > 0 && point->rate <= 1) return "";
    return absl::StrCat("the sample rate ", ShownStatsd(field), " is not above 0 and at most 1");
  }
  if (absl::ConsumePrefix(&field, "T")) {
    int64_t seconds = 0;
    int64_t time_ns = 0;
    if (!absl::SimpleAtoi(field, &seconds) || seconds < 0 ||
        __builtin_mul_overflow(seconds, int64_t{1'000'000'000}, &time_ns)) {
      return absl::StrCat("the time ", ShownStatsd(field), " is no number of seconds since 1970");
    }
    point->time_ns = time_ns;
    return "";
  }
  // "c:" names a container, "e:" what else is known of it. More may come.
  const size_t colon = field.find(':');
  if (colon != absl::string_view::npos && colon > 0) return "";
  return absl::StrCat("the field ", ShownStatsd(field), " is not known");
}

std::string ReadStatsdValues(absl::string_view values, StatsdPoint* point) {
  if (point->kind == StatsdPoint::Kind::kSet) {
    point->member = std::string(values);
    return values.empty() ? "the value is missing" : "";
  }
  while (true) {
    const bool is_last = values.find(':') == absl::string_view::npos;
    const absl::string_view text = Cut(':', &values);
    double value = 0;
    if (!ReadStatsdNumber(text, &value)) {
      return absl::StrCat("the value ", ShownStatsd(text), " is no finite number");
    }
    const bool has_sign = text[0] == '+' || text[0] == '-';
    if (point->kind == StatsdPoint::Kind::kGauge && !point->values.empty() &&
        point->changes != has_sign) {
      return "some of the values have signs, and others none";
    }
    point->changes = has_sign;
    point->values.push_back(value);
    if (is_last) return "";
  }
}

std::string ReadStatsdPoint(absl::string_view line, StatsdPoint* point) {
  if (line.find('|') == absl::string_view::npos) return "the type is missing";
  absl::string_view fields = line;
  absl::string_view values = Cut('|', &fields);
  if (values.find(':') == absl::string_view::npos) return "the value is missing";
  point->name = std::string(Cut(':', &values));
  if (point->name.empty()) return "the name is missing";
  const absl::string_view type = Cut('|', &fields);
  if (!ReadKind(type, point)) {
    return absl::StrCat("the type ", ShownStatsd(type), " is not one of c, g, ms, h, d and s");
  }
  if (std::string problem = ReadStatsdValues(values, point); !problem.empty()) return problem;
  while (!fields.empty()) {
    const absl::string_view field = Cut('|', &fields);
    if (field.empty()) continue;
    if (std::string problem = ReadStatsdField(field, point); !problem.empty()) return problem;
  }
  if (point->kind != StatsdPoint::Kind::kGauge) {
    const bool negative = std::any_of(point->values.begin(), point->values.end(),
                                      [](double value) { return value < 0; });
    if (negative && point->kind == StatsdPoint::Kind::kCounter) {
      return "a counter goes up, and the value is negative";
    }
    point->changes = false;
  }
  if (point->name.size() + point->labels.size() > kMaxStatsdKeyBytes) {
    return absl::StrCat("the name and tags have more than ", kMaxStatsdKeyBytes, " bytes");
  }
  return "";
}

}  // namespace

StatsdLines ReadStatsdLines(absl::string_view text) {
  StatsdLines lines;
  while (!text.empty()) {
    absl::string_view line = Cut('\n', &text);
    absl::ConsumeSuffix(&line, "\r");
    if (line.empty()) continue;
    if (absl::StartsWith(line, "_e{")) {
      ++lines.events;
      continue;
    }
    if (absl::StartsWith(line, "_sc|")) {
      ++lines.service_checks;
      continue;
    }
    StatsdPoint point;
    const std::string problem = ReadStatsdPoint(line, &point);
    if (problem.empty()) {
      lines.points.push_back(std::move(point));
    } else if (lines.rejected++ == 0) {
      lines.problem = absl::StrCat(ShownStatsd(line), ": ", problem);
    }
  }
  return lines;
}

}  // namespace tacho::server::interop
