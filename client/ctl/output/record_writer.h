// A list of records (jobs, series, events) in any of the three formats, from one description.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/ctl/line/command.h"

namespace tacho::ctl {

struct UnixNs {
  int64_t value = 0;
};
using StringMap = std::vector<std::pair<std::string, std::string>>;
// monostate is "absent": empty in a table and in CSV, null in JSON.
using Cell =
    std::variant<std::monostate, std::string, int64_t, uint64_t, double, UnixNs, StringMap>;

struct RecordColumn {
  std::string key;      // JSON member and CSV heading. A time adds a second one, KEY_unix_ns.
  std::string heading;  // Of the table; "" leaves the column out of it.
  enum class Kind { kText, kNumber, kTime, kAge, kMap } kind = Kind::kText;
};

// Rows are written as they come, except for the table, which has to know its widths.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  // One cell a column.
  virtual void Row(const std::vector<Cell>& cells) = 0;
  virtual void Finish() = 0;
};

// `name` is the JSON member that holds the array of records: {"jobs": [...]}.
std::unique_ptr<RecordWriter> MakeRecordWriter(const Invocation& invocation,
                                               const std::string& name,
                                               std::vector<RecordColumn> columns);

}  // namespace tacho::ctl
