#include "tests/simulate/cluster/oracle.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/segment.h"

namespace tacho::cluster {

using storage::ObjectKind;
using storage::ObjectName;

void Oracle::Violation(std::string what) {
  if (violation_.empty()) violation_ = std::move(what);
}

void Oracle::Changed(const std::string& key, const std::string* body) {
  // What collectors tell each other about who lives decides nothing that is looked at here.
  if (key == storage::kOwnersKey || absl::StartsWith(key, storage::kMembersPrefix)) return;
  const std::optional<ObjectName> name = storage::ParseObjectKey(key);
  if (!name.has_value()) return Violation(absl::StrCat("an unknown key is written: ", key));
  changed_ = true;
  switch (name->kind) {
    case ObjectKind::kManifest: {
      if (body == nullptr) return Violation("the manifest was deleted");
      auto manifest = storage::DecodeManifest(*body);
      if (!manifest.ok()) return Violation(manifest.status().ToString());
      manifest_ = *std::move(manifest);
      return;
    }
    case ObjectKind::kSegment:
      if (body != nullptr) return LogChanged(*name, *body);
      log_.erase({name->epoch, name->number});
      return;
    case ObjectKind::kStateFile:
      if (body == nullptr) {
        states_.erase(key);
      } else {
        states_[key] = DecodeState(*body);
      }
      return;
    case ObjectKind::kBlock:
      if (body == nullptr) {
        blocks_.erase(key);
      } else {
        blocks_[key] = DecodeBlock(*body);
      }
      return;
    case ObjectKind::kBlockList: {
      if (body == nullptr) {
        lists_.erase(key);
        return;
      }
      auto blocks = storage::DecodeBlockList(*body);
      if (!blocks.ok()) return Violation(blocks.status().ToString());
      lists_[key] = *std::move(blocks);
      return;
    }
    case ObjectKind::kSavedManifest:
      return;
  }
}

void Oracle::LogChanged(const ObjectName& name, const std::string& body) {
  const Place place{name.epoch, name.number};
  const uint32_t crc = ExtendCrc32c(0, body.data(), body.size());
  // A segment that comes back after it was trimmed is the same; a seal may come late, to a number
  // whose segment is trimmed.
  const auto object = storage::DecodeLogObject(body, {shard_, name.epoch, name.number});
  if (!object.ok()) return Violation(object.status().ToString());
  Logged logged{.seal = std::holds_alternative<storage::Seal>(*object)};
  if (!logged.seal) {
    const auto [first, is_new] = first_bytes_.try_emplace(place, crc);
    if (!is_new && first->second != crc) {
      Violation(absl::StrCat("number ", name.number, " of epoch ", name.epoch, " changes"));
    }
    for (const std::string& record : std::get<storage::Segment>(*object).records) {
      if (const auto sealed = SealedOfRecord(record); sealed.has_value()) {
        logged.sealed = std::max(logged.sealed, *sealed);
        continue;
      }
      storage::ByteReader in(record);
      logged.rows.push_back(ReadRow(&in));
    }
  }
  log_[place] = std::move(logged);
}

bool Oracle::AddRow(const ModelRow& row) {
  std::vector<uint64_t>& positions = positions_[row.agent];
  if (positions.size() <= row.sequence) positions.resize(row.sequence + 1);
  uint64_t& position = positions[row.sequence];
  if (position != 0 && position != row.position) {
    Violation(absl::StrCat("row ", row.sequence, " of agent ", row.agent, " is there twice, at ",
                           position, " and ", row.position));
    return false;
  }
  position = row.position;
  return true;
}

bool Oracle::AddBlock(const std::string& key) {
  const auto found = blocks_.find(key);
  if (found == blocks_.end()) {
    Violation(absl::StrCat(key, " is not there"));
    return false;
  }
  return std::all_of(found->second.begin(), found->second.end(),
                     [this](const ModelRow& row) { return AddRow(row); });
}

// Those of open days, and those in the lists of closed ones.
bool Oracle::AddBlocks() {
  for (const auto& [day, blocks] : manifest_.open_days) {
    for (const storage::Block& block : blocks) {
      if (!AddBlock(block.file.key)) return false;
    }
  }
  for (const auto& [day, list] : manifest_.closed_days) {
    const auto found = lists_.find(list.key);
    if (found == lists_.end()) {
      Violation(absl::StrCat(list.key, " is not there"));
      return false;
    }
    for (const storage::Block& block : found->second) {
      if (!AddBlock(block.file.key)) return false;
    }
  }
  return true;
}

void Oracle::Recover() {
  for (std::vector<uint64_t>& positions : positions_) positions.assign(positions.size(), 0);
  uint64_t sealed = 0;
  for (const storage::StateFile& state : manifest_.state) {
    const auto found = states_.find(state.file.key);
    if (found == states_.end()) return Violation(absl::StrCat(state.file.key, " is not there"));
    sealed = found->second.sealed;
  }
  if (!AddBlocks()) return;
  // A record of a sealed position counts wherever it stands in the log.
  std::vector<const Logged*> replayed;
  for (const storage::LogStart& log : manifest_.logs) {
    for (uint64_t number = log.first;; ++number) {
      const auto found = log_.find({log.epoch, number});
      if (found == log_.end() || found->second.seal) break;
      replayed.push_back(&found->second);
      sealed = std::max(sealed, found->second.sealed);
    }
  }
  for (const Logged* logged : replayed) {
    for (const ModelRow& row : logged->rows) {
      if (row.position > sealed && !AddRow(row)) return;
    }
  }
  CheckOrder();
}

void Oracle::CheckOrder() {
  for (size_t agent = 0; agent < kAgents; ++agent) {
    uint64_t before = 0;
    for (const uint64_t position : positions_[agent]) {
      if (position == 0) continue;
      if (position <= before) return Violation(absl::StrCat("agent ", agent, ": rows in disorder"));
      before = position;
    }
  }
}

void Oracle::CheckAcknowledged(size_t agent, uint64_t from) {
  for (uint64_t sequence = from; sequence <= acknowledged_[agent]; ++sequence) {
    if (sequence >= positions_[agent].size() || positions_[agent][sequence] == 0) {
      return Violation(
          absl::StrCat("row ", sequence, " of agent ", agent, " was acknowledged and is lost"));
    }
  }
}

void Oracle::Acknowledged(size_t agent, uint64_t sequence) {
  if (sequence <= acknowledged_[agent]) return;
  const uint64_t from = acknowledged_[agent] + 1;
  acknowledged_[agent] = sequence;
  if (!changed_) CheckAcknowledged(agent, from);  // Else Check() looks at all.
}

void Oracle::Check() {
  if (!changed_) return;
  changed_ = false;
  Recover();
  for (size_t agent = 0; agent < kAgents; ++agent) CheckAcknowledged(agent, 1);
}

uint64_t Oracle::acknowledged() const {
  uint64_t sum = 0;
  for (const uint64_t sequence : acknowledged_) sum += sequence;
  return sum;
}

}  // namespace tacho::cluster
