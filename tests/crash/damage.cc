#include "tests/crash/damage.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "rocksdb/db.h"
#include "storage/codec/keys.h"
#include "storage/db/directory_check.h"
#include "storage/store.h"

namespace tacho::crash {
namespace {

// Whether the store says that the end of its log is missing: in its figures and in an event.
bool ReportsLoss(const storage::Store& store) {
  if (store.Stats().missing_messages == 0) return false;
  const auto events = store.Events("", INT64_MIN, INT64_MAX);
  return events.ok() &&
         std::any_of(events->begin(), events->end(), [](const storage::Event& event) {
           return event.kind == "data_lost" && event.fields.contains("commits");
         });
}

std::string KindOfName(const std::string& name) {
  if (absl::EndsWith(name, ".log")) return "log";
  if (absl::StartsWith(name, "MANIFEST-")) return "MANIFEST";
  if (absl::StartsWith(name, "OPTIONS-")) return "OPTIONS";
  return name;
}

}  // namespace

absl::string_view NameOf(Outcome outcome) {
  constexpr std::array<absl::string_view, 5> kNames = {"refused", "contained", "harmless",
                                                       "tail_lost", "wrong"};
  return kNames.at(static_cast<size_t>(outcome));
}

Judgement JudgeStore(const storage::StoreOptions& options, const Contents& expected,
                     const std::vector<Contents>& earlier) {
  auto store = storage::Store::Open(options);
  if (!store.ok()) return {Outcome::kRefused, store.status().ToString()};
  const bool reported = ReportsLoss(**store);
  std::map<std::string, absl::Status> failures;
  auto read = ReadContents(**store, &failures);
  if (!read.ok()) return {Outcome::kWrong, read.status().ToString()};
  Contents wanted = expected;
  Contents found = *std::move(read);
  if (reported) {
    std::erase_if(found.events, [](const auto& event) {
      return absl::StrContains(event.first, "data_lost") &&
             absl::StrContains(event.first, "commits");
    });
  }
  std::string text;
  for (const auto& [name, status] : failures) {
    text = status.ToString();
    if (!absl::IsDataLoss(status)) return {Outcome::kWrong, text};
    if (name != "events") {
      wanted.series.erase(name);
      continue;
    }
    wanted.events.clear();
    found.events.clear();
  }
  if (found == wanted) {
    if (reported) return {Outcome::kWrong, "nothing is missing, but a loss is reported"};
    return {failures.empty() ? Outcome::kHarmless : Outcome::kContained, text};
  }
  text = Compare(wanted, found);
  const bool tail_lost =
      failures.empty() && std::find(earlier.begin(), earlier.end(), found) != earlier.end();
  if (tail_lost && !reported) return {Outcome::kWrong, absl::StrCat("lost in silence: ", text)};
  return {tail_lost ? Outcome::kTailLost : Outcome::kWrong, text};
}

bool NamesWhatIsDamaged(absl::string_view text) {
  constexpr absl::string_view kWords[] = {".sst",    ".ldb", ".log",   "MANIFEST-",
                                          "CURRENT", "job-", "under ", "entry "};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [text](absl::string_view word) { return absl::StrContains(text, word); });
}

std::map<std::string, std::string> KindsOfFiles(rocksdb::Env* env, const std::string& directory) {
  rocksdb::DBOptions options;
  options.env = env;
  options.info_log = std::make_shared<storage::SilentLogger>();
  std::vector<std::string> names;
  TACHO_CHECK(rocksdb::DB::ListColumnFamilies(options, directory, &names).ok());
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) {
    families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  TACHO_CHECK(rocksdb::DB::OpenForReadOnly(options, directory, families, &handles, &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  std::map<std::string, std::string> kinds;
  std::vector<std::string> all;
  TACHO_CHECK(env->GetChildren(directory, &all).ok());
  for (const std::string& name : all) {
    if (name != "." && name != "..") kinds[name] = KindOfName(name);
  }
  std::vector<rocksdb::LiveFileMetaData> tables;
  db->GetLiveFilesMetaData(&tables);
  for (const auto& table : tables) {
    const bool is_day = storage::ParsePartitionName(table.column_family_name).has_value();
    kinds[table.name.substr(1)] =
        absl::StrCat("table of ", is_day ? "a day" : table.column_family_name);
  }
  for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
  return kinds;
}

}  // namespace tacho::crash
