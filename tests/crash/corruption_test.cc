// Every file of a store damaged in every way: refused by name, contained, or harmless; never a
// wrong answer, never a crash.
#include <unistd.h>

#include <algorithm>
#include <climits>
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
#include "rocksdb/env.h"
#include "storage/check_store.h"
#include "storage/store.h"
#include "tests/crash/contents.h"
#include "tests/crash/damage.h"
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

  static Sender MakeSender(storage::Store* store, uint64_t life) {
    return {store,
            {.seed = 5,
             .life = life,
             .tell = [](Report::Kind, uint32_t, uint64_t, bool) {},
             .fail = [](const absl::Status& status) { ADD_FAILURE() << status; }}};
  }
  static void Send(storage::Store* store, uint64_t life, int messages, bool seal) {
    Sender sender = MakeSender(store, life);
    for (int i = 0; i < messages; ++i) sender.SendOne();
    sender.AwaitAnswers();
    if (seal) {
      EXPECT_TRUE(store->Seal().ok());
    }
  }
  // One message a commit, and what the store holds after each: what a log may be cut back to. A
  // later message may give a row of an earlier one another value.
  void SendOneByOne(storage::Store* store, uint64_t life, int messages) {
    Sender sender = MakeSender(store, life);
    for (int i = 0; i < messages; ++i) {
      sender.SendOne();
      sender.AwaitAnswers();
      earlier_.push_back(*ReadContents(*store));
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
    earlier_.push_back(*ReadContents(**store));
    SendOneByOne(store->get(), 3, 100);
    ASSERT_TRUE((*store)->Seal().ok());
    SendOneByOne(store->get(), 4, 60);
    expected_ = earlier_.back();
    earlier_.pop_back();
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

  // What kind each file is of.
  std::map<std::string, std::string> Kinds() const {
    fs::copy(root_ / "whole", root_ / "looked");
    auto kinds = KindsOfFiles(rocksdb::Env::Default(), root_ / "looked");
    fs::remove_all(root_ / "looked");
    std::erase_if(kinds, [this](const auto& kind) {
      return kind.second == "LOCK" || !fs::exists(root_ / "whole" / kind.first);
    });
    return kinds;
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
    const absl::Status checked = storage::CheckStore(root_ / "damaged").status();
    const auto [outcome, text] = JudgeStore(Options(root_ / "damaged"), expected_, earlier_);
    EXPECT_TRUE(outcome != Outcome::kTailLost || absl::IsDataLoss(checked)) << checked;
    Tally& tally = tallies_[{kind, how}];
    ++tally.outcomes[outcome];
    if (tally.texts.size() < 3 && !text.empty()) tally.texts.insert(text.substr(0, 300));
    EXPECT_NE(outcome, Outcome::kWrong) << file << " (" << kind << ") " << how << ": " << text;
    if (outcome == Outcome::kRefused || outcome == Outcome::kContained) {
      EXPECT_TRUE(NamesWhatIsDamaged(text)) << "names nothing: " << text;
    }
  }

  fs::path root_;
  Contents expected_;
  std::vector<Contents> earlier_;  // Before the last message.
  std::map<std::pair<std::string, std::string>, Tally> tallies_;
};

TEST_F(CorruptionTest, AnotherValueIsNoLostTail) {
  Contents expected = expected_;
  ++expected.series.begin()->second.begin()->second;
  const auto [outcome, text] = JudgeStore(Options(root_ / "whole"), expected, earlier_);
  EXPECT_EQ(outcome, Outcome::kWrong);
  EXPECT_FALSE(absl::StartsWith(text, "lost in silence")) << text;
}

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
    // The store opens with what is left of the newest log, and says what is missing. A flip in the
    // length of a record looks like a torn end, too, and there are few such bytes.
    const bool is_log = what.first == "log";
    const int may_lose = !is_log ? 0 : what.second == "a byte flipped" ? 2 : INT_MAX;
    EXPECT_LE(count(Outcome::kTailLost), may_lose) << what.first << " " << what.second;
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
