#include "client/ctl/output/record_writer.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/csv.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/time_format.h"

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

class TableRecords : public RecordWriter {
 public:
  TableRecords(const Environment& env, std::vector<RecordColumn> columns)
      : env_(env), columns_(std::move(columns)), table_(Headings()) {}

  void Row(const std::vector<Cell>& cells) override {
    std::vector<std::string> texts;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].heading.empty()) texts.push_back(Text(cells[i], columns_[i].kind));
    }
    table_.AddRow(std::move(texts));
    any_ = true;
  }

  void Finish() override {
    if (any_) table_.Print(*env_.out, env_.width, env_.unicode);
  }

 private:
  std::vector<TableColumn> Headings() const {
    std::vector<TableColumn> headings;
    for (const RecordColumn& column : columns_) {
      if (column.heading.empty()) continue;
      std::string heading = column.heading;
      if (column.kind == Kind::kTime) {
        absl::StrAppend(&heading, " (", ZoneName(env_.now, env_.zone), ")");
      }
      headings.push_back({heading, column.kind == Kind::kNumber ? Align::kRight : Align::kLeft,
                          column.kind == Kind::kText || column.kind == Kind::kMap});
    }
    return headings;
  }

  std::string Text(const Cell& cell, Kind kind) const {
    return std::visit(Overloaded{[](std::monostate) { return std::string(); },
                                 [](const std::string& text) { return text; },
                                 [](int64_t value) { return absl::StrCat(value); },
                                 [](uint64_t value) { return absl::StrCat(value); },
                                 [](double value) { return ReadableNumber(value); },
                                 [](const StringMap& map) { return MapText(map); },
                                 [&](UnixNs time) {
                                   return kind == Kind::kAge ? Age(time.value, env_.now)
                                                             : ReadableTime(time.value, env_.zone);
                                 }},
                      cell);
  }

  const Environment& env_;
  const std::vector<RecordColumn> columns_;
  Table table_;
  bool any_ = false;
};

bool IsTime(const RecordColumn& column) {
  return column.kind == Kind::kTime || column.kind == Kind::kAge;
}

class CsvRecords : public RecordWriter {
 public:
  CsvRecords(std::ostream& out, std::vector<RecordColumn> columns)
      : out_(out), columns_(std::move(columns)) {
    std::vector<std::string> headings;
    for (const RecordColumn& column : columns_) {
      headings.push_back(column.key);
      if (IsTime(column)) headings.push_back(column.key + "_unix_ns");
    }
    out_ << CsvLine(headings);
  }

  void Row(const std::vector<Cell>& cells) override {
    std::vector<std::string> fields;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (const auto* time = std::get_if<UnixNs>(&cells[i])) {
        fields.push_back(ExactTime(time->value));
        fields.push_back(absl::StrCat(time->value));
        continue;
      }
      fields.push_back(Text(cells[i]));
      if (IsTime(columns_[i])) fields.emplace_back();
    }
    out_ << CsvLine(fields);
  }

  void Finish() override {}

 private:
  static std::string Text(const Cell& cell) {
    return std::visit(Overloaded{[](const std::string& text) { return text; },
                                 [](int64_t value) { return absl::StrCat(value); },
                                 [](uint64_t value) { return absl::StrCat(value); },
                                 [](double value) { return ExactNumber(value); },
                                 [](const StringMap& map) { return MapText(map); },
                                 [](const auto&) { return std::string(); }},
                      cell);
  }

  std::ostream& out_;
  const std::vector<RecordColumn> columns_;
};

class JsonRecords : public RecordWriter {
 public:
  JsonRecords(std::ostream& out, const std::string& name, std::vector<RecordColumn> columns)
      : json_(out), columns_(std::move(columns)) {
    json_.BeginObject();
    json_.Key(name);
    json_.BeginArray();
  }

  void Row(const std::vector<Cell>& cells) override {
    json_.BeginObject();
    for (size_t i = 0; i < columns_.size(); ++i) Member(columns_[i], cells[i]);
    json_.EndObject();
  }

  void Finish() override {
    json_.EndArray();
    json_.EndObject();
  }

 private:
  void Member(const RecordColumn& column, const Cell& cell) {
    if (const auto* time = std::get_if<UnixNs>(&cell)) {
      json_.TimeFields(column.key, time->value);
      return;
    }
    if (IsTime(column)) return json_.TimeFields(column.key, std::nullopt);
    json_.Key(column.key);
    std::visit(Overloaded{[&](std::monostate) { json_.Null(); },
                          [&](const std::string& text) { json_.String(text); },
                          [&](int64_t value) { json_.Int(value); },
                          [&](uint64_t value) { json_.Uint(value); },
                          [&](double value) { json_.Double(value); }, [&](UnixNs) {},
                          [&](const StringMap& map) {
                            json_.BeginObject();
                            for (const auto& [name, value] : map) {
                              json_.Key(name);
                              json_.String(value);
                            }
                            json_.EndObject();
                          }},
               cell);
  }

  JsonWriter json_;
  const std::vector<RecordColumn> columns_;
};

}  // namespace

std::unique_ptr<RecordWriter> MakeRecordWriter(const Invocation& invocation,
                                               const std::string& name,
                                               std::vector<RecordColumn> columns) {
  std::ostream& out = *invocation.env.out;
  switch (invocation.common.format) {
    case Format::kJson:
      return std::make_unique<JsonRecords>(out, name, std::move(columns));
    case Format::kCsv:
      return std::make_unique<CsvRecords>(out, std::move(columns));
    case Format::kTable:
      break;
  }
  return std::make_unique<TableRecords>(invocation.env, std::move(columns));
}

}  // namespace tacho::ctl
