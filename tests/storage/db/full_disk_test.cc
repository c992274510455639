// A disk that is full at any moment of any work: the store never needs to be opened again, loses
// nothing that it acknowledged, answers queries, and goes on when there is room.
#include <algorithm>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/storage/db/full_disk_fixture.h"

namespace tacho::storage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Not;

class FullDiskTest : public FullDiskFixture {
 protected:
  static constexpr uint64_t kMessages = 24;

  // Rows of ever new days, sealed now and then, and old days dropped. Goes on after a refusal.
  // Returns the bytes used after each message.
  std::vector<uint64_t> Work(uint64_t* acknowledged) {
    std::vector<uint64_t> used;
    for (uint64_t message = 1; message <= kMessages; ++message) {
      const auto day = static_cast<int64_t>(message / 6);
      if (AppendOne(message, day).ok() && *acknowledged == message - 1) *acknowledged = message;
      if (message % 4 == 0) store_->Seal().IgnoreError();
      if (*acknowledged + 1 < message) message = kMessages;  // Later ones would be holes.
      used.push_back(disk_->used());
    }
    return used;
  }

  // Of a large message. Rows cost more than columns with sanitizers.
  static constexpr int64_t kRows = 8 << 10;
  static constexpr int64_t kColumns = 16;

  // One message of a megabyte that hardly compresses. RocksDB writes out its memory after some
  // dozen.
  absl::Status AppendLarge(const LayoutPtr& layout, uint64_t message) {
    std::vector<int64_t> times(kRows);
    std::vector<double> values(kRows * kColumns);
    for (int64_t row = 0; row < kRows; ++row) {
      times[row] = static_cast<int64_t>(message) * kRows + row;
      for (int64_t column = 0; column < kColumns; ++column) {
        const int64_t cell = times[row] * kColumns + column;
        values[row * kColumns + column] = static_cast<double>(cell * 2'654'435'761 % 1'000'003) / 7;
      }
    }
    return Append(layout, times, times, values, {"agent", 2, message});
  }
  // Large messages until one is refused; returns its number.
  uint64_t AppendLargeUntilRefused(const LayoutPtr& layout) {
    for (uint64_t message = 1; message <= 200; ++message) {
      if (!AppendLarge(layout, message).ok()) return message;
    }
    ADD_FAILURE() << "nothing was refused";
    return 0;
  }
  // The refused message is stored after all, and the store was never given up.
  void ExpectHealed(const LayoutPtr& layout, uint64_t message) {
    EXPECT_TRUE(Await([&] { return AppendLarge(layout, message).ok(); }));
    EXPECT_THAT(States(), Not(Contains(DiskState::kFailed)));
    EXPECT_EQ(store_->DurableSequences("agent", 2).watermark(), message);
    UseDisk(disk_->Copy("/store"));
    EXPECT_EQ(store_->DurableSequences("agent", 2).watermark(), message) << "after a crash";
    // The journal may also have the message as it was when it was refused: its rows are the same.
    // Only the newest are read: there may be a hundred, which take minutes with sanitizers.
    const uint64_t newest = std::min<uint64_t>(message, 8);
    const ReadOptions range = {.begin_ns = static_cast<int64_t>(message + 1 - newest) * kRows};
    EXPECT_EQ(ReadAll(Find("large", "loss"), range).values.size(), newest * kRows);
  }
  LayoutPtr RegisterLarge() {
    options_.open_bytes = options_.journal_bytes = uint64_t{1} << 32;
    Reopen();
    std::vector<std::string> metrics = {"loss"};
    for (int64_t i = 1; i < kColumns; ++i) metrics.push_back(absl::StrCat("m", i));
    return Register(Definition("large", metrics));
  }
};

TEST_F(FullDiskTest, ItMayBeFullAtEveryAppend) {
  options_.retention = absl::Hours(24 * 3650);
  Reopen();
  ASSERT_NE(UseLayout(), nullptr);
  uint64_t acknowledged = 0;
  const uint64_t before = disk_->used();
  const std::vector<uint64_t> used = Work(&acknowledged);
  ASSERT_EQ(acknowledged, kMessages);
  for (size_t i = 0; i < used.size(); ++i) {
    const uint64_t room = used[i] - before;
    for (const uint64_t free : {room + 31, (2u << 20) + room}) {
      SCOPED_TRACE(free);
      UseDisk(std::make_unique<CapacityEnv>(kRoomy));
      ASSERT_NE(UseLayout(), nullptr);
      Fill(free);
      acknowledged = 0;
      Work(&acknowledged);
      EXPECT_THAT(Stored(), ElementsAreArray(UpTo(acknowledged))) << "reading goes on";
      disk_->SetCapacity(kRoomy);
      for (uint64_t message = acknowledged + 1; message <= kMessages; ++message) {
        ASSERT_TRUE(AppendPatiently(message, static_cast<int64_t>(message / 6)).ok()) << message;
      }
      EXPECT_TRUE(store_->Seal().ok());
      EXPECT_THAT(States(), Not(Contains(DiskState::kFailed)));
      EXPECT_THAT(Stored(), ElementsAreArray(UpTo(kMessages)));
      UseDisk(disk_->Copy("/store"));
      EXPECT_THAT(Stored(), ElementsAreArray(UpTo(kMessages))) << "after a crash";
      if (HasFailure()) return;
    }
  }
}

// RocksDB reports the write that it refuses then as if it had torn the log, when memory has already
// been put aside to be written out.
TEST_F(FullDiskTest, ThereMayBeNoRoomForTables) {
  const LayoutPtr layout = RegisterLarge();
  disk_->OnChange([this](const std::string& what, const std::string& name) {
    if (what == "new" && absl::EndsWith(name, ".sst")) Fill();
  });
  const uint64_t refused = AppendLargeUntilRefused(layout);
  EXPECT_TRUE(Await([&] { return State() == DiskState::kRefusing; }));
  EXPECT_FALSE(AppendLarge(layout, refused).ok());
  EXPECT_GT(disk_->refusals(), 0);
  disk_->OnChange(nullptr);
  disk_->SetCapacity(kRoomy);
  ExpectHealed(layout, refused);
}

// Then nothing but what is put there for it is in memory with which the torn log can be left.
//
// And the request to write memory out that came with the new log finds that writing is stopped: it
// stays in RocksDB's queue, where it is in the way of the one that resuming makes.
TEST_F(FullDiskTest, ANewLogMayBeTornByItsFirstWrite) {
  const LayoutPtr layout = RegisterLarge();
  absl::Notification refused_already;
  bool first = true;
  disk_->OnChange([&](const std::string& what, const std::string& name) {
    if (what != "new" || !absl::EndsWith(name, ".log")) return;
    Fill(100);
    if (!std::exchange(first, false)) return;
    const auto wait = [](void* until) {
      static_cast<absl::Notification*>(until)->WaitForNotification();
    };
    disk_->Schedule(wait, &refused_already, rocksdb::Env::Priority::HIGH);
  });
  const uint64_t refused = AppendLargeUntilRefused(layout);
  refused_already.Notify();
  EXPECT_TRUE(Await([&] { return State() == DiskState::kRefusing; }));
  disk_->OnChange(nullptr);
  disk_->SetCapacity(kRoomy);
  ExpectHealed(layout, refused);
}

TEST_F(FullDiskTest, ThereMayBeNoRoomForANewLog) {
  const LayoutPtr layout = RegisterLarge();
  disk_->RefuseNext(".log");
  const uint64_t refused = AppendLargeUntilRefused(layout);
  EXPECT_EQ(disk_->refusals(), 1);
  ExpectHealed(layout, refused);
}

TEST_F(FullDiskTest, ADayThatFoundNoRoomInTheManifestIsMadeLater) {
  ASSERT_TRUE(AppendOne(1).ok());
  disk_->OnChange([this](const std::string& what, const std::string& name) {
    if (what == "append" && absl::StrContains(name, "MANIFEST")) Fill();
  });
  EXPECT_EQ(store_->Seal().code(), absl::StatusCode::kUnavailable);
  EXPECT_GT(disk_->refusals(), 0);
  EXPECT_FALSE(AppendOne(2).ok());
  EXPECT_THAT(Stored(), ElementsAre(1));
  disk_->OnChange(nullptr);
  disk_->SetCapacity(kRoomy);
  ASSERT_TRUE(AppendPatiently(2).ok());
  EXPECT_TRUE(store_->Seal().ok());
  EXPECT_THAT(States(), Not(Contains(DiskState::kFailed)));
  UseDisk(disk_->Copy("/store"));
  EXPECT_THAT(Stored(), ElementsAre(1, 2));
}

// RocksDB ends the process when it resumes after such a write of the manifest, if it is not
// prepared for that.
TEST_F(FullDiskTest, TheLogMayBeTornAfterTheManifestWas) {
  ASSERT_TRUE(AppendOne(1).ok());
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(AppendOne(2, 1).ok());
  disk_->OnChange([this](const std::string& what, const std::string& name) {
    if (what == "append" && absl::StrContains(name, "MANIFEST")) Fill();
  });
  EXPECT_EQ(store_->Seal().code(), absl::StatusCode::kUnavailable);
  disk_->OnChange(nullptr);
  disk_->SetCapacity(kRoomy);
  ASSERT_TRUE(Await([&] { return State() == DiskState::kWritable && !States().empty(); }));
  Fill(10);
  EXPECT_FALSE(AppendOne(3, 1).ok());
  disk_->SetCapacity(kRoomy);
  ASSERT_TRUE(AppendPatiently(3, 1).ok());
  EXPECT_TRUE(store_->Seal().ok());
  UseDisk(disk_->Copy("/store"));
  EXPECT_THAT(Stored(), ElementsAre(1, 2, 3));
}

TEST_F(FullDiskTest, ADayThatFoundNoRoomToBeDroppedIsDroppedLater) {
  ASSERT_TRUE(AppendOne(1).ok());
  ASSERT_TRUE(store_->Seal().ok());
  options_.retention = absl::Hours(48);
  Reopen();
  layout_ = nullptr;
  disk_->OnChange([this](const std::string& what, const std::string& name) {
    if (what == "append" && absl::StrContains(name, "MANIFEST")) Fill();
  });
  EXPECT_EQ(store_->EnforceRetention().code(), absl::StatusCode::kUnavailable);
  EXPECT_GT(disk_->refusals(), 0);
  disk_->OnChange(nullptr);
  disk_->SetCapacity(kRoomy);
  EXPECT_TRUE(Await([&] { return store_->EnforceRetention().ok(); }));
  EXPECT_EQ(store_->Stats().partitions, 0u);
  EXPECT_THAT(States(), Not(Contains(DiskState::kFailed)));
}

}  // namespace
}  // namespace tacho::storage
