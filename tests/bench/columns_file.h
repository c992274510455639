// Columns of real data as tests/bench/real_columns.py writes them, and how they are replayed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::bench {

// Columns of one length that follow each other in the file: they came from one table or log, so
// one source sampled them together.
using ColumnTable = std::vector<std::vector<double>>;

// Ends the process if the file cannot be read.
std::vector<ColumnTable> ReadColumnTables(const std::string& path);

// Column i of the file is the metric "column_<i>" of task t of the job, t being its table. The
// files keep no times for most of the values: rows are 15 s apart, those of all tables from the
// same moment on.
struct ReplayOptions {
  std::string job;
  int64_t start_unix_ns = 0;
  int64_t interval_ns = 15'000'000'000;
  uint32_t rows = 60;  // Rows in a table, which is a message.
};

}  // namespace tacho::bench
