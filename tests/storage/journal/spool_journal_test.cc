// The spool's journal on a file system in memory that can be made to refuse, and on the real one.
#include "storage/journal/spool_journal.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/faulty_env.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Note = SpoolJournal::Note;

class SpoolJournalTest : public ::testing::Test {
 protected:
  SpoolJournalTest() { Reopen(); }

  void Reopen() {
    spool_.reset();
    auto spool = SpoolJournal::Open(
        {.path = "/spool", .env = &env_, .reopen_interval = absl::ZeroDuration()});
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
  }

  std::vector<std::string> ReadAll(uint64_t position = 1) {
    const auto entries = spool_->Read(position, UINT64_MAX);
    EXPECT_TRUE(entries.ok()) << entries.status();
    std::vector<std::string> texts;
    if (entries.ok()) {
      for (const auto& entry : *entries)
        texts.push_back(absl::StrCat(entry.position, " ", entry.bytes));
    }
    return texts;
  }

  std::vector<Note> Notes(absl::string_view prefix) {
    auto notes = spool_->ReadNotes(prefix);
    EXPECT_TRUE(notes.ok()) << notes.status();
    return notes.ok() ? *std::move(notes) : std::vector<Note>();
  }

  FaultyEnv env_;
  std::unique_ptr<SpoolJournal> spool_;
};

TEST_F(SpoolJournalTest, KeepsGenerationPositionsAndNotesOverReopening) {
  const uint64_t generation = spool_->generation();
  EXPECT_NE(generation, 0u);
  ASSERT_TRUE(spool_->Append("one", {{"a/1", "x"}}).ok());
  ASSERT_TRUE(spool_->Append("two", {{"a/2", "y"}, {"b/1", "z"}}).ok());
  ASSERT_TRUE(spool_->Trim(2).ok());
  Reopen();
  EXPECT_EQ(spool_->generation(), generation);
  EXPECT_EQ(spool_->begin(), 2u);
  EXPECT_EQ(spool_->end(), 3u);
  EXPECT_EQ(spool_->bytes(), 3u);
  EXPECT_THAT(ReadAll(), ElementsAre("2 two"));
  EXPECT_THAT(Notes("a/"), ElementsAre(Note{"a/1", "x"}, Note{"a/2", "y"}));
  EXPECT_THAT(Notes("b"), ElementsAre(Note{"b/1", "z"}));
  EXPECT_THAT(Notes("c"), IsEmpty());
}

TEST_F(SpoolJournalTest, SeveralEntriesAreAppendedTogetherOrNotAtAll) {
  const std::vector<std::string> entries = {"one", "two", "three"};
  EXPECT_EQ(*spool_->AppendAll(entries, {{"read", "3"}}), 1u);
  EXPECT_THAT(ReadAll(), ElementsAre("1 one", "2 two", "3 three"));
  env_.RefuseWrites(true);
  EXPECT_FALSE(spool_->AppendAll(entries, {{"read", "6"}}).ok());
  env_.RefuseWrites(false);
  EXPECT_THAT(ReadAll(), ElementsAre("1 one", "2 two", "3 three"));
  EXPECT_THAT(Notes("read"), ElementsAre(Note{"read", "3"}));
}

