// Writes records from one description of their columns. CSV and JSON go out row by row; a table
// has to know its widths first.
#include "client/ctl/output/record_writer.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/text.h"
#include "proto/base/check.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::string MapText(const StringMap& map) {
  std::string text;
  for (const auto& [name, value] : map) {
    absl::StrAppend(&text, text.empty() ? "" : ",", name, "=", value);
  }
  return text;
}

enum class Style { kReadable, kExact };

// Times are exact in both styles; callers that show a zone or an age write times themselves.
std::string Text(const Cell& cell, Style style) {
  const bool exact = style == Style::kExact;
  return std::visit(
      Overloaded{[](std::monostate) { return std::string(); },
                 [](const std::string& text) { return text; },
                 [](int64_t value) { return absl::StrCat(value); },
                 [](uint64_t value) { return absl::StrCat(value); },
                 [=](double value) { return exact ? ExactNumber(value) : ReadableNumber(value); },
                 [](UnixNs time) { return ExactTime(time.value); },
                 [](const StringMap& map) { return MapText(map); },
                 [](const StringList& list) { return absl::StrJoin(list, ","); }},
      cell);
}

bool IsTime(const RecordColumn& column) {
  return column.kind == Kind::kTime || column.kind == Kind::kAge;
}

std::vector<TableColumn> TableColumns(const std::vector<RecordColumn>& columns,
                                      const Environment& env) {
  std::vector<TableColumn> headings;
  for (const RecordColumn& column : columns) {
    if (column.heading.empty()) continue;
    std::string heading = column.heading;
    if (column.kind == Kind::kTime) {
      absl::StrAppend(&heading, " (", ZoneName(env.now, env.zone), ")");
    }
    const bool number = column.kind == Kind::kNumber || column.kind == Kind::kCount;
    headings.push_back(
        {heading, number ? Align::kRight : Align::kLeft,
         column.kind == Kind::kText || column.kind == Kind::kMap || column.kind == Kind::kList});
  }
  return headings;
}

std::string CsvHeadings(const std::vector<RecordColumn>& columns) {
  std::vector<std::string> headings;
  for (const RecordColumn& column : columns) {
    headings.push_back(column.key);
    if (IsTime(column)) headings.push_back(column.key + "_unix_ns");
  }
  return CsvLine(headings);
}

std::string CsvRow(const std::vector<RecordColumn>& columns, const std::vector<Cell>& cells) {
  std::vector<std::string> fields;
  for (size_t i = 0; i < columns.size(); ++i) {
    fields.push_back(Text(cells[i], Style::kExact));
    const auto* time = std::get_if<UnixNs>(&cells[i]);
    if (time != nullptr || IsTime(columns[i])) {
      fields.push_back(time != nullptr ? absl::StrCat(time->value) : "");
    }
  }
  return CsvLine(fields);
}

void WriteField(const std::string& key, const Cell& cell, JsonWriter* json) {
  std::visit(Overloaded{[&](std::monostate) { json->Field(key, std::optional<int64_t>()); },
                        [&](UnixNs time) { json->TimeFields(key, time.value); },
                        [&](const auto& value) { json->Field(key, value); }},
             cell);
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
    WriteField(figure.key, figure.value, &json);
  }
  if (!open.empty()) json.EndObject();
  json.EndObject();
}

std::string ReadableFigure(const Cell& value, absl::TimeZone zone) {
  if (const auto* natural = std::get_if<uint64_t>(&value)) return Thousands(*natural);
  if (const auto* time = std::get_if<UnixNs>(&value)) return ReadableTime(time->value, zone);
  return Text(value, Style::kReadable);
}

std::string Name(const Figure& figure) {
  return absl::StrCat(figure.group, figure.group.empty() ? "" : ".", figure.key);
}

}  // namespace

RecordWriter::RecordWriter(const Invocation& invocation, const std::string& name,
                           std::vector<RecordColumn> columns)
    : format_(invocation.common.format),
      env_(invocation.env),
      columns_(std::move(columns)),
      json_(*env_.out),
      table_(TableColumns(columns_, env_)) {
  if (format_ == Format::kCsv) *env_.out << CsvHeadings(columns_);
  if (format_ != Format::kJson) return;
  json_.BeginObject();
  json_.Key(name);
  json_.BeginArray();
}

std::string RecordWriter::TableText(const Cell& cell, Kind kind) const {
  const auto* natural = std::get_if<uint64_t>(&cell);
  if (kind == Kind::kCount && natural != nullptr) return Thousands(*natural);
  const auto* time = std::get_if<UnixNs>(&cell);
  if (time == nullptr) return Text(cell, Style::kReadable);
  return kind == Kind::kAge ? Age(time->value, env_.now) : ReadableTime(time->value, env_.zone);
}

void RecordWriter::Row(const std::vector<Cell>& cells) {
  TACHO_CHECK(cells.size() == columns_.size());
  any_ = true;
  if (format_ == Format::kCsv) {
    *env_.out << CsvRow(columns_, cells);
  } else if (format_ == Format::kJson) {
    json_.Object([&] {
      for (size_t i = 0; i < columns_.size(); ++i) {
        const RecordColumn& column = columns_[i];
        const bool no_time = IsTime(column) && std::holds_alternative<std::monostate>(cells[i]);
        no_time ? json_.TimeFields(column.key, std::nullopt)
                : WriteField(column.key, cells[i], &json_);
      }
    });
  } else {
    std::vector<std::string> texts;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].heading.empty()) texts.push_back(TableText(cells[i], columns_[i].kind));
    }
    table_.AddRow(std::move(texts));
  }
}

void RecordWriter::Finish() {
  if (format_ == Format::kJson) {
    json_.EndArray();
    json_.EndObject();
  } else if (format_ == Format::kTable && any_) {
    table_.Print(*env_.out, env_.width, env_.unicode);
  }
}

void PrintFigures(const Invocation& invocation, const std::vector<Figure>& figures) {
  std::ostream& out = *invocation.env.out;
  const absl::TimeZone zone = invocation.env.zone;
  if (invocation.common.format == Format::kJson) return PrintJson(figures, out);
  if (invocation.common.format == Format::kCsv) {
    out << CsvLine({"key", "value"});
    for (const Figure& figure : figures) {
      out << CsvLine({Name(figure), Text(figure.value, Style::kExact)});
    }
    return;
  }
  size_t width = 0;
  for (const Figure& figure : figures) width = std::max(width, Name(figure).size());
  for (const Figure& figure : figures) {
    std::string name = Name(figure);
    name.resize(width + 2, ' ');
    out << name << Printable(ReadableFigure(figure.value, zone)) << '\n';
  }
}

}  // namespace tacho::ctl
