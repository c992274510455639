#include "client/ctl/output/figures.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/csv.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/text.h"
#include "client/ctl/text/time_format.h"

namespace tacho::ctl {
namespace {

void WriteJson(const Figure& figure, JsonWriter* json) {
  if (const auto* time = std::get_if<UnixNs>(&figure.value)) {
    return json->TimeFields(figure.key, time->value);
  }
  json->Key(figure.key);
  if (const auto* text = std::get_if<std::string>(&figure.value)) {
    json->String(*text);
  } else if (const auto* integer = std::get_if<int64_t>(&figure.value)) {
    json->Int(*integer);
  } else if (const auto* natural = std::get_if<uint64_t>(&figure.value)) {
    json->Uint(*natural);
  } else if (const auto* number = std::get_if<double>(&figure.value)) {
    json->Double(*number);
  } else {
    json->Null();
  }
}

void PrintJson(const std::vector<Figure>& figures, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  std::string open;
  for (const Figure& figure : figures) {
    if (figure.group != open) {
      if (!open.empty()) json.EndObject();
      open = figure.group;
      if (!open.empty()) {
        json.Key(open);
        json.BeginObject();
      }
    }
    WriteJson(figure, &json);
  }
  if (!open.empty()) json.EndObject();
  json.EndObject();
}

std::string Text(const Cell& value, bool exact, absl::TimeZone zone) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* integer = std::get_if<int64_t>(&value)) return absl::StrCat(*integer);
  if (const auto* natural = std::get_if<uint64_t>(&value)) {
    return exact ? absl::StrCat(*natural) : Thousands(*natural);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return exact ? ExactNumber(*number) : ReadableNumber(*number);
  }
  if (const auto* time = std::get_if<UnixNs>(&value)) {
    return exact ? ExactTime(time->value) : ReadableTime(time->value, zone);
  }
  return "";
}

std::string Name(const Figure& figure) {
  return absl::StrCat(figure.group, figure.group.empty() ? "" : ".", figure.key);
}

}  // namespace

void PrintFigures(const Invocation& invocation, const std::vector<Figure>& figures) {
  std::ostream& out = *invocation.env.out;
  const absl::TimeZone zone = invocation.env.zone;
  if (invocation.common.format == Format::kJson) return PrintJson(figures, out);
  if (invocation.common.format == Format::kCsv) {
    out << CsvLine({"key", "value"});
    for (const Figure& figure : figures) {
      out << CsvLine({Name(figure), Text(figure.value, true, zone)});
    }
    return;
  }
  size_t width = 0;
  for (const Figure& figure : figures) width = std::max(width, Name(figure).size());
  for (const Figure& figure : figures) {
    std::string name = Name(figure);
    name.resize(width + 2, ' ');
    out << name << Printable(Text(figure.value, false, zone)) << '\n';
  }
}

}  // namespace tacho::ctl
