// The journal on a real RocksDB, on a file system in memory.
#include "storage/journal/journal.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/keys.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Entries = std::vector<std::pair<uint64_t, std::string>>;

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) { EXPECT_TRUE(Reopen().ok()); }
  ~JournalTest() override { Close(); }

  void Close() {
    journal_.reset();
    for (auto* family : families_) db_->DestroyColumnFamilyHandle(family);
    families_.clear();
    db_.reset();
  }

  absl::Status Reopen() {
    Close();
    rocksdb::Options options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.env = env_.get();
    rocksdb::DB* db = nullptr;
    const auto status = rocksdb::DB::Open(
        options, "/db", {{"default", options}, {kJournalFamily, options}}, &families_, &db);
    EXPECT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
    journal_ = std::make_unique<Journal>(db, families_.back());
    return journal_->Recover();
  }

  void Write(rocksdb::WriteBatch* write) {
    ASSERT_TRUE(db_->Write(rocksdb::WriteOptions(), write).ok());
  }

  uint64_t Append(absl::string_view entry) {
    rocksdb::WriteBatch write;
    const uint64_t position = journal_->Stage(entry, &write);
    Write(&write);
    return position;
  }

  void Trim(uint64_t position) {
    rocksdb::WriteBatch write;
    journal_->StageTrim(position, &write);
    Write(&write);
  }

  // What Read() visits, and its status.
  std::pair<Entries, absl::Status> Read(uint64_t position) {
    Entries entries;
    absl::Status status = journal_->Read(position, [&](uint64_t at, absl::string_view entry) {
      entries.emplace_back(at, std::string(entry));
      return absl::OkStatus();
    });
    return {std::move(entries), std::move(status)};
  }

  static std::string Key(char position) { return std::string(7, '\0') + position; }

  const std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(JournalTest, EntriesAreReadInOrderFromAPosition) {
  EXPECT_EQ(Append("one"), 1u);
  EXPECT_EQ(Append(""), 2u);
  EXPECT_EQ(Append(std::string("a\0b", 3)), 3u);
  EXPECT_THAT(Read(1).first,
              ElementsAre(Pair(1, "one"), Pair(2, ""), Pair(3, std::string("a\0b", 3))));
  EXPECT_THAT(Read(3).first, ElementsAre(Pair(3, std::string("a\0b", 3))));
  EXPECT_THAT(Read(4).first, IsEmpty());
  EXPECT_TRUE(Read(4).second.ok());
  EXPECT_EQ(journal_->bytes(), 6u);
}

TEST_F(JournalTest, RecoverFindsWhatWasWritten) {
  Append("one");
  Append("three");
  Append("five");
  Trim(2);
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(journal_->begin(), 2u);
  EXPECT_EQ(journal_->end(), 4u);
  EXPECT_EQ(journal_->bytes(), 9u);
  EXPECT_EQ(Append("six"), 4u);
}

TEST_F(JournalTest, PositionsAreNotUsedAgainAfterEverythingWasTrimmed) {
  for (int i = 0; i < 5; ++i) Append("entry");
  Trim(6);
  EXPECT_EQ(journal_->bytes(), 0u);
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(journal_->begin(), 6u);
  EXPECT_EQ(journal_->end(), 6u);
  EXPECT_EQ(Append("next"), 6u);
  EXPECT_THAT(Read(1).first, ElementsAre(Pair(6, "next")));
}

TEST_F(JournalTest, TrimPastTheEndTrimsToTheEnd) {
  Append("one");
  Trim(100);
  EXPECT_EQ(journal_->begin(), 2u);
  EXPECT_EQ(Append("two"), 2u);
}

TEST_F(JournalTest, TrimBackwardsChangesNothing) {
  Append("one");
  Append("two");
  Trim(2);
  Trim(1);
  EXPECT_EQ(journal_->begin(), 2u);
  EXPECT_THAT(Read(1).first, ElementsAre(Pair(2, "two")));
}

