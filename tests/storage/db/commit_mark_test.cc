// A log that has lost its end is noticed, and nothing else is taken for one.
#include "storage/db/commit_mark.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/storage/store_fixture.h"
#include "tests/support/faulty_env.h"

namespace tacho::storage {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMarkPath[] = "/copy/COMMIT_MARK";

class CommitMarkTest : public StoreFixture {
 protected:
  CommitMarkTest() { layout_ = Register(Definition("job", {"loss"})); }

  // Messages of two rows each.
  void AppendMessages(uint64_t first, uint64_t last) {
    for (uint64_t sequence = first; sequence <= last; ++sequence) {
      const auto at = static_cast<int64_t>(sequence * 2);
      ASSERT_TRUE(Append(layout_, {at, at + 1}, {at, at + 1}, {1, 2}, {"agent", 1, sequence}).ok());
    }
  }

  // The files as a kill would leave them now.
  void CopyStore() {
    copy_.reset();
    std::vector<std::string> names;
    ASSERT_TRUE(env_->CreateDirIfMissing("/copy").ok());
    ASSERT_TRUE(env_->GetChildren("/copy", &names).ok());
    for (const std::string& name : names) env_->DeleteFile("/copy/" + name);
    ASSERT_TRUE(env_->GetChildren("/store", &names).ok());
    for (const std::string& name : names) {
      if (name == "LOCK") continue;
      WriteFile("/copy/" + name, ReadFile("/store/" + name));
    }
  }
  std::string ReadFile(const std::string& path) {
    std::string bytes;
    EXPECT_TRUE(rocksdb::ReadFileToString(env_.get(), path, &bytes).ok()) << path;
    return bytes;
  }
  void WriteFile(const std::string& path, const std::string& bytes) {
    EXPECT_TRUE(rocksdb::WriteStringToFile(env_.get(), bytes, path).ok()) << path;
  }
  std::string NewestLog() {
    std::vector<std::string> names;
    EXPECT_TRUE(env_->GetChildren("/copy", &names).ok());
    std::string newest;
    for (const std::string& name : names) {
      if (absl::EndsWith(name, ".log")) newest = std::max(newest, "/copy/" + name);
    }
    return newest;
  }

  void OpenCopy() {
    copy_.reset();
    said_.clear();
    StoreOptions options = options_;
    options.path = "/copy";
    options.log = [this](absl::string_view line) { said_.emplace_back(line); };
    auto store = Store::Open(options);
    ASSERT_TRUE(store.ok()) << store.status();
    copy_ = *std::move(store);
  }
  std::vector<Event> Losses() {
    auto events = copy_->Events("", INT64_MIN, INT64_MAX);
    EXPECT_TRUE(events.ok()) << events.status();
    return *std::move(events);
  }

