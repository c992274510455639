// A store on a disk of limited size.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/storage/store_fixture.h"
#include "tests/support/capacity_env.h"

namespace tacho::storage {

class FullDiskFixture : public StoreFixture {
 protected:
  static constexpr uint64_t kRoomy = uint64_t{1} << 40;
  static constexpr int64_t kDay = int64_t{86'400} * 1'000'000'000;

  FullDiskFixture() { UseDisk(std::make_unique<CapacityEnv>(kRoomy)); }
  ~FullDiskFixture() override {
    disk_->OnChange(nullptr);
    disk_->SetCapacity(kRoomy);
    store_.reset();
  }

  // Opens a store on another disk, as after a crash if it is a copy of the one in use.
  void UseDisk(std::unique_ptr<CapacityEnv> disk) {
    store_.reset();
    {
      absl::MutexLock lock(&mutex_);
      states_.clear();
    }
    disk_ = std::move(disk);
    options_.env = disk_.get();
    options_.on_disk = [this](DiskState state, const absl::Status&) {
      absl::MutexLock lock(&mutex_);
      states_.push_back(state);
    };
    Reopen();
    layout_ = nullptr;
  }
  // Nothing more fits onto the disk, as if another program had taken the rest.
  void Fill(uint64_t but = 0) { disk_->SetCapacity(disk_->used() + but); }

  LayoutPtr UseLayout() {
    if (layout_ == nullptr) {
      const auto made = store_->RegisterLayout(Definition("job", {"loss"}));
      if (made.ok()) layout_ = made->layout;
    }
    return layout_;
  }
  // Row number `sequence`, of its own day if there is one for each.
  absl::Status AppendOne(uint64_t sequence, int64_t day = 0) {
    if (UseLayout() == nullptr) return absl::UnavailableError("no layout");
    const auto at = static_cast<int64_t>(sequence);
    return Append(layout_, {day * kDay + at}, {at}, {static_cast<double>(at)},
                  {"agent", 1, sequence});
  }
  // As an agent would: again and again, for some seconds, until it is stored.
  absl::Status AppendPatiently(uint64_t sequence, int64_t day = 0) {
    absl::Status status;
    for (int tries = 0; tries < 500; ++tries) {
      status = AppendOne(sequence, day);
      if (!absl::IsUnavailable(status)) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return status;
  }
  // Waits for what happens in the background.
  static bool Await(const std::function<bool()>& holds) {
    for (int tries = 0; tries < 1000 && !holds(); ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return holds();
  }
  std::vector<double> Stored() { return ReadAll(Find("job", "loss")).values; }
  // 1, 2, ..., last.
  static std::vector<double> UpTo(uint64_t last) {
    std::vector<double> all;
    for (uint64_t i = 1; i <= last; ++i) all.push_back(static_cast<double>(i));
    return all;
  }
  std::vector<DiskState> States() {
    absl::MutexLock lock(&mutex_);
    return states_;
  }
  DiskState State() {
    const std::vector<DiskState> states = States();
    return states.empty() ? DiskState::kWritable : states.back();
  }

  std::unique_ptr<CapacityEnv> disk_;
  absl::Mutex mutex_;
  std::vector<DiskState> states_ ABSL_GUARDED_BY(mutex_);
  LayoutPtr layout_;
};

}  // namespace tacho::storage
