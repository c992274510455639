// A disk that is full, or fails: nothing is acknowledged that is not durable, and storing goes on
// by itself where that is safe.
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/storage/store_fixture.h"
#include "tests/support/faulty_env.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Fault = FaultyEnv::Fault;

class DiskFaultsTest : public StoreFixture {
 protected:
  DiskFaultsTest() {
    options_.env = &faulty_;
    options_.on_disk = [this](DiskState state, const absl::Status&) {
      absl::MutexLock lock(&mutex_);
      states_.push_back(state);
    };
    Reopen();
    layout_ = Register(Definition("job", {"loss"}));
  }
  ~DiskFaultsTest() override {
    faulty_.Clear();
    store_.reset();
  }

  static Fault NoSpace(std::string match, bool torn = false) {
    return {
        .match = std::move(match), .append = rocksdb::Status::NoSpace("injected"), .torn = torn};
  }
  absl::Status AppendOne(uint64_t sequence) {
    const auto at = static_cast<int64_t>(sequence);
    return Append(layout_, {at}, {at}, {static_cast<double>(at)}, {"agent", 1, sequence});
  }
  // As an agent would: again and again until it is stored.
  absl::Status AppendPatiently(uint64_t sequence) {
    absl::Status status;
    for (int tries = 0; tries < 2000; ++tries) {
      status = AppendOne(sequence);
      if (!absl::IsUnavailable(status)) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return status;
  }
  std::vector<double> Stored() { return ReadAll(Find("job", "loss")).values; }
  std::vector<DiskState> States() {
    absl::MutexLock lock(&mutex_);
    return states_;
  }

  FaultyEnv faulty_;
  absl::Mutex mutex_;
  std::vector<DiskState> states_ ABSL_GUARDED_BY(mutex_);
  LayoutPtr layout_;
};

TEST_F(DiskFaultsTest, AFullDiskIsSatOutAndStoringGoesOn) {
  for (const bool torn : {false, true}) {
    const uint64_t first = torn ? 4 : 1;
    ASSERT_TRUE(AppendOne(first).ok());
    faulty_.Set(NoSpace("", torn));
    EXPECT_EQ(AppendOne(first + 1).code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(AppendOne(first + 1).code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(Stored().size(), first) << "reading goes on";
    EXPECT_EQ(store_->DurableSequences("agent", 1).watermark(), first);
    faulty_.Clear();
    EXPECT_TRUE(AppendPatiently(first + 1).ok());
    EXPECT_TRUE(AppendOne(first + 1).ok()) << "a repeat";
    EXPECT_TRUE(AppendOne(first + 2).ok());
  }
  EXPECT_THAT(States(), ElementsAre(DiskState::kRefusing, DiskState::kWritable,
                                    DiskState::kRefusing, DiskState::kWritable));
  EXPECT_THAT(Stored(), ElementsAre(1, 2, 3, 4, 5, 6));
  Reopen();
  EXPECT_THAT(Stored(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(DiskFaultsTest, AnAgentsOwnerThatTheDiskRefusedIsWrittenWhenItIsClaimedAgain) {
  faulty_.Set(NoSpace(""));
  EXPECT_EQ(store_->ClaimAgent("agent", "a", false), "a");
  EXPECT_EQ(AppendOne(1).code(), absl::StatusCode::kUnavailable);
  faulty_.Clear();
  EXPECT_TRUE(AppendPatiently(1).ok());
  EXPECT_EQ(store_->ClaimAgent("agent", "a", false), "a");
  Reopen();
  EXPECT_EQ(store_->ClaimAgent("agent", "b", false), "a");
}

// RocksDB can then only leave the torn log behind because something is kept in memory for it.
TEST_F(DiskFaultsTest, TheFirstWriteAfterAnOpenMayFindTheDiskFull) {
  ASSERT_TRUE(AppendOne(1).ok());
  Reopen();
  layout_ = Register(Definition("job", {"loss"}));
  faulty_.Set(NoSpace(".log", /*torn=*/true));
  EXPECT_EQ(AppendOne(2).code(), absl::StatusCode::kUnavailable);
  faulty_.Clear();
  EXPECT_TRUE(AppendPatiently(2).ok());
  EXPECT_TRUE(AppendOne(3).ok());
  Reopen();
  EXPECT_THAT(Stored(), ElementsAre(1, 2, 3));
}

TEST_F(DiskFaultsTest, AFullDiskMayFillAgainWhileMemoryIsWrittenOut) {
  for (const char* match : {".sst", "MANIFEST"}) {
    const uint64_t begin = store_->DurableSequences("agent", 1).watermark();
    ASSERT_TRUE(AppendOne(begin + 1).ok());
    faulty_.Set(NoSpace(".log"));
    EXPECT_EQ(AppendOne(begin + 2).code(), absl::StatusCode::kUnavailable);
    const int before = faulty_.failures();
    faulty_.Set(NoSpace(match));  // There is room for the probe, but not for tables.
    for (int i = 0; i < 6000 && faulty_.failures() == before; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_GT(faulty_.failures(), before) << match;
    EXPECT_EQ(AppendOne(begin + 2).code(), absl::StatusCode::kUnavailable);
    faulty_.Clear();
    const absl::Status stored = AppendPatiently(begin + 2);
    EXPECT_TRUE(stored.ok()) << match << ": " << stored;
    EXPECT_EQ(Stored().size(), begin + 2);
  }
  Reopen();
  EXPECT_THAT(Stored(), ElementsAre(1, 2, 3, 4));
}

// A flush that is asked for again while it runs is done again by RocksDB after the manifest was
// refused, and its memory is then never written out.
TEST_F(DiskFaultsTest, ASlowDiskMayFillAgainAtTheManifest) {
  // The manifest takes records on logs before tables are written, and on the tables afterwards.
  for (const int spare : {0, 1, 2, 3}) {
    const uint64_t begin = store_->DurableSequences("agent", 1).watermark();
    ASSERT_TRUE(AppendOne(begin + 1).ok());
    faulty_.Set(NoSpace(".log"));
    EXPECT_EQ(AppendOne(begin + 2).code(), absl::StatusCode::kUnavailable);
    faulty_.SlowTables(absl::Milliseconds(700));
    const int before = faulty_.failures();
    Fault full = NoSpace("MANIFEST");
    full.spare = spare;
    faulty_.Set(full);
    for (int i = 0; i < 6000 && faulty_.failures() == before; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_GT(faulty_.failures(), before) << spare;
    faulty_.SlowTables(absl::ZeroDuration());
    faulty_.Clear();
    const absl::Status stored = AppendPatiently(begin + 2);
    EXPECT_TRUE(stored.ok()) << spare << ": " << stored;
    EXPECT_EQ(Stored().size(), begin + 2);
  }
  Reopen();
  EXPECT_EQ(Stored().size(), 8u);
}

TEST_F(DiskFaultsTest, ALayoutThatWasRefusedIsWrittenBeforeItsRows) {
  ASSERT_TRUE(AppendOne(1).ok());
  faulty_.Set(NoSpace(""));
  const LayoutDefinition other = Definition("other", {"loss", "rate"});
  // Registering waits for no disk: the first rows find out.
  LayoutPtr layout = Register(other);
  ASSERT_NE(layout, nullptr);
  EXPECT_EQ(Append(layout, {1}, {1}, {7, 7}).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(store_->RegisterLayout(other).ok()) << "it is in memory, but not on the disk";
  faulty_.Clear();
  ASSERT_TRUE(AppendPatiently(2).ok());
  layout = Register(other);
  ASSERT_NE(layout, nullptr);
  ASSERT_TRUE(Append(layout, {1}, {1}, {1, 2}).ok());
  Reopen();
  EXPECT_THAT(ReadAll(Find("other", "rate")).values, ElementsAre(2));
  EXPECT_EQ(store_->FindSeries({.job = "other"}, 10)->size(), 2u);
}

TEST_F(DiskFaultsTest, AMergeThatFoundNoRoomIsTriedAgain) {
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) {
    ASSERT_TRUE(AppendOne(sequence).ok());
    ASSERT_TRUE(store_->Seal().ok());
  }
  now_ += absl::Hours(48);
  faulty_.Set(NoSpace(""));
  EXPECT_EQ(store_->MergeFrames().code(), absl::StatusCode::kUnavailable);
  faulty_.Clear();
  ASSERT_TRUE(AppendPatiently(5).ok());
  EXPECT_TRUE(store_->MergeFrames().ok());
  EXPECT_EQ(store_->Stats().frames_merged, 4u);
  EXPECT_THAT(Stored(), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(DiskFaultsTest, RowsThatCouldNotBeSealedStayOpenAndAreSealedLater) {
  ASSERT_TRUE(AppendOne(1).ok());
  ASSERT_TRUE(AppendOne(2).ok());
  faulty_.Set(NoSpace(""));
  EXPECT_EQ(store_->Seal().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Stored(), ElementsAre(1, 2));
  faulty_.Clear();
  ASSERT_TRUE(AppendPatiently(3).ok());
  EXPECT_TRUE(store_->Seal().ok());
  EXPECT_EQ(store_->Stats().open_rows, 0u);
  EXPECT_EQ(store_->Stats().journal_entries, 0u);
  EXPECT_THAT(Stored(), ElementsAre(1, 2, 3));
  Reopen();
  EXPECT_THAT(Stored(), ElementsAre(1, 2, 3));
}

// The kernel may have dropped what it could not write and call the next sync a success.
TEST_F(DiskFaultsTest, AFailedWriteOrSyncIsNeverTriedAgainByThisProcess) {
  uint64_t sequence = 0;
  for (const bool on_sync : {false, true}) {
    ASSERT_TRUE(AppendOne(++sequence).ok());
    const auto failed = rocksdb::Status::IOError("injected");
    faulty_.Set({.append = on_sync ? rocksdb::Status() : failed,
                 .sync = on_sync ? failed : rocksdb::Status()});
    EXPECT_EQ(AppendOne(sequence + 1).code(), absl::StatusCode::kUnavailable);
    faulty_.Clear();
    for (int i = 0; i < 1000 && (States().empty() || States().back() != DiskState::kFailed); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(States().back(), DiskState::kFailed);
    EXPECT_EQ(AppendOne(sequence + 1).code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(Stored().size(), sequence) << "reading goes on";
    EXPECT_FALSE(store_->Close().ok());
    store_.reset();
    Reopen();
    layout_ = Register(Definition("job", {"loss"}));
    // What was written but not synced may have come up: whole, and with its sequence.
    const uint64_t durable = store_->DurableSequences("agent", 1).watermark();
    EXPECT_EQ(Stored().size(), durable);
    EXPECT_GE(durable, sequence);
    EXPECT_TRUE(AppendOne(sequence + 1).ok());
    EXPECT_EQ(Stored().size(), ++sequence);
  }
}

}  // namespace
}  // namespace tacho::storage