  LayoutPtr layout_;
  std::vector<std::string> said_;
  std::unique_ptr<Store> copy_;
};

TEST_F(CommitMarkTest, ACutLogIsReportedOnceWithWhatIsMissing) {
  AppendMessages(1, 6);
  CopyStore();
  const std::string log = ReadFile(NewestLog());
  AppendMessages(7, 10);
  CopyStore();
  WriteFile(NewestLog(), log);
  OpenCopy();
  EXPECT_EQ(copy_->Stats().missing_commits, 4u);
  EXPECT_EQ(copy_->Stats().missing_messages, 4u);
  EXPECT_EQ(copy_->Stats().missing_rows, 8u);
  EXPECT_EQ(copy_->DurableSequences("agent", 1).watermark(), 6u) << "it serves all the same";
  EXPECT_THAT(said_, Contains(HasSubstr("the end of the write-ahead log in /copy is missing: 4 "
                                        "commits with 4 acknowledged messages of 8 rows")));
  ASSERT_EQ(Losses().size(), 1u);
  EXPECT_EQ(Losses()[0].kind, "data_lost");
  EXPECT_EQ(Losses()[0].fields.at("messages"), "4");

  OpenCopy();
  EXPECT_EQ(copy_->Stats().missing_commits, 0u) << "it was reported";
  EXPECT_EQ(Losses().size(), 1u);
}

TEST_F(CommitMarkTest, ALogThatIsGoneIsReported) {
  AppendMessages(1, 6);
  Reopen();
  layout_ = Register(Definition("job", {"loss"}));
  AppendMessages(7, 9);
  CopyStore();
  WriteFile(NewestLog(), "");
  OpenCopy();
  EXPECT_EQ(copy_->Stats().missing_messages, 3u);
  EXPECT_EQ(copy_->DurableSequences("agent", 1).watermark(), 6u);
}

TEST_F(CommitMarkTest, AKillAtAnyMomentIsNotReported) {
  for (uint64_t message = 1; message <= 20; ++message) {
    AppendMessages(message, message);
    if (message % 5 == 0) {
      EXPECT_TRUE(store_->Seal().ok());
    }
    CopyStore();
    OpenCopy();
    EXPECT_EQ(copy_->Stats().missing_commits, 0u) << message;
    EXPECT_THAT(said_, Each(Not(HasSubstr("missing"))));
  }
}

TEST_F(CommitMarkTest, AStoreWithoutAMarkIsOpenedWithoutComplaintAndGetsOne) {
  AppendMessages(1, 3);
  CopyStore();
  ASSERT_TRUE(env_->DeleteFile(kMarkPath).ok());
  WriteFile(NewestLog(), "");
  OpenCopy();
  EXPECT_EQ(copy_->Stats().missing_commits, 0u);
  EXPECT_THAT(said_, Each(Not(HasSubstr("missing"))));
  EXPECT_TRUE(env_->FileExists(kMarkPath).ok());
}

TEST_F(CommitMarkTest, OneTornSlotLeavesTheOther) {
  AppendMessages(1, 6);
  CopyStore();
  const std::string log = ReadFile(NewestLog());
  AppendMessages(7, 10);
  for (const size_t slot : {0, 512}) {
    CopyStore();
    WriteFile(NewestLog(), log);
    std::string mark = ReadFile(kMarkPath);
    mark[slot + 20] = static_cast<char>(mark[slot + 20] ^ 1);
    WriteFile(kMarkPath, mark);
    OpenCopy();
    EXPECT_GE(copy_->Stats().missing_commits, 3u);
    EXPECT_LE(copy_->Stats().missing_commits, 4u);
  }
}

TEST_F(CommitMarkTest, ADamagedMarkIsSaidAndMadeAnew) {
  AppendMessages(1, 3);
  for (const char* bytes : {"", "not a mark"}) {
    CopyStore();
    WriteFile(kMarkPath, bytes);
    OpenCopy();
    EXPECT_EQ(copy_->Stats().missing_commits, 0u);
    EXPECT_THAT(said_, Contains(HasSubstr("cannot be told")));
    OpenCopy();
    EXPECT_THAT(said_, Each(Not(HasSubstr("cannot be told"))));
  }
}

TEST(CommitMarkFileTest, WhatTheDiskRefusesIsMadeGoodLater) {
  FaultyEnv env;
  ASSERT_TRUE(env.CreateDirIfMissing("/store").ok());
  std::vector<std::string> said;
  CommitMark mark(&env, "/store", [&](absl::string_view line) { said.emplace_back(line); });
  EXPECT_EQ(*mark.Read(), std::nullopt);
  const CommitCount before = {.commits = 1, .messages = 2, .rows = 3, .time_ns = -4};
  mark.Restart(before);
  EXPECT_EQ(*mark.Read(), before);
  EXPECT_TRUE(said.empty());

  env.RefuseWrites(true);
  mark.Restart({.commits = 7});
  mark.Write({.commits = 8});
  absl::Time now = absl::UnixEpoch();
  mark.SyncIfDue(now);
  EXPECT_EQ(*mark.Read(), before) << "what was there stays";
  EXPECT_EQ(said.size(), 1u) << "it is said once";
  env.Clear();
  mark.Write({.commits = 9});
  mark.SyncIfDue(now += absl::Milliseconds(500));
  EXPECT_EQ(*mark.Read(), before) << "not before a second is over";
  mark.SyncIfDue(now += absl::Milliseconds(500));
  EXPECT_EQ(mark.Read()->value().commits, 9u);
  EXPECT_EQ(said.size(), 2u);
}

}  // namespace
}  // namespace tacho::storage
