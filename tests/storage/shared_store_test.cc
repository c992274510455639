// Acknowledgements that wait for the bucket: what was acknowledged is there bit for bit, and once,
// after the disk is gone, whatever the bucket does meanwhile.
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "rocksdb/env.h"
#include "storage/codec/keys.h"
#include "storage/history/piece_cache.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/manifest.h"
#include "storage/shard/segment.h"
#include "tests/storage/history/counted_bucket.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

class SharedStoreTest : public StoreFixture {
 protected:
  SharedStoreTest() {
    store_.reset();
    options_.log = [this](absl::string_view line) {
      absl::MutexLock lock(&mutex_);
      log_.emplace_back(line);
    };
    options_.monotonic = [this] { return now_; };
    bucket_.SetBefore([this](absl::string_view call, absl::string_view) -> absl::Status {
      absl::MutexLock lock(&mutex_);
      return refuse_ == nullptr ? absl::OkStatus() : refuse_(call);
    });
    options_.shared.on = true;
    options_.shared.interval = absl::Milliseconds(2);
    TakeNewDisk();
  }
  ~SharedStoreTest() override { store_.reset(); }

  // What was on the disk is gone.
  void TakeNewDisk() {
    store_.reset();
    pieces_.reset();
    disks_.push_back(std::unique_ptr<rocksdb::Env>(rocksdb::NewMemEnv(rocksdb::Env::Default())));
    options_.env = disks_.back().get();
    OpenPieces();
  }
  void OpenPieces() {
    pieces_.reset();
    auto pieces = PieceCache::Open({.path = "/pieces", .env = options_.env});
    ASSERT_TRUE(pieces.ok()) << pieces.status();
    pieces_ = *std::move(pieces);
    options_.history = {.bucket = &bucket_, .pieces = pieces_.get(), .owner = "test"};
  }
  absl::Status TryOpen() {
    store_.reset();
    auto store = Store::Open(options_);
    if (!store.ok()) return store.status();
    store_ = *std::move(store);
    return absl::OkStatus();
  }
  void Open() {
    const absl::Status opened = TryOpen();
    ASSERT_TRUE(opened.ok()) << opened;
  }
  using Answer = std::function<absl::Status(absl::string_view call)>;
  // What the bucket answers from now on, before it does anything.
  void Refuse(Answer answer) {
    absl::MutexLock lock(&mutex_);
    refuse_ = std::move(answer);
  }
  void LoseSegments() {
    Refuse([](absl::string_view call) {
      return call == "new" ? absl::UnavailableError("away") : absl::OkStatus();
    });
  }
  // The process ends here, as by SIGKILL: nothing more reaches the bucket.
  void Die() {
    Refuse([](absl::string_view) { return absl::PermissionDeniedError("dead"); });
    store_.reset();
    Refuse(nullptr);
  }

  // One message of an agent, with rows of three tasks in turn, any bits. Waits for its end.
  absl::Status Send(uint64_t sequence) {
    const LayoutPtr layout =
        Register(Definition("job", {"loss", "rate"}, static_cast<uint32_t>(sequence % 3)));
    std::mt19937_64 random(sequence);
    std::vector<int64_t> times;
    std::vector<int64_t> steps;
    std::vector<double> values;
    for (int row = 0; row < 20; ++row) {
      times.push_back(absl::ToUnixNanos(now_) + static_cast<int64_t>(sequence) * 1'000'000'000 +
                      row * 1000);
      steps.push_back(row);
      values.push_back(static_cast<double>(random()) / 7);
      values.push_back(static_cast<double>(row));
    }
    return Append(layout, times, steps, values,
                  {.agent_id = "agent", .generation = 1, .sequence = sequence});
  }
  void SendAll(uint64_t first, uint64_t last) {
    for (uint64_t sequence = first; sequence <= last; ++sequence) {
      const absl::Status sent = Send(sequence);
      ASSERT_TRUE(sent.ok()) << sent;
    }
  }
  uint64_t Acknowledged() { return store_->DurableSequences("agent", 1).watermark(); }

