#include "server/takeover/ownership.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace tacho::server::takeover {
namespace {

constexpr absl::Duration kLongestPause = absl::Seconds(1);

uint64_t UsualRandom() {
  static thread_local std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

Ownership::Ownership(OwnershipOptions options)
    : options_([&options] {
        if (!options.random) options.random = UsualRandom;
        return std::move(options);
      }()),
      object_(options_.bucket, options_.random),
      watch_(options_.shards, options_.takeover_after) {
  TACHO_CHECK(options_.bucket != nullptr && !options_.address.empty());
  absl::MutexLock lock(&looking_);
  beat_.address = options_.address;
  beat_.life = options_.random();
  beat_.version = options_.version;
}

void Ownership::Start() {
  thread_.Start("takeover", RepeatingThread::Priority::kUsual, std::min(kLongestPause, BeatEvery()),
                [this] { Look(); });
}

std::optional<uint32_t> Ownership::shard() const {
  absl::MutexLock lock(&mutex_);
  return shard_;
}

std::string Ownership::OwnerOf(uint32_t shard) const {
  absl::MutexLock lock(&mutex_);
  const auto found = owners_.find(shard);
  return found == owners_.end() ? "" : found->second;
}

std::vector<std::string> Ownership::standbys() const {
  absl::MutexLock lock(&mutex_);
  return standbys_;
}

void Ownership::Look() {
  absl::MutexLock looking(&looking_);
  if (released_) return;
  const absl::Time now = options_.monotonic();
  if (!Answered(object_.Read())) return;
  {
    absl::MutexLock lock(&mutex_);
    owners_ = object_.map().owners;
  }
  if (const auto own = shard(); own.has_value()) {
    const std::string owner = OwnerOf(*own);
    if (owner != options_.address) {
      options_.log.Error("another collector has taken this one's shard",
                         {{"shard", absl::StrCat(*own)}, {"owner", owner}});
      Become(std::nullopt);
    }
  }
  if (now >= beat_at_) Beat(now);
  if (!shard().has_value() && seeking_) SeekShard(now);
  if (now >= standby_at_) FindStandbys(now);
}

bool Ownership::Answered(const absl::Status& status) {
  if (status.ok()) return true;
  watch_.NoteNoLook();
  options_.log.Limited(log::Level::kWarn, "the bucket does not say who owns which shard",
                       {{"reason", status.message()}}, 1);
  return false;
}

void Ownership::Beat(absl::Time now) {
  ++beat_.count;
  beat_.shard = shard();
  const auto put = options_.bucket->Put(storage::HeartbeatKey(options_.address),
                                        storage::EncodeHeartbeat(beat_));
  if (!put.ok()) {
    options_.log.Limited(log::Level::kWarn, "cannot write the sign of life into the bucket",
                         {{"reason", put.status().message()}}, 1);
    return;  // The next look tries again.
  }
  beat_at_ = now + BeatEvery();
}

std::optional<VacantShard> Ownership::Own() const {
  const auto& owners = object_.map().owners;
  for (const auto& [shard, owner] : owners) {
    if (owner == options_.address && shard < options_.shards) return VacantShard{shard, owner};
  }
  if (!options_.home.has_value()) return std::nullopt;
  const auto home = owners.find(*options_.home);
  if (home != owners.end() && !home->second.empty()) return std::nullopt;
  return VacantShard{*options_.home, "", home != owners.end()};
}

void Ownership::SeekShard(absl::Time now) {
  if (const auto own = Own(); own.has_value()) return Take(*own, now);
  std::vector<std::string> owners;
  bool released = false;
  for (const auto& [shard, owner] : object_.map().owners) {
    if (shard >= options_.shards) continue;
    if (owner.empty()) {
      released = true;
    } else {
      owners.push_back(owner);
    }
  }
  if (now < watch_at_ && !released) return;
  watch_at_ = now + BeatEvery();
  const auto beats = ReadBeats(owners);
  if (!Answered(beats.status())) return;
  watch_.NoteLook(now, object_.map(), *beats);
  for (const VacantShard& vacant : watch_.Vacant(now)) {
    Take(vacant, now);
    if (shard().has_value()) return;
  }
}

void Ownership::Take(const VacantShard& vacant, absl::Time now) {
  const std::string number = absl::StrCat(vacant.shard);
  if (vacant.owner != options_.address) {
    const absl::Status changed = object_.Change(vacant.shard, vacant.owner, options_.address);
    if (!changed.ok()) {
      // Somebody else was faster, or the next look finds out what has happened.
      options_.log.Info("did not get a shard", {{"shard", number}, {"reason", changed.message()}});
      return;
    }
    const bool is_home = options_.home == vacant.shard;
    if (!is_home || !vacant.owner.empty()) {
      ++takeovers_;
      options_.log.Warn(
          "taking over a shard",
          {{"shard", number},
           {"from", vacant.owner},
           {"why", vacant.released ? "its owner has ended"
                   : vacant.owner.empty()
                       ? "no collector has come for it"
                       : absl::StrCat("its owner has shown no sign of life for ",
                                      absl::FormatDuration(options_.takeover_after))}});
    }
  }
  {
    absl::MutexLock lock(&mutex_);
    owners_ = object_.map().owners;
  }
  Become(vacant.shard);
  Beat(now);
}

absl::StatusOr<std::map<std::string, storage::Heartbeat>> Ownership::ReadBeats(
    const std::vector<std::string>& addresses) {
  std::map<std::string, storage::Heartbeat> beats;
  for (const std::string& address : addresses) {
    const auto object = options_.bucket->Get(storage::HeartbeatKey(address));
    if (absl::IsNotFound(object.status())) continue;
    if (!object.ok()) return object.status();
    auto beat = storage::DecodeHeartbeat(object->body);
    if (!beat.ok()) {
      // It says nothing about the owner: as if it had left none.
      options_.log.Limited(
          log::Level::kWarn, "a sign of life cannot be read",
          {{"key", storage::HeartbeatKey(address)}, {"reason", beat.status().message()}}, 1);
      continue;
    }
    beats[address] = *std::move(beat);
  }
  return beats;
}

void Ownership::FindStandbys(absl::Time now) {
  standby_at_ = now + 2 * BeatEvery();  // Each that lives has written once in between.
  std::vector<std::string> idle;
  for (const std::string& address : options_.members) {
    const auto& owners = object_.map().owners;
    const bool owns = std::any_of(owners.begin(), owners.end(),
                                  [&](const auto& owner) { return owner.second == address; });
    if (!owns && address != options_.address) idle.push_back(address);
  }
  const auto beats = ReadBeats(idle);
  if (!beats.ok()) return;
  std::map<std::string, uint64_t> counted;
  std::vector<std::string> living;
  for (const auto& [address, beat] : *beats) {
    const uint64_t token = beat.life + beat.count;
    counted[address] = token;
    const auto before = counted_.find(address);
    if (before != counted_.end() && before->second != token) living.push_back(address);
  }
  counted_ = std::move(counted);
  if (!shard().has_value()) living.push_back(options_.address);
  absl::MutexLock lock(&mutex_);
  standbys_ = std::move(living);
}

void Ownership::Become(std::optional<uint32_t> shard) {
  seeking_ = false;
  {
    absl::MutexLock lock(&mutex_);
    shard_ = shard;
  }
  if (options_.on_change) options_.on_change();
}

void Ownership::Doubt() {
  absl::MutexLock looking(&looking_);
  if (shard().has_value()) Become(std::nullopt);
}

void Ownership::Release() {
  absl::MutexLock looking(&looking_);
  released_ = true;
  const auto own = shard();
  if (!own.has_value()) return;
  const absl::Status changed = object_.Change(*own, options_.address, "");
  if (!changed.ok() && !absl::IsAborted(changed)) {
    options_.log.Warn("cannot tell the others that this collector ends; they wait",
                      {{"reason", changed.message()}});
  }
  absl::MutexLock lock(&mutex_);
  shard_.reset();
}

}  // namespace tacho::server::takeover
