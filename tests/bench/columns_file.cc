#include "tests/bench/columns_file.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

namespace tacho::bench {

std::vector<ColumnTable> ReadColumnTables(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<ColumnTable> tables;
  uint64_t size = 0;
  while (file.read(reinterpret_cast<char*>(&size), sizeof size)) {
    std::vector<double> column(size);
    file.read(reinterpret_cast<char*>(column.data()),
              static_cast<std::streamsize>(size * sizeof(double)));
    if (tables.empty() || tables.back().front().size() != size) tables.emplace_back();
    tables.back().push_back(std::move(column));
  }
  if (tables.empty() || !file.eof()) {
    std::fprintf(stderr, "%s: no columns, or torn\n", path.c_str());
    std::exit(1);
  }
  return tables;
}

}  // namespace tacho::bench