// Both ways of deleting: key by key, and by range.
TEST_F(JournalTest, TrimRemovesFewAndManyEntries) {
  for (int i = 0; i < 200; ++i) Append(absl::StrCat("entry ", i + 1));
  Trim(17);
  EXPECT_EQ(Read(1).first.front().first, 17u);
  Trim(150);
  EXPECT_EQ(Read(1).first.front(), (std::pair<uint64_t, std::string>(150, "entry 150")));
  EXPECT_EQ(Read(1).first.size(), 51u);
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(Read(1).first.size(), 51u);
  EXPECT_EQ(journal_->bytes(), 51u * 9);
}

TEST_F(JournalTest, VisitorStopsTheReading) {
  Append("one");
  Append("two");
  int visits = 0;
  const absl::Status status = journal_->Read(1, [&](uint64_t, absl::string_view) {
    ++visits;
    return absl::AbortedError("enough");
  });
  EXPECT_EQ(status, absl::AbortedError("enough"));
  EXPECT_EQ(visits, 1);
}

TEST_F(JournalTest, DamagedEntryIsReportedAfterThoseBeforeIt) {
  Append("one");
  Append("two");
  Append("three");
  ASSERT_TRUE(db_->Put({}, families_.back(), Key(2), "\x01\x02\x03\x04two").ok());
  const auto [entries, status] = Read(1);
  EXPECT_THAT(entries, ElementsAre(Pair(1, "one")));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("entry 2"));
  EXPECT_THAT(Read(3).first, ElementsAre(Pair(3, "three")));
}

TEST_F(JournalTest, EntryTooShortForItsChecksumIsRefusedByRecover) {
  Append("one");
  ASSERT_TRUE(db_->Put({}, families_.back(), Key(1), "abc").ok());
  EXPECT_EQ(Read(1).second.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Reopen().code(), absl::StatusCode::kDataLoss);
}

TEST_F(JournalTest, MissingEntryIsReported) {
  Append("one");
  Append("two");
  Append("three");
  ASSERT_TRUE(db_->Delete({}, families_.back(), Key(2)).ok());
  const auto [entries, status] = Read(1);
  EXPECT_THAT(entries, ElementsAre(Pair(1, "one")));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("entry 2 is missing"));
  EXPECT_EQ(Reopen().code(), absl::StatusCode::kDataLoss);
}

TEST_F(JournalTest, DamagedTrimMarkIsReported) {
  Append("one");
  Trim(2);
  ASSERT_TRUE(db_->Put({}, families_.back(), Key(0), "nonsense....").ok());
  EXPECT_EQ(Read(1).second.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Reopen().code(), absl::StatusCode::kDataLoss);
}

TEST_F(JournalTest, RolledBackEntriesGiveTheirPositionsBack) {
  Append("one");
  Append("two");
  Append("three");
  rocksdb::WriteBatch write;
  journal_->StageRollback(2, &write);
  Write(&write);
  EXPECT_EQ(Append("other two"), 2u);
  EXPECT_THAT(Read(1).first, ElementsAre(Pair(1, "one"), Pair(2, "other two")));
  EXPECT_EQ(journal_->bytes(), 12u);
}

TEST_F(JournalTest, RecoverForgetsWhatWasStagedAndNotWritten) {
  Append("one");
  rocksdb::WriteBatch dropped;
  journal_->Stage("never written", &dropped);
  ASSERT_TRUE(journal_->Recover().ok());
  EXPECT_EQ(journal_->end(), 2u);
  EXPECT_EQ(journal_->bytes(), 3u);
}

TEST_F(JournalTest, RecoverThatFailsLeavesThePositionsAsTheyWere) {
  Append("one");
  Append("two");
  Append("three");
  ASSERT_TRUE(db_->Delete({}, families_.back(), Key(2)).ok());
  EXPECT_EQ(journal_->Recover().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(journal_->begin(), 1u);
  EXPECT_EQ(journal_->end(), 4u);
  EXPECT_EQ(journal_->bytes(), 11u);
}

}  // namespace
}  // namespace tacho::storage
