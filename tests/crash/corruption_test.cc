// Every file of a store damaged in every way: refused by name, contained, or harmless; never a
// wrong answer, never a crash.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "storage/check_store.h"
#include "storage/codec/keys.h"
#include "storage/db/commit_mark.h"
#include "storage/store.h"
#include "tests/crash/contents.h"
#include "tests/crash/plan.h"
#include "tests/crash/sender.h"

namespace tacho::crash {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteFile(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class CorruptionTest : public ::testing::Test {
 protected:
  CorruptionTest() {
    root_ = fs::path(::testing::TempDir()) / absl::StrCat("corruption-", ::getpid());
    fs::remove_all(root_);
    fs::create_directories(root_);
    MakeStore();
  }
  ~CorruptionTest() override { fs::remove_all(root_); }

  static storage::StoreOptions Options(const fs::path& path) {
    storage::StoreOptions options;
    options.path = path.string();
    options.retention = absl::ZeroDuration();
    options.background = false;
    options.commit_spacing = absl::ZeroDuration();
    return options;
  }

  static void Send(storage::Store* store, uint64_t life, int messages, bool seal) {
    Sender sender(store, {.seed = 5,
                          .life = life,
                          .tell = [](Report::Kind, uint32_t, uint64_t, bool) {},
                          .fail = [](const absl::Status& status) { ADD_FAILURE() << status; }});
    for (int i = 0; i < messages; ++i) sender.SendOne();
    sender.AwaitAnswers();
    if (seal) {
      EXPECT_TRUE(store->Seal().ok());
    }
  }

  // A store with tables of every column family and a log with columns, open rows and all else, as a
  // kill leaves it.
  void MakeStore() {
    for (uint64_t life = 1; life <= 2; ++life) {
      auto store = storage::Store::Open(Options(root_ / "made"));
      ASSERT_TRUE(store.ok()) << store.status();
      Send(store->get(), life, 300, true);
      if (life == 1) Send(store->get(), 7, 40, false);
      ASSERT_TRUE((*store)->Close().ok());
    }
    auto store = storage::Store::Open(Options(root_ / "made"));
    ASSERT_TRUE(store.ok()) << store.status();
    Send(store->get(), 3, 100, true);
    Send(store->get(), 4, 60, false);
    expected_ = *ReadContents(**store);
    CopyAtRest(root_ / "made", root_ / "whole");
    store->reset();
  }

  // RocksDB may still be compacting: the copy is one if nothing changed while it was made.
  static void CopyAtRest(const fs::path& from, const fs::path& to) {
    const auto look = [&from] {
      std::map<std::string, uintmax_t> sizes;
      std::error_code gone;
      for (const auto& entry : fs::directory_iterator(from)) {
        sizes[entry.path().filename()] = entry.file_size(gone);
      }
      return sizes;
    };
    for (int attempt = 0; attempt < 200; ++attempt) {
      const auto before = look();
      std::error_code failed;
      fs::copy(from, to, failed);
      if (!failed && look() == before) return;
      fs::remove_all(to);
      absl::SleepFor(absl::Milliseconds(20));
    }
    FAIL() << from << " does not come to rest";
  }

  // What kind of file: of a table, its column family.
  std::map<std::string, std::string> Kinds() const {
    std::map<std::string, std::string> kinds;
    std::vector<std::string> names;
    rocksdb::DBOptions options;
    EXPECT_TRUE(rocksdb::DB::ListColumnFamilies(options, root_ / "whole", &names).ok());
    fs::copy(root_ / "whole", root_ / "looked");
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const auto& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    EXPECT_TRUE(
        rocksdb::DB::OpenForReadOnly(options, root_ / "looked", families, &handles, &db).ok());
    std::vector<rocksdb::LiveFileMetaData> files;
    db->GetLiveFilesMetaData(&files);
    for (const auto& file : files) {
      const bool is_day = storage::ParsePartitionName(file.column_family_name).has_value();
      kinds[file.name.substr(1)] =
          "table of " + (is_day ? std::string("a day") : file.column_family_name);
    }
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
    delete db;
    fs::remove_all(root_ / "looked");
    for (const auto& entry : fs::directory_iterator(root_ / "whole")) {
      const std::string name = entry.path().filename();
      if (absl::EndsWith(name, ".log")) kinds[name] = "log";
      if (absl::StartsWith(name, "MANIFEST-")) kinds[name] = "MANIFEST";
      if (absl::StartsWith(name, "OPTIONS-")) kinds[name] = "OPTIONS";
      if (name == "CURRENT" || name == "IDENTITY") kinds[name] = name;
      if (name == storage::CommitMark::kFileName) kinds[name] = name;
    }
    return kinds;
  }

  enum class Outcome { kRefused, kContained, kHarmless, kTailLost, kWrong };

  // Whether the store says that the end of its log is missing: in its figures and in an event.
  static bool ReportsLoss(const storage::Store& store) {
    if (store.Stats().missing_messages == 0) return false;
    const auto events = store.Events("", INT64_MIN, INT64_MAX);
    EXPECT_TRUE(events.ok()) << events.status();
    return std::any_of(events->begin(), events->end(), [](const storage::Event& event) {
      return event.kind == "data_lost" && event.fields.contains("commits");
    });
  }

  // Everything that can be read of a damaged store is compared with what was there.
  Outcome Judge(std::string* text) const {
    auto store = storage::Store::Open(Options(root_ / "damaged"));
    if (!store.ok()) {
      *text = store.status().ToString();
      return Outcome::kRefused;
    }
    const bool reported = ReportsLoss(**store);
    std::map<std::string, absl::Status> failures;
    const auto read = ReadContents(**store, &failures);
    if (!read.ok()) {
      *text = read.status().ToString();
      return Outcome::kWrong;
    }
    Contents expected = expected_;
    Contents found = *read;
    for (const auto& [name, status] : failures) {
      *text = status.ToString();
      if (!absl::IsDataLoss(status)) return Outcome::kWrong;
      if (name != "events") {
        expected.series.erase(name);
        continue;
      }
      expected.events.clear();
      found.events.clear();
    }
    if (found == expected) {
      if (reported) {
        *text = "nothing is missing, but a loss is reported";
        return Outcome::kWrong;
      }
      return failures.empty() ? Outcome::kHarmless : Outcome::kContained;
    }
    *text = Compare(expected, found);
    if (!failures.empty()) return Outcome::kWrong;
    if (!reported) {
      *text = absl::StrCat("lost in silence: ", *text);
      return Outcome::kWrong;
    }
    // What the store did not keep, and nothing it never had?
    for (const auto& [name, samples] : found.series) {
      for (const auto& [key, bits] : samples) {
        const auto series = expected.series.find(name);
        if (series == expected.series.end() || !series->second.contains(key)) {
          return Outcome::kWrong;
        }
      }
    }
    return Outcome::kTailLost;
  }

  struct Tally {
    std::map<Outcome, int> outcomes;
    std::set<std::string> texts;
  };

  void Damage(const std::string& file, const std::string& kind, const std::string& how,
              const std::string* bytes) {
    fs::remove_all(root_ / "damaged");
    fs::copy(root_ / "whole", root_ / "damaged");
    if (bytes == nullptr) {
      fs::remove(root_ / "damaged" / file);
    } else {
      WriteFile(root_ / "damaged" / file, *bytes);
    }
    std::string text;
    const absl::Status checked = storage::CheckStore(root_ / "damaged").status();
    const Outcome outcome = Judge(&text);
    EXPECT_TRUE(outcome != Outcome::kTailLost || absl::IsDataLoss(checked)) << checked;
    Tally& tally = tallies_[{kind, how}];
    ++tally.outcomes[outcome];
    if (tally.texts.size() < 3 && !text.empty()) tally.texts.insert(text.substr(0, 300));
    EXPECT_NE(outcome, Outcome::kWrong) << file << " (" << kind << ") " << how << ": " << text;
    if (outcome == Outcome::kRefused || outcome == Outcome::kContained) {
      bool named = false;
      for (const char* word : {".sst", ".ldb", ".log", "MANIFEST-", "CURRENT", "job-", "under "}) {
        named = named || absl::StrContains(text, word);
      }
      EXPECT_TRUE(named) << "names nothing: " << text;
    }
  }

  fs::path root_;
  Contents expected_;
  std::map<std::pair<std::string, std::string>, Tally> tallies_;
};

TEST_F(CorruptionTest, EveryFileInEveryWay) {
  const auto kinds = Kinds();
  std::set<std::string> seen;
  for (const auto& [file, kind] : kinds) {
    if (kind == "OPTIONS" && !seen.insert(kind).second) continue;
    const std::string bytes = ReadFile(root_ / "whole" / file);
    if (bytes.empty()) continue;
    const size_t step = std::max<size_t>(1, bytes.size() / 12);
    for (size_t at = step / 2; at < bytes.size(); at += step) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ 0x40);
      Damage(file, kind, "a byte flipped", &flipped);
    }
    for (const size_t eighths : {0, 1, 3, 5, 7}) {
      const std::string cut = bytes.substr(0, bytes.size() * eighths / 8);
      Damage(file, kind, "truncated", &cut);
    }
    const std::string short_by_one = bytes.substr(0, bytes.size() - 1);
    Damage(file, kind, "truncated", &short_by_one);
    Damage(file, kind, "removed", nullptr);
  }
  for (const auto& [what, tally] : tallies_) {
    const auto count = [&, &tally = tally](Outcome outcome) {
      const auto found = tally.outcomes.find(outcome);
      return found == tally.outcomes.end() ? 0 : found->second;
    };
    std::cout << absl::StrFormat(
        "| %s | %s | %d refused | %d contained | %d harmless | %d lost |\n", what.first,
        what.second, count(Outcome::kRefused), count(Outcome::kContained),
        count(Outcome::kHarmless), count(Outcome::kTailLost));
    for (const std::string& text : tally.texts) std::cout << "      " << text << "\n";
    // The store opens with what is left of the newest log, and says what is missing.
    const bool may_lose = what.first == "log" && what.second != "a byte flipped";
    if (!may_lose) {
      EXPECT_EQ(count(Outcome::kTailLost), 0) << what.first << " " << what.second;
    }
  }
  // All that there is has been damaged.
  for (const char* kind :
       {"table of a day", "table of index", "table of state", "table of events", "table of default",
        "log", "MANIFEST", "CURRENT", "IDENTITY", "COMMIT_MARK"}) {
    EXPECT_TRUE(tallies_.contains({kind, "removed"})) << kind;
  }
}

}  // namespace
}  // namespace tacho::crash