  // Everything a reader may see, bit for bit.
  std::string Everything() {
    std::string all;
    for (const char* metric : {"loss", "rate"}) {
      const auto series = store_->FindSeries({.job = "job", .metrics = {metric}}, 100);
      EXPECT_TRUE(series.ok());
      for (const SeriesPtr& one : *series) {
        const SampleBlock block = ReadAll(one);
        const auto append = [&](const auto& column) {
          all.append(reinterpret_cast<const char*>(column.data()),
                     column.size() * sizeof(column[0]));
        };
        append(block.times);
        append(block.steps);
        append(block.attempts);
        append(block.values);
      }
    }
    return all;
  }
  size_t Samples() {
    size_t count = 0;
    const auto series = store_->FindSeries({.job = "job", .metrics = {"loss"}}, 100);
    for (const SeriesPtr& one : *series) count += ReadAll(one).times.size();
    return count;
  }

  Manifest InBucket() {
    const auto manifest = DecodeManifest(bucket_.Objects()[ManifestKey(0)]);
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    return manifest.ok() ? *manifest : Manifest();
  }
  bool Logged(absl::string_view text) {
    absl::MutexLock lock(&mutex_);
    for (const std::string& line : log_) {
      if (absl::StrContains(line, text)) return true;
    }
    return false;
  }

  CountedBucket bucket_;
  std::vector<std::unique_ptr<rocksdb::Env>> disks_;
  std::unique_ptr<PieceCache> pieces_;
  absl::Mutex mutex_;
  Answer refuse_;
  std::vector<std::string> log_;
};

TEST_F(SharedStoreTest, WhatIsAcknowledgedIsThereAfterTheDiskIsLost) {
  Open();
  SendAll(1, 30);
  const std::string all = Everything();
  EXPECT_EQ(Acknowledged(), 30u);
  Die();
  TakeNewDisk();
  Open();
  EXPECT_TRUE(Logged("the store is restored"));
  EXPECT_EQ(Everything(), all);
  EXPECT_EQ(Samples(), 30u * 20);
  EXPECT_EQ(Acknowledged(), 30u);
  // A repeat is not stored again, and new rows go on.
  ASSERT_TRUE(Send(30).ok());
  EXPECT_EQ(Everything(), all);
  SendAll(31, 33);
  EXPECT_EQ(Samples(), 33u * 20);
}

TEST_F(SharedStoreTest, ManyLossesWithSealsAndCommitsInBetweenLoseNothing) {
  Open();
  uint64_t sequence = 0;
  for (int life = 0; life < 8; ++life) {
    for (int part = 0; part < 4; ++part) {
      SendAll(sequence + 1, sequence + 5);
      sequence += 5;
      if ((life + part) % 2 == 0) {
        ASSERT_TRUE(store_->Seal().ok());
      }
      if ((life * 3 + part) % 5 < 2) {
        const absl::Status committed = store_->CommitShared();
        ASSERT_TRUE(committed.ok()) << committed;
      }
    }
    const std::string all = Everything();
    Die();
    if (life % 3 != 2) TakeNewDisk();  // Else the same disk again.
    Open();
    ASSERT_EQ(Everything(), all) << "life " << life;
    ASSERT_EQ(Samples(), sequence * 20) << "life " << life;
    ASSERT_EQ(Acknowledged(), sequence) << "life " << life;
  }
}

TEST_F(SharedStoreTest, RowsAreSeenBeforeAndAcknowledgedAfterTheBucketHasThem) {
  Open();
  SendAll(1, 3);
  LoseSegments();
  const LayoutPtr layout = Register(Definition("job", {"loss", "rate"}, 1));
  absl::Notification done;
  absl::Status ended;
  store_->AppendRows({.agent_id = "agent", .generation = 1, .sequence = 4}, layout,
                     {std::vector<int64_t>{absl::ToUnixNanos(now_)}, std::vector<int64_t>{1},
                      std::vector<double>{1, 2}},
                     [&](const absl::Status& status) {
                       ended = status;
                       done.Notify();
                     });
  while (Samples() != 3 * 20 + 1) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(done.HasBeenNotified());
  EXPECT_EQ(Acknowledged(), 3u);
  EXPECT_GT(store_->Shared().unshipped_bytes, 0u);
  Refuse(nullptr);
  done.WaitForNotification();
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(Acknowledged(), 4u);
  EXPECT_EQ(store_->Shared().unshipped_bytes, 0u);
}

