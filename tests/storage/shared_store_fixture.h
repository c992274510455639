// A store whose acknowledgements wait for a bucket in memory, on disks that are lost.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/env.h"
#include "storage/history/piece_cache.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/manifest.h"
#include "tests/storage/history/counted_bucket.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {

class SharedStoreFixture : public StoreFixture {
 protected:
  SharedStoreFixture() {
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
  ~SharedStoreFixture() override { store_.reset(); }

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

}  // namespace tacho::storage
