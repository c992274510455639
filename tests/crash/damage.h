// What becomes of a store whose bytes were damaged: shared by the tests and the campaign.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rocksdb/env.h"
#include "storage/options.h"
#include "tests/crash/contents.h"

namespace tacho::crash {

enum class Outcome {
  kRefused,    // At the opening, with a status.
  kContained,  // DATA_LOSS where the damaged part is read; the rest is right.
  kHarmless,   // Everything is there, unchanged.
  kTailLost,   // The end of what was recorded is missing; a store reports that, a spool does not.
  kWrong,      // Another answer than before, an error of another kind, a loss that is not
               // reported, or one that is and did not happen.
};
// As the reports call it.
absl::string_view NameOf(Outcome outcome);

struct Judgement {
  Outcome outcome = Outcome::kHarmless;
  std::string text;  // What the program says, or what is wrong.
};

// Opens the store and compares everything that can be read with what was there. `earlier`: what it
// held after each of its last messages: only one of these counts as kTailLost.
Judgement JudgeStore(const storage::StoreOptions& options, const Contents& expected,
                     const std::vector<Contents>& earlier);

// Whether an error says which file, record or series is damaged.
bool NamesWhatIsDamaged(absl::string_view text);

// The kind of each file of a RocksDB database that the store or a spool keeps, by its name without
// the directory: "log", "MANIFEST", "table of" and its column family. Opens the database for
// reading only.
std::map<std::string, std::string> KindsOfFiles(rocksdb::Env* env, const std::string& directory);

}  // namespace tacho::crash
