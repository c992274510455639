#include "agent/spool/sharded_spool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/spool/spool_division.h"
#include "agent/spool/spool_move.h"
#include "proto/base/job_shard.h"
#include "proto/base/status_macros.h"
#include "storage/journal/spool_journal.h"

namespace tacho::agent {

ShardedSpool::ShardedSpool(ShardedSpoolOptions options)
    : options_(std::move(options)),
      home_(options_.division.ShardOf(options_.home_job, options_.home_host)) {}

absl::StatusOr<std::unique_ptr<ShardedSpool>> ShardedSpool::Open(ShardedSpoolOptions options) {
  auto spool = std::unique_ptr<ShardedSpool>(new ShardedSpool(std::move(options)));
  TACHO_RETURN_IF_ERROR(spool->Load());
  return spool;
}

absl::Status ShardedSpool::Load() {
  const std::string& path = options_.spool.path;
  std::vector<FoundSpool> others;
  TACHO_ASSIGN_OR_RETURN(Spool* const home, OpenShard(home_));
  for (FoundSpool& found : FindSpools(path)) {
    if (found.shards == options_.division.shards && found.split == SplitName(options_.division)) {
      TACHO_RETURN_IF_ERROR(OpenShard(found.shard).status());
    } else {
      others.push_back(std::move(found));
    }
  }
  const MoveTargets targets = {
      .of_source = [this](const v1::Source& source) { return OpenShard(ShardOf(source)); },
      .home = home,
      .read_checkpoint = [this](absl::string_view key) { return ReadCheckpoint(key); }};
  for (const FoundSpool& other : others) {
    TACHO_RETURN_IF_ERROR(MoveSpool(other, options_.spool, targets));
  }
  // A crash may have left the rest of a spool without members that was being removed. If the disk
  // refuses, the next start tries again.
  if (others.empty()) storage::SpoolJournal::Remove(path).IgnoreError();
  for (const auto& [shard, spool] : spools()) {
    if (others.empty()) ForgetMoves(spool);
    spool->CountFromHere();
  }
  return absl::OkStatus();
}

absl::StatusOr<Spool*> ShardedSpool::OpenShard(uint32_t shard) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = spools_.find(shard);
    if (found != spools_.end()) return found->second.get();
  }
  SpoolOptions options = options_.spool;
  options.path = ShardPath(options_.spool.path, shard, options_.division);
  TACHO_ASSIGN_OR_RETURN(std::unique_ptr<Spool> spool, Spool::Open(std::move(options)));
  Spool* const opened = spool.get();
  {
    absl::MutexLock lock(&mutex_);
    spools_[shard] = std::move(spool);
  }
  if (opened_) opened_(shard, opened);
  return opened;
}

uint32_t ShardedSpool::ShardOf(const v1::Source& source) const {
  return options_.division.ShardOf(source.job(), source.host());
}

std::map<uint32_t, Spool*> ShardedSpool::spools() const {
  absl::MutexLock lock(&mutex_);
  std::map<uint32_t, Spool*> open;
  for (const auto& [shard, spool] : spools_) open[shard] = spool.get();
  return open;
}

absl::StatusOr<uint32_t> ShardedSpool::DefineLayout(const v1::Layout& layout) {
  const uint32_t shard = ShardOf(layout.source());
  TACHO_ASSIGN_OR_RETURN(Spool* const spool, OpenShard(shard));
  TACHO_ASSIGN_OR_RETURN(const uint32_t inner, spool->DefineLayout(layout));
  const auto [handle, is_new] =
      handles_.try_emplace({spool, inner}, static_cast<uint32_t>(layouts_.size() + 1));
  if (!is_new) return handle->second;
  Place place = {.spool = spool, .layout = inner, .shard = shard};
  if (options_.host_jobs.contains(layout.source().job())) {
    auto copied = std::make_shared<v1::Layout>(layout);
    copied->set_copy(true);
    place.copied = std::move(copied);
  }
  layouts_.push_back(std::move(place));
  return handle->second;
}

absl::Status ShardedSpool::AppendRows(uint32_t layout, std::span<const int64_t> times_unix_ns,
                                      std::span<const int64_t> steps,
                                      std::span<const double> values,
                                      const Checkpoint& checkpoint) {
  if (layout == 0 || layout > layouts_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("layout ", layout, " was never defined"));
  }
  Place& place = layouts_[layout - 1];
  TACHO_RETURN_IF_ERROR(CheckPatience(options_.spool, Bytes(), checkpoint));
  TACHO_RETURN_IF_ERROR(BringCheckpoint(checkpoint.key, place.spool));
  TACHO_RETURN_IF_ERROR(
      place.spool->AppendRows(place.layout, times_unix_ns, steps, values, checkpoint));
  if (place.copied != nullptr) {
    Copy({times_unix_ns, steps, values}, &place);
  } else {
    used_[place.shard] = options_.monotonic();
  }
  KeepWithinBound();
  return absl::OkStatus();
}

