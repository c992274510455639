// Days that move into a bucket: every sample is read as before, at every point at which the process
// or the bucket may fail.
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "rocksdb/env.h"
#include "storage/codec/keys.h"
#include "storage/history/piece_cache.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/manifest.h"
#include "tests/storage/history/counted_bucket.h"
#include "tests/storage/store_fixture.h"
#include "tests/support/power_cut_env.h"

namespace tacho::storage {
namespace {

using ::testing::HasSubstr;

class HistoryTest : public StoreFixture {
 protected:
  HistoryTest() {
    auto pieces = PieceCache::Open({.path = "/pieces", .env = env_.get()});
    EXPECT_TRUE(pieces.ok()) << pieces.status();
    pieces_ = *std::move(pieces);
    options_.history = {.bucket = &bucket_,
                        .pieces = pieces_.get(),
                        .owner = "test",
                        .local_retention = absl::Hours(48),
                        .late_after = absl::ZeroDuration()};
    options_.monotonic = [this] { return now_; };
    options_.log = [this](absl::string_view line) { log_.emplace_back(line); };
    Reopen();
  }
  // Views and iterators before the store, the store before the bucket.
  ~HistoryTest() override { store_.reset(); }

  int64_t Today() const { return DayOf(absl::ToUnixNanos(now_)); }