TEST_F(SpoolJournalTest, ReplacedEntryKeepsItsPlaceAndItsNeighbours) {
  for (const char* entry : {"one", "two", "three"}) ASSERT_TRUE(spool_->Append(entry).ok());
  ASSERT_TRUE(spool_->Replace(2, "2").ok());
  EXPECT_THAT(ReadAll(), ElementsAre("1 one", "2 2", "3 three"));
  EXPECT_EQ(spool_->bytes(), 11u) << "as it was";
  Reopen();
  EXPECT_THAT(ReadAll(), ElementsAre("1 one", "2 2", "3 three"));
  EXPECT_EQ(spool_->bytes(), 9u);
  ASSERT_TRUE(spool_->Trim(3).ok());
  EXPECT_EQ(spool_->bytes(), 5u);
  EXPECT_EQ(spool_->Replace(2, "x").code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(spool_->Replace(4, "x").code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(ReadAll(), ElementsAre("3 three"));
}

TEST_F(SpoolJournalTest, EmptyNoteRemovesTheKey) {
  ASSERT_TRUE(spool_->WriteNotes({{"key", "value"}}).ok());
  ASSERT_TRUE(spool_->WriteNotes({{"key", ""}}).ok());
  EXPECT_THAT(Notes(""), IsEmpty());
}

TEST_F(SpoolJournalTest, DirectoriesHaveDifferentGenerations) {
  const auto other = SpoolJournal::Open({.path = "/other", .env = &env_});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE((*other)->generation(), spool_->generation());
}

TEST_F(SpoolJournalTest, ReadIsBoundedByBytesButGivesAtLeastOne) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(spool_->Append("0123456789").ok());
  EXPECT_EQ(spool_->Read(1, 25)->size(), 2u);
  EXPECT_EQ(spool_->Read(1, 20)->size(), 2u);
  EXPECT_EQ(spool_->Read(1, 1)->size(), 1u);
  EXPECT_EQ(spool_->Read(6, 100)->size(), 0u);
}

// A full disk: the refused entry leaves nothing behind, notes included, and when there is room
// again the spool goes on by itself, with no hole in its positions.
TEST_F(SpoolJournalTest, GoesOnAfterTheDiskRefused) {
  ASSERT_TRUE(spool_->Append("one", {{"read", "1"}}).ok());
  env_.RefuseWrites(true);
  EXPECT_EQ(spool_->Append("two", {{"read", "2"}}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(spool_->Append("two", {{"read", "2"}}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(spool_->WriteNotes({{"read", "2"}}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(spool_->end(), 2u) << "still known";
  EXPECT_EQ(spool_->bytes(), 3u);

  env_.RefuseWrites(false);
  EXPECT_THAT(Notes("read"), ElementsAre(Note{"read", "1"}));
  const auto position = spool_->Append("three", {{"read", "3"}});
  ASSERT_TRUE(position.ok()) << position.status();
  EXPECT_EQ(*position, 2u);
  Reopen();
  EXPECT_THAT(ReadAll(), ElementsAre("1 one", "2 three"));
  EXPECT_THAT(Notes("read"), ElementsAre(Note{"read", "3"}));
}

// An entry that reports what was removed in its write must not be taken back without it.
TEST_F(SpoolJournalTest, ARefusedWriteThatWasMadeIsKeptWithWhatItRemoved) {
  for (const char* entry : {"one", "two", "three"}) ASSERT_TRUE(spool_->Append(entry).ok());
  const std::string gap = "one and two are lost";
  env_.Set({.match = ".log", .append = rocksdb::Status::IOError("injected"), .late = true});
  EXPECT_FALSE(spool_->AppendAll({&gap, 1}, {}, 3).ok());
  env_.Clear();
  EXPECT_EQ(spool_->Append("four").status().code(), absl::StatusCode::kUnavailable)
      << "its caller has the old positions";
  EXPECT_EQ(spool_->end(), 5u);
  EXPECT_EQ(*spool_->Append("four"), 5u);
  EXPECT_THAT(ReadAll(), ElementsAre("3 three", "4 one and two are lost", "5 four"));
}

TEST_F(SpoolJournalTest, ARefusedWriteThatWasMadeAndRemovedNothingIsTakenBack) {
  ASSERT_TRUE(spool_->Append("one").ok());
  env_.Set({.match = ".log", .append = rocksdb::Status::IOError("injected"), .late = true});
  EXPECT_FALSE(spool_->Append("two").ok());
  env_.Clear();
  EXPECT_EQ(*spool_->Append("three"), 2u);
  EXPECT_THAT(ReadAll(), ElementsAre("1 one", "2 three"));
}

TEST_F(SpoolJournalTest, GoesOnAfterARefusedSync) {
  ASSERT_TRUE(spool_->Append("one").ok());
  env_.RefuseSyncs(true);
  EXPECT_EQ(spool_->Sync().code(), absl::StatusCode::kUnavailable);
  env_.RefuseSyncs(false);
  EXPECT_TRUE(spool_->Sync().ok());
  EXPECT_THAT(ReadAll(), ElementsAre("1 one"));
  EXPECT_EQ(*spool_->Append("two"), 2u);
}

TEST_F(SpoolJournalTest, ReopensNoMoreOftenThanAsked) {
  auto opened =
      SpoolJournal::Open({.path = "/patient", .env = &env_, .reopen_interval = absl::Hours(1)});
  ASSERT_TRUE(opened.ok());
  SpoolJournal& spool = **opened;
  for (int refusals = 0; refusals < 2; ++refusals) {
    env_.RefuseWrites(true);
    EXPECT_FALSE(spool.Append("refused").ok());
    env_.RefuseWrites(false);
    if (refusals == 0) {
      EXPECT_TRUE(spool.Append("first time at once").ok());
    }
  }
  EXPECT_FALSE(spool.Append("second time after an hour").ok());
}

// On a full disk the second line of it would end the process: see storage/db/directory_check.h.
TEST_F(SpoolJournalTest, RocksDbWritesNoLogBesideTheData) {
  EXPECT_TRUE(env_.FileExists("/spool/CURRENT").ok());
  EXPECT_TRUE(env_.FileExists("/spool/LOG").IsNotFound());
}

TEST_F(SpoolJournalTest, SecondOpenerIsTurnedAway) {
  const std::string path = ::testing::TempDir() + "/spool_journal_lock_test";
  std::filesystem::remove_all(path);
  const auto first = SpoolJournal::Open({.path = path + "/with/parents"});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(SpoolJournal::Open({.path = path + "/with/parents"}).status().code(),
            absl::StatusCode::kUnavailable);
  std::filesystem::remove_all(path);
}

// Truncating the newest table or the manifest is damage that must not pass for an empty spool.
TEST_F(SpoolJournalTest, DamagedDirectoryIsDataLoss) {
  const std::string path = ::testing::TempDir() + "/spool_journal_damage_test";
  std::filesystem::remove_all(path);
  for (int opened = 0; opened < 2; ++opened) {  // The second one moves the entry into a table.
    const auto spool = SpoolJournal::Open({.path = path});
    ASSERT_TRUE(spool.ok()) << spool.status();
    ASSERT_TRUE((*spool)->Append(std::string(100'000, 'x')).ok());
  }
  int damaged = 0;
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    if (file.path().extension() != ".sst") continue;
    std::filesystem::resize_file(file.path(), 100);
    ++damaged;
  }
  ASSERT_GT(damaged, 0);
  EXPECT_EQ(SpoolJournal::Open({.path = path}).status().code(), absl::StatusCode::kDataLoss);

  for (const auto& file : std::filesystem::directory_iterator(path)) {
    if (file.path().filename().string().starts_with("MANIFEST")) std::filesystem::remove(file);
  }
  EXPECT_EQ(SpoolJournal::Open({.path = path}).status().code(), absl::StatusCode::kDataLoss);
  std::filesystem::remove_all(path);
}

// A log whose end is missing, as a crash of the machine leaves it: what lies before is kept.
TEST_F(SpoolJournalTest, TornTailOfTheLogCostsOnlyTheTail) {
  const std::string path = ::testing::TempDir() + "/spool_journal_torn_test";
  std::filesystem::remove_all(path);
  {
    const auto spool = SpoolJournal::Open({.path = path});
    ASSERT_TRUE(spool.ok()) << spool.status();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE((*spool)->Append(std::string(1000, 'x')).ok());
  }
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    if (file.path().extension() == ".log" && file.file_size() > 1500) {
      std::filesystem::resize_file(file.path(), file.file_size() - 500);
    }
  }
  const auto spool = SpoolJournal::Open({.path = path});
  ASSERT_TRUE(spool.ok()) << spool.status();
  EXPECT_EQ((*spool)->end(), 3u);
  EXPECT_EQ((*spool)->Read(1, UINT64_MAX)->size(), 2u);
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace tacho::storage