void ShardedSpool::Copy(const Rows& rows, Place* from) {
  const absl::Time now = options_.monotonic();
  std::erase_if(used_, [&](const auto& shard) { return now - shard.second > kCopiedFor; });
  const std::map<uint32_t, Spool*> open = spools();
  for (const auto& [shard, when] : used_) {
    const auto to = open.find(shard);
    if (shard == from->shard || to == open.end()) continue;
    const auto [known, is_new] = from->copies.try_emplace(shard, 0);
    if (is_new) {
      const auto layout = to->second->DefineLayout(*from->copied);
      if (!layout.ok()) {
        from->copies.erase(known);
        continue;
      }
      known->second = *layout;
    }
    // The rows themselves are in their own spool: to fail here would make the source repeat them.
    to->second->AppendRows(known->second, rows.times_unix_ns, rows.steps, rows.values, {})
        .IgnoreError();
  }
}

absl::Status ShardedSpool::AppendEvent(const v1::Event& event, const Checkpoint& checkpoint) {
  TACHO_ASSIGN_OR_RETURN(Spool* const spool, OpenShard(ShardOf(event.source())));
  TACHO_RETURN_IF_ERROR(BringCheckpoint(checkpoint.key, spool));
  TACHO_RETURN_IF_ERROR(spool->AppendEvent(event, checkpoint));
  KeepWithinBound();
  return absl::OkStatus();
}

absl::Status ShardedSpool::AppendAttributes(const v1::Attributes& attributes,
                                            const Checkpoint& checkpoint) {
  const uint32_t shard = options_.division.ShardOf(attributes.job());
  TACHO_ASSIGN_OR_RETURN(Spool* const spool, OpenShard(shard));
  TACHO_RETURN_IF_ERROR(BringCheckpoint(checkpoint.key, spool));
  TACHO_RETURN_IF_ERROR(spool->AppendAttributes(attributes, checkpoint));
  KeepWithinBound();
  return absl::OkStatus();
}

absl::Status ShardedSpool::WriteCheckpoint(const Checkpoint& checkpoint) {
  std::map<uint32_t, Spool*> open = spools();
  Spool* holder = open[home_];
  for (const auto& [shard, spool] : open) {
    if (!spool->ReadCheckpoint(checkpoint.key).empty()) holder = spool;
  }
  TACHO_RETURN_IF_ERROR(BringCheckpoint(checkpoint.key, holder));
  return holder->WriteCheckpoint(checkpoint);
}

std::string ShardedSpool::ReadCheckpoint(absl::string_view key) const {
  for (const auto& [shard, spool] : spools()) {
    std::string value = spool->ReadCheckpoint(key);
    if (!value.empty()) return value;  // If two have it, they have the same.
  }
  return "";
}

absl::Status ShardedSpool::BringCheckpoint(absl::string_view key, Spool* to) {
  if (key.empty()) return absl::OkStatus();
  for (const auto& [shard, spool] : spools()) {
    if (spool == to) continue;
    const std::string value = spool->ReadCheckpoint(key);
    if (value.empty()) continue;
    if (to->ReadCheckpoint(key).empty()) {
      TACHO_RETURN_IF_ERROR(spool->Sync());  // The rows that it came with.
      TACHO_RETURN_IF_ERROR(to->WriteCheckpoint({.key = std::string(key), .value = value}));
      TACHO_RETURN_IF_ERROR(to->Sync());
    }
    // Gone for good before `to` has a newer one: a crash never leaves two that differ.
    TACHO_RETURN_IF_ERROR(spool->WriteCheckpoint({.key = std::string(key)}));
    TACHO_RETURN_IF_ERROR(spool->Sync());
  }
  return absl::OkStatus();
}

uint64_t ShardedSpool::Bytes() const {
  uint64_t bytes = 0;
  for (const auto& [shard, spool] : spools()) bytes += spool->bytes();
  return bytes;
}

void ShardedSpool::KeepWithinBound() {
  const uint64_t max = options_.spool.max_bytes;
  uint64_t sum = 0;
  uint64_t most = 0;
  Spool* fullest = nullptr;
  for (const auto& [shard, spool] : spools()) {
    const uint64_t bytes = spool->bytes();
    sum += bytes;
    if (fullest == nullptr || bytes > most) {
      most = bytes;
      fullest = spool;
    }
  }
  if (sum > max) fullest->ShrinkTo(most - std::min(most, sum - max));
}

SpoolStats ShardedSpool::Stats() const {
  SpoolStats sum;
  for (const auto& [shard, spool] : spools()) {
    const SpoolStats one = spool->Stats();
    sum.entries += one.entries;
    sum.bytes += one.bytes;
    sum.appended_rows += one.appended_rows;
    for (size_t i = 0; i < sum.lost.size(); ++i) {
      sum.lost[i].messages += one.lost[i].messages;
      sum.lost[i].rows += one.lost[i].rows;
    }
  }
  return sum;
}

absl::StatusOr<std::unique_ptr<Spool>> OpenUndivided(const SpoolOptions& options) {
  TACHO_ASSIGN_OR_RETURN(std::unique_ptr<Spool> spool, Spool::Open(options));
  const MoveTargets targets = {
      .of_source = [&spool](const v1::Source&) -> absl::StatusOr<Spool*> { return spool.get(); },
      .home = spool.get(),
      .read_checkpoint = [&spool](absl::string_view key) { return spool->ReadCheckpoint(key); }};
  bool moved = false;
  for (const FoundSpool& found : FindSpools(options.path)) {
    if (found.shards == 0) continue;
    moved = true;
    TACHO_RETURN_IF_ERROR(MoveSpool(found, options, targets));
  }
  if (!moved) {
    ForgetMoves(spool.get());
    return spool;
  }
  spool->CountFromHere();
  return spool;
}

}  // namespace tacho::agent
