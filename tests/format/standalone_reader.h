// Reads a whole store into memory: the database's directory, and docs/storage_format.md. It shares
// no code with storage/, so a store that it reads right is what the page says.
#pragma once

#include <string>

#include "tests/format/bytes.h"
#include "tests/format/records.h"
#include "tests/format/samples.h"

namespace rocksdb {
class Env;
}

namespace format_page {

struct Contents {
  Findings findings;  // Nothing else counts if there are errors.
  Records records;
  SamplesOfSeries samples;
};

// Changes nothing on disk, so the store may be open meanwhile.
Contents ReadStore(const std::string& path, rocksdb::Env* env);

}  // namespace format_page