TEST_F(SharedStoreTest, WhatWasOnlyOnTheLostDiskComesAgain) {
  Open();
  SendAll(1, 3);
  LoseSegments();
  const LayoutPtr layout = Register(Definition("other", {"x"}));
  std::atomic<bool> acknowledged = false;
  store_->AppendRows({.agent_id = "agent", .generation = 1, .sequence = 4}, layout,
                     {std::vector<int64_t>{1}, std::vector<int64_t>{1}, std::vector<double>{1}},
                     [&](const absl::Status& status) { acknowledged = status.ok(); });
  while (store_->Shared().unshipped_bytes == 0) absl::SleepFor(absl::Milliseconds(1));
  Die();
  EXPECT_FALSE(acknowledged);
  TakeNewDisk();
  Open();
  EXPECT_EQ(Acknowledged(), 3u);
  SendAll(4, 5);
  EXPECT_EQ(Samples(), 5u * 20);
}

TEST_F(SharedStoreTest, TheSameDiskKeepsWhatTheBucketDidNotHave) {
  Open();
  SendAll(1, 3);
  LoseSegments();
  const LayoutPtr layout = Register(Definition("job", {"loss", "rate"}, 7));
  store_->AppendRows({.agent_id = "agent", .generation = 1, .sequence = 4}, layout,
                     {std::vector<int64_t>{1}, std::vector<int64_t>{1}, std::vector<double>{1, 2}},
                     [](const absl::Status&) {});
  while (store_->Shared().unshipped_bytes == 0) absl::SleepFor(absl::Milliseconds(1));
  Die();
  Open();
  EXPECT_FALSE(Logged("restored"));
  EXPECT_EQ(Acknowledged(), 4u) << "the copy at the start has it";
  const std::string all = Everything();
  Die();
  TakeNewDisk();
  Open();
  EXPECT_EQ(Everything(), all);
  EXPECT_EQ(Samples(), 3u * 20 + 1);
}

TEST_F(SharedStoreTest, AnOldCopyOfTheDiskIsMovedAside) {
  Open();
  SendAll(1, 3);
  Die();
  rocksdb::Env* const old_disk = options_.env;
  TakeNewDisk();
  Open();
  SendAll(4, 6);
  const std::string all = Everything();
  Die();
  options_.env = old_disk;
  OpenPieces();
  Open();
  EXPECT_TRUE(Logged(".fenced-1"));
  EXPECT_TRUE(old_disk->FileExists("/store/.fenced-1/CURRENT").ok());
  EXPECT_EQ(Everything(), all);
  EXPECT_EQ(Acknowledged(), 6u);
}

TEST_F(SharedStoreTest, AFencedOwnerAcknowledgesNothing) {
  Open();
  SendAll(1, 3);
  std::unique_ptr<Store> zombie = std::move(store_);
  std::unique_ptr<PieceCache> pieces = std::move(pieces_);
  absl::Status told;
  // Another machine takes the shard.
  disks_.push_back(std::unique_ptr<rocksdb::Env>(rocksdb::NewMemEnv(rocksdb::Env::Default())));
  options_.env = disks_.back().get();
  OpenPieces();
  Open();
  std::unique_ptr<Store> owner = std::move(store_);
  store_ = std::move(zombie);
  for (uint64_t sequence = 4; sequence < 8; ++sequence) {
    const absl::Status sent = Send(sequence);
    EXPECT_TRUE(absl::IsUnavailable(sent)) << sent;
    EXPECT_THAT(std::string(sent.message()), testing::HasSubstr("another collector"));
  }
  EXPECT_EQ(Acknowledged(), 3u);
  EXPECT_TRUE(store_->Shared().fenced);
  store_ = std::move(owner);
  EXPECT_EQ(Acknowledged(), 3u);
  SendAll(4, 5);
  EXPECT_EQ(Samples(), 5u * 20);
}