  // Rows of some series on a day, sealed in several frames; `seed` decides values.
  void FillDay(int64_t day, uint64_t seed, int frames = 3) {
    std::mt19937_64 random(seed);
    for (uint32_t task = 0; task < 3; ++task) {
      const LayoutPtr layout = Register(Definition("job", {"loss", "rate"}, task));
      for (int frame = 0; frame < frames; ++frame) {
        std::vector<int64_t> times;
        std::vector<int64_t> steps;
        std::vector<double> values;
        for (int row = 0; row < 50; ++row) {
          times.push_back(day * kDayNs + static_cast<int64_t>(random() % 80'000) * 1'000'000'000);
          steps.push_back(row);
          values.push_back(static_cast<double>(random() % 1000) / 7);
          values.push_back(static_cast<double>(row));
        }
        std::sort(times.begin(), times.end());
        ASSERT_TRUE(Append(layout, times, steps, values).ok());
        ASSERT_TRUE(store_->Seal().ok());
      }
    }
  }

  absl::Status ReadStatus() {
    const auto reader = store_->Read(Find("job", "loss"), {});
    Chunk chunk;
    for (;;) {
      const auto more = reader->Next({}, &chunk);
      if (!more.ok()) return more.status();
      if (!*more) return absl::OkStatus();
    }
  }
  SeriesPtr Find(const std::string& job, const std::string& metric) {
    const auto series = store_->FindSeries({.job = job, .metrics = {metric}}, 10);
    return series.ok() && !series->empty() ? series->front() : nullptr;
  }

  Manifest InBucket() {
    const auto manifest = DecodeManifest(bucket_.Objects()[ManifestKey(0)]);
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    return manifest.ok() ? *manifest : Manifest();
  }
  size_t LocalDays() { return store_->Stats().partitions; }
  // As far as it goes.
  void Move() {
    for (int i = 0; i < 3; ++i) {
      const absl::Status moved = store_->MoveHistory();
      ASSERT_TRUE(moved.ok()) << moved;
    }
  }
  bool Logged(absl::string_view text) const {
    for (const std::string& line : log_) {
      if (absl::StrContains(line, text)) return true;
    }
    return false;
  }

  void CrashAt(absl::string_view point, int nth, bool power) {
    store_.reset();
    bucket_.SetBefore(nullptr);
    for (const auto& [key, body] : bucket_.Objects()) ASSERT_TRUE(bucket_.Delete(key).ok());
    tacho::testing::PowerCutEnv disk(1);
    options_.env = &disk;
    int reached = 0;
    bool armed = false;
    options_.at_point = [&](absl::string_view at) {
      if (!armed || at != point || ++reached != nth) return;
      power ? disk.CutNow() : disk.Kill();
      bucket_.SetBefore(
          [](absl::string_view, absl::string_view) { return absl::CancelledError("dead"); });
    };
    Reopen();
    for (int64_t age = 6; age >= 0; --age) FillDay(Today() - age, static_cast<uint64_t>(age));
    FillDay(Today() - 9, 77);
    const std::string before = Everything();
    armed = true;
    for (int i = 0; i < 3 && reached < nth; ++i) store_->MoveHistory().IgnoreError();
    const bool died = reached >= nth;
    EXPECT_TRUE(died || (nth > 1 && point == crash_point::kHistoryClaimed));
    store_.reset();
    if (died) disk.Start();
    bucket_.SetBefore(nullptr);
    options_.at_point = nullptr;
    auto store = Store::Open(options_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    EXPECT_EQ(Everything(), before);
    Move();
    EXPECT_EQ(Everything(), before);
    EXPECT_EQ(LocalDays(), 3u);
    store_.reset();
    options_.env = env_.get();
  }

  CountedBucket bucket_;
  std::unique_ptr<PieceCache> pieces_;
  std::vector<std::string> log_;
};

TEST_F(HistoryTest, OldDaysLeaveTheDiskAndAreReadBitForBit) {
  for (int64_t age = 6; age >= 0; --age) FillDay(Today() - age, static_cast<uint64_t>(age));
  const std::string before = Everything();
  ASSERT_FALSE(before.empty());
  Move();
  EXPECT_EQ(LocalDays(), 3u) << "today, yesterday, and the day before";
  EXPECT_EQ(InBucket().closed_days.size(), 6u) << "today is not over";
  EXPECT_EQ(Everything(), before);
  Reopen();
  EXPECT_EQ(LocalDays(), 3u);
  EXPECT_EQ(Everything(), before);
}

TEST_F(HistoryTest, AStoreWithoutABucketAsksForTheOneThatHasItsDays) {
  for (int64_t age = 6; age >= 0; --age) FillDay(Today() - age, 1);
  Move();
  ASSERT_TRUE(store_->Close().ok());
  store_.reset();
  StoreOptions without = options_;
  without.history = {};
  const auto store = Store::Open(without);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("bucket.url"));
  Reopen();
}

TEST_F(HistoryTest, ADayIsClosedSomeHoursAfterItsEnd) {
  FillDay(Today(), 1);
  const absl::Time end = absl::FromUnixNanos((Today() + 1) * kDayNs);
  const LayoutPtr layout = Register(Definition("job", {"loss"}, 7));
  const auto append_at = [&](absl::Duration after_end) {
    now_ = end + after_end;
    ASSERT_TRUE(Append(layout, {absl::ToUnixNanos(now_)}, {1}, {1.5}).ok());
  };
  append_at(absl::Hours(3));
  Move();
  EXPECT_TRUE(InBucket().closed_days.empty());
  // The clock alone does not make days old: rows have to come.
  now_ = end + absl::Hours(100);
  Move();
  EXPECT_TRUE(InBucket().closed_days.empty());
  append_at(absl::Hours(5));
  Move();
  EXPECT_EQ(InBucket().closed_days.size(), 1u);
}

TEST_F(HistoryTest, LateRowsOfADayThatHasLeftAreSeenAndFollowIt) {
  for (int64_t age = 6; age >= 0; --age) FillDay(Today() - age, static_cast<uint64_t>(age));
  Move();
  for (int round = 0; round < 7; ++round) {  // More than there may be runs of blocks.
    // Some overlap what is there: the later write counts.
    FillDay(Today() - 5, static_cast<uint64_t>(100 + round), 1);
    FillDay(Today() - 20, static_cast<uint64_t>(200 + round), 1);  // A day that never was.
    const std::string before = Everything();
    ASSERT_EQ(LocalDays(), 5u);
    Reopen();
    EXPECT_EQ(Everything(), before) << "on the disk and in the bucket, round " << round;
    Move();
    EXPECT_EQ(LocalDays(), 3u);
    EXPECT_EQ(Everything(), before) << "in the bucket, round " << round;
  }
  // What a commit has made superfluous goes an hour later.
  const size_t objects = bucket_.Objects().size();
  now_ += absl::Hours(2);
  const std::string before = Everything();
  Move();
  EXPECT_LT(bucket_.Objects().size(), objects);
  Reopen();
  EXPECT_EQ(Everything(), before);
}

TEST_F(HistoryTest, RowsThatCameAfterADayWasClosedAreSentBeforeItLeaves) {
  FillDay(Today() - 1, 1);
  FillDay(Today(), 2);
  Move();
  EXPECT_EQ(InBucket().closed_days.size(), 1u);
  FillDay(Today() - 1, 3);
  now_ += absl::Hours(24 * 10);
  FillDay(Today(), 4);
  const std::string before = Everything();
  Move();
  EXPECT_EQ(LocalDays(), 1u);
  EXPECT_EQ(Everything(), before);
}

TEST_F(HistoryTest, RowsThatComeJustBeforeADayLeavesKeepItOnTheDisk) {
  for (int64_t age = 6; age >= 0; --age) FillDay(Today() - age, static_cast<uint64_t>(age));
  bool came = false;
  options_.at_point = [&](absl::string_view at) {
    if (at != crash_point::kHistoryCompared || std::exchange(came, true)) return;
    FillDay(Today() - 6, 99, 1);
  };
  Reopen();
  ASSERT_TRUE(store_->MoveHistory().ok());
  ASSERT_TRUE(came);
  const std::string before = Everything();
  Move();
  EXPECT_EQ(LocalDays(), 3u);
  EXPECT_EQ(Everything(), before);
  // All of it is in the bucket, and not only in what memory remembers.
  Reopen();
  EXPECT_EQ(Everything(), before);
  EXPECT_EQ(ReadAll(Find("job", "rate")).times.size(), 7u * 150 + 50);
}

TEST_F(HistoryTest, LateRowsAreGatheredForAWhile) {
  options_.history.late_after = absl::Minutes(30);
  Reopen();
  for (int64_t age = 6; age >= 0; --age) FillDay(Today() - age, static_cast<uint64_t>(age));
  Move();
  FillDay(Today() - 6, 100, 1);
  FillDay(Today() - 6, 101, 1);
  const std::string before = Everything();
  Move();
  EXPECT_EQ(LocalDays(), 4u);
  now_ += absl::Minutes(31);
  Move();
  EXPECT_EQ(LocalDays(), 3u);
  EXPECT_EQ(Everything(), before);
}

// Values of measurements, not of noise.
TEST_F(HistoryTest, ADayTakesNoMoreInTheBucketThanOnTheDisk) {
  const int64_t day = Today() - 6;
  std::mt19937_64 random(1);
  for (uint32_t task = 0; task < 20; ++task) {
    const LayoutPtr layout = Register(Definition("job", {"a", "b", "c", "d", "e"}, task));
    for (int frame = 0; frame < 6; ++frame) {
      std::vector<int64_t> times;
      std::vector<int64_t> steps;
      std::vector<double> values;
      for (int row = 0; row < 1000; ++row) {
        times.push_back(day * kDayNs + (frame * 1000 + row) * int64_t{10'000'000'000});
        steps.push_back(row);
        for (int metric = 0; metric < 5; ++metric) {
          values.push_back(static_cast<double>(random() % (100u << metric)) / 100);
        }
      }
      ASSERT_TRUE(Append(layout, times, steps, values).ok());
    }
  }
  FillDay(Today(), 1);
  Reopen();  // Settled.
  const uint64_t with_day = store_->Stats().disk_bytes;
  Move();
  Reopen();
  const uint64_t on_disk = with_day - store_->Stats().disk_bytes;
  uint64_t in_bucket = 0;
  for (const auto& [key, body] : bucket_.Objects()) {
    if (absl::StrContains(key, "/days/")) in_bucket += body.size();
  }
  RecordProperty("bytes_on_disk", std::to_string(on_disk));
  RecordProperty("bytes_in_bucket", std::to_string(in_bucket));
  EXPECT_GT(on_disk, 500'000u);
  EXPECT_LE(static_cast<double>(in_bucket), 1.02 * static_cast<double>(on_disk));
}

TEST_F(HistoryTest, NothingLeavesTheDiskWhileTheBucketRefuses) {
  for (int64_t age = 6; age >= 0; --age) FillDay(Today() - age, static_cast<uint64_t>(age));
  const std::string before = Everything();
  for (const char* refused : {"get", "new", "put", "if"}) {
    bucket_.SetBefore([&](absl::string_view call, absl::string_view) {
      return call == refused ? absl::UnavailableError("no route") : absl::OkStatus();
    });
    EXPECT_FALSE(store_->MoveHistory().ok()) << refused;
    EXPECT_FALSE(store_->History().status.ok());
    EXPECT_EQ(LocalDays(), 7u) << refused;
    bucket_.SetBefore(nullptr);
    EXPECT_EQ(Everything(), before);
  }
  EXPECT_TRUE(Logged("days stay on the disk"));
  Move();
  EXPECT_TRUE(store_->History().status.ok());
  EXPECT_EQ(LocalDays(), 3u);
  EXPECT_EQ(Everything(), before);
}

TEST_F(HistoryTest, ALostAnswerToACommitIsFoundOut) {
  for (int64_t age = 6; age >= 0; --age) FillDay(Today() - age, static_cast<uint64_t>(age));
  const std::string before = Everything();
  bucket_.LoseAnswers(3);
  Move();
  EXPECT_EQ(LocalDays(), 3u);
  EXPECT_EQ(Everything(), before);
}

TEST_F(HistoryTest, AnUnreachableBucketIsUnavailableAndADeletedBlockIsDataLoss) {
  for (int64_t age = 6; age >= 0; --age) FillDay(Today() - age, static_cast<uint64_t>(age));
  const std::string before = Everything();
  Move();
  Reopen();
  bucket_.SetBefore([](absl::string_view, absl::string_view) {
    return absl::UnavailableError("no route to the bucket");
  });
  absl::Status status = ReadStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no route to the bucket"));
  // A store opens, takes rows and shows the days that it has on the disk.
  Reopen();
  FillDay(Today(), 99);
  ReadOptions young;
  young.begin_ns = (Today() - 1) * kDayNs;
  EXPECT_GT(ReadAll(Find("job", "loss"), young).times.size(), 0u);
  bucket_.SetBefore(nullptr);
  std::string block;
  for (const auto& [key, body] : bucket_.Objects()) {
    if (absl::EndsWith(key, ".sst")) block = key;
    if (!block.empty()) break;
  }
  const std::string body = bucket_.Objects()[block];
  ASSERT_TRUE(bucket_.Delete(block).ok());
  Reopen();
  status = ReadStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(block));
  bucket_.Change(block, body);
  EXPECT_TRUE(ReadStatus().ok());
}

TEST_F(HistoryTest, WhatAnEarlierProcessLeftInTheBucketIsSwept) {
  for (int64_t age = 6; age >= 0; --age) FillDay(Today() - age, static_cast<uint64_t>(age));
  const std::string before = Everything();
  // Blocks are sent, the manifest is not.
  bucket_.SetBefore([](absl::string_view call, absl::string_view key) {
    return call == "if" && absl::EndsWith(key, "manifest") ? absl::UnavailableError("no route")
                                                           : absl::OkStatus();
  });
  EXPECT_FALSE(store_->MoveHistory().ok());
  bucket_.SetBefore(nullptr);
  const auto left = bucket_.Objects();
  Reopen();
  Move();
  const size_t with_orphans = bucket_.Objects().size();
  now_ += absl::Hours(23);
  Move();
  EXPECT_EQ(bucket_.Objects().size(), with_orphans);
  now_ += absl::Hours(2);
  Move();
  EXPECT_LT(bucket_.Objects().size(), with_orphans);
  for (const auto& [key, body] : left) {
    EXPECT_TRUE(!absl::EndsWith(key, ".sst") || !bucket_.Objects().contains(key)) << key;
  }
  EXPECT_EQ(Everything(), before);
}

TEST_F(HistoryTest, RetentionForgetsDaysInTheBucket) {
  for (int64_t age = 6; age >= 0; --age) FillDay(Today() - age, static_cast<uint64_t>(age));
  Move();
  options_.retention = absl::Hours(24 * 4);
  Reopen();
  ReadOptions kept;
  kept.begin_ns = (Today() - 4) * kDayNs;
  const SampleBlock before = ReadAll(Find("job", "loss"), kept);
  const size_t objects = bucket_.Objects().size();
  const int64_t first_kept = Today() - 4;
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_EQ(InBucket().closed_days.begin()->first, first_kept);
  EXPECT_EQ(InBucket().kept_from_day, first_kept);
  EXPECT_EQ(ReadAll(Find("job", "loss")).times, before.times);
  now_ += absl::Hours(2);
  Move();
  EXPECT_LT(bucket_.Objects().size(), objects);
  // While the bucket is away nothing is forgotten, here or there.
  bucket_.SetBefore(
      [](absl::string_view, absl::string_view) { return absl::UnavailableError("away"); });
  now_ += absl::Hours(24);
  EXPECT_FALSE(store_->EnforceRetention().ok());
  EXPECT_EQ(InBucket().closed_days.begin()->first, first_kept);
  bucket_.SetBefore(nullptr);
}

TEST_F(HistoryTest, BytesTakeDaysOffTheDiskAndNotOutOfTheBucket) {
  options_.retention_bytes = 1;
  Reopen();
  for (int64_t age = 2; age >= 0; --age) FillDay(Today() - age, static_cast<uint64_t>(age));
  Reopen();  // Into tables.
  const std::string before = Everything();
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_EQ(LocalDays(), 3u);
  Move();
  EXPECT_EQ(LocalDays(), 1u);
  EXPECT_EQ(Everything(), before);
}

TEST_F(HistoryTest, AMemberOfAnotherListWritesNothingIntoTheBucket) {
  options_.history.shards = 3;
  options_.history.shard = 1;
  Reopen();
  FillDay(Today() - 5, 1);
  Move();
  ASSERT_TRUE(bucket_.Objects().contains(ManifestKey(1)));
  ASSERT_FALSE(bucket_.Objects().contains(ManifestKey(0)));
  const auto before = bucket_.Objects();
  // The list has become shorter, or was lost.
  for (const uint32_t shards : {2u, 1u}) {
    options_.history.shards = shards;
    options_.history.shard = shards - 1;
    Reopen();
    FillDay(Today() - 4, 2);
    const absl::Status moved = store_->MoveHistory();
    EXPECT_EQ(moved.code(), absl::StatusCode::kFailedPrecondition) << moved;
    EXPECT_THAT(std::string(moved.message()), HasSubstr("a cluster of 3 collectors"));
  }
  EXPECT_EQ(bucket_.Objects(), before);
}

TEST_F(HistoryTest, AnotherStoreAndAnOlderCopyAreRefused) {
  FillDay(Today() - 5, 1);
  ASSERT_TRUE(store_->Checkpoint("/copy").ok());
  FillDay(Today(), 2);
  Move();
  ASSERT_FALSE(InBucket().closed_days.empty());
  const Manifest manifest = InBucket();
  for (const char* path : {"/copy", "/other"}) {
    StoreOptions other = options_;
    other.path = path;
    const auto store = Store::Open(other);
    ASSERT_TRUE(store.ok()) << store.status();
    const absl::Status moved = (*store)->MoveHistory();
    EXPECT_EQ(moved.code(), absl::StatusCode::kFailedPrecondition) << path;
    EXPECT_THAT(std::string(moved.message()), HasSubstr("bucket.url"));
    EXPECT_EQ(InBucket(), manifest);
  }
}

TEST_F(HistoryTest, ASecondProcessThatGoesOnFencesTheFirst) {
  FillDay(Today() - 5, 1);
  Move();
  ASSERT_TRUE(store_->Checkpoint("/copy").ok());
  StoreOptions other = options_;
  other.path = "/copy";
  const auto store = Store::Open(other);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->MoveHistory().ok()) << "it knows the newest manifest";
  FillDay(Today() - 4, 2);
  FillDay(Today(), 3);
  const std::string before = Everything();
  const size_t local = LocalDays();
  EXPECT_EQ(store_->MoveHistory().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(store_->MoveHistory().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(LocalDays(), local);
  EXPECT_EQ(Everything(), before);
}

TEST_F(HistoryTest, ALostManifestIsNotTakenForANewBucket) {
  FillDay(Today() - 5, 1);
  FillDay(Today(), 2);
  Move();
  ASSERT_TRUE(bucket_.Delete(ManifestKey(0)).ok());
  Reopen();
  EXPECT_EQ(store_->MoveHistory().code(), absl::StatusCode::kFailedPrecondition);
}

// The process or the machine dies; what it was about to do does not happen, here or in the bucket.
TEST_F(HistoryTest, ACrashAtEveryPointLeavesEverySample) {
  for (const char* const point :
       {crash_point::kHistoryClaimed, crash_point::kHistorySent, crash_point::kHistoryCommitted,
        crash_point::kHistoryCompared, crash_point::kHistoryMarked, crash_point::kPartitionDrop,
        crash_point::kPartitionDropped}) {
    for (const bool power : {false, true}) {
      const int nth = power ? 3 : 1;
      SCOPED_TRACE(absl::StrCat(point, power ? " power" : ""));
      CrashAt(point, nth, power);
    }
  }
}

}  // namespace
}  // namespace tacho::storage
