// A list of records (jobs, series, events) in any of the three formats, from one description.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/ctl/line/command.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/table.h"

namespace tacho::ctl {

struct UnixNs {
  int64_t value = 0;
};
using StringMap = std::vector<std::pair<std::string, std::string>>;
using StringList = std::vector<std::string>;
// monostate stands for "absent": empty in a table and in CSV, null in JSON.
using Cell = std::variant<std::monostate, std::string, int64_t, uint64_t, double, UnixNs, StringMap,
                          StringList>;

struct RecordColumn {
  std::string key;      // JSON member and CSV heading. A time adds a second one, KEY_unix_ns.
  std::string heading;  // In the table; "" leaves the column out of it.
  // A count has its digits grouped in the table; another number (a task) can be typed as it stands.
  enum class Kind { kText, kNumber, kCount, kTime, kAge, kMap, kList } kind = Kind::kText;
};

// Rows are written as they come, except for the table, which has to know its widths.
class RecordWriter {
 public:
  // `name` is the JSON member that holds the array of records: {"jobs": [...]}. `invocation`
  // outlives the writer.
  RecordWriter(const Invocation& invocation, const std::string& name,
               std::vector<RecordColumn> columns);

  // One cell a column.
  void Row(const std::vector<Cell>& cells);
  void Finish();

 private:
  std::string TableText(const Cell& cell, RecordColumn::Kind kind) const;

  const Format format_;
  const Environment& env_;
  const std::vector<RecordColumn> columns_;
  JsonWriter json_;
  Table table_;
  bool any_ = false;
};

// One named number of an answer that is no list: "log.level  info".
struct Figure {
  std::string group;  // May be empty; figures of a group stand together.
  std::string key;
  Cell value;  // No map, no list.
};

// Table: one line for each; CSV: key,value; JSON: an object with an object for each group.
void PrintFigures(const Invocation& invocation, const std::vector<Figure>& figures);

}  // namespace tacho::ctl