TEST_F(SharedStoreTest, UnknownOutcomesAcknowledgeWhatIsThere) {
  Open();
  std::atomic<int> calls = 0;
  Refuse([&](absl::string_view call) {
    return (call == "new" && ++calls % 2 == 0) ? absl::UnavailableError("no answer")
                                               : absl::OkStatus();
  });
  SendAll(1, 10);
  const std::string all = Everything();
  Die();
  TakeNewDisk();
  Open();
  EXPECT_EQ(Everything(), all);
}

TEST_F(SharedStoreTest, AStoreThatWasThereBeforeIsCopiedAtTheStart) {
  options_.shared.on = false;
  options_.history = {};
  Open();
  SendAll(1, 10);
  const std::string all = Everything();
  ASSERT_TRUE(store_->Close().ok());
  store_.reset();
  options_.shared.on = true;
  OpenPieces();
  Open();
  EXPECT_EQ(Everything(), all);
  Die();
  TakeNewDisk();
  Open();
  EXPECT_EQ(Everything(), all);
  EXPECT_EQ(Acknowledged(), 10u);
}

TEST_F(SharedStoreTest, ClosedDaysAreReadFromTheBucketAfterARestore) {
  Open();
  SendAll(1, 9);
  ASSERT_TRUE(store_->Seal().ok());
  now_ += absl::Hours(48);
  SendAll(10, 12);
  const absl::Status moved = store_->MoveHistory();
  ASSERT_TRUE(moved.ok()) << moved;
  const std::string all = Everything();
  ASSERT_TRUE(store_->CommitShared().ok());
  const Manifest manifest = InBucket();
  EXPECT_EQ(manifest.closed_days.size(), 1u);
  Die();
  TakeNewDisk();
  Open();
  EXPECT_EQ(Everything(), all);
  EXPECT_EQ(store_->Stats().partitions, 0u) << "the closed day is only in the bucket";
}

// A table of the day is named by a manifest, then by none because the day is closed, then again.
TEST_F(SharedStoreTest, LateRowsOfAClosedDayAreCopiedAndStayInTheBucket) {
  Open();
  SendAll(1, 9);
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(store_->CommitShared().ok());
  const absl::Time first_day = now_;
  now_ += absl::Hours(48);
  SendAll(10, 12);
  ASSERT_TRUE(store_->MoveHistory().ok());
  ASSERT_TRUE(store_->CommitShared().ok());
  const absl::Time later = now_;
  now_ = first_day;
  SendAll(13, 15);
  now_ = later;
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(store_->CommitShared().ok());
  const std::string all = Everything();
  now_ += absl::Minutes(90);
  store_->MoveHistory().IgnoreError();  // Deletes what nobody needs.
  Die();
  TakeNewDisk();
  Open();
  EXPECT_EQ(Everything(), all);
}

TEST_F(SharedStoreTest, AnotherStoresBucketIsLeftAlone) {
  Open();
  SendAll(1, 3);
  ASSERT_TRUE(store_->Close().ok());
  TakeNewDisk();
  options_.shared.on = false;
  options_.history = {};
  Open();
  SendAll(1, 1);
  ASSERT_TRUE(store_->Close().ok());
  options_.shared.on = true;
  OpenPieces();
  const absl::Status refused = TryOpen();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(InBucket().epoch, 1u);
}

TEST_F(SharedStoreTest, SegmentsHaveNoSealedPositionsAndTheManifestTrimsThem) {
  Open();
  SendAll(1, 6);
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(store_->CommitShared().ok());
  const Manifest manifest = InBucket();
  ASSERT_EQ(manifest.logs.size(), 1u);
  EXPECT_GT(manifest.logs[0].first, 1u) << "the log was trimmed";
  int segments = 0;
  for (const auto& [key, body] : bucket_.Objects()) {
    const auto name = ParseObjectKey(key);
    if (!name.has_value() || name->kind != ObjectKind::kSegment) continue;
    ++segments;
    const auto object = DecodeLogObject(body, {name->shard, name->epoch, name->number});
    ASSERT_TRUE(object.ok()) << object.status();
    for (const std::string& record : std::get<Segment>(*object).records) {
      const std::string sealed = SealedKey(1, 1);
      EXPECT_FALSE(absl::StrContains(record, sealed.substr(0, 5)));
    }
  }
  EXPECT_GE(segments, 1);
}

}  // namespace
}  // namespace tacho::storage
