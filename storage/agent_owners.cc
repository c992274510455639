#include "storage/agent_owners.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {

absl::Status AgentOwners::Load() {
  absl::MutexLock lock(&mutex_);
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), state_));
  const std::string prefix = OwnerKey("");
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    ByteReader value(View(it->value()));
    Record record;
    record.claimed_day = value.Le32();
    record.owner = std::string(value.String());
    record.on_disk = record.version;
    if (!value.AtEnd() || record.owner.empty()) {
      return absl::DataLossError(
          absl::StrCat("the owner of an agent under ", it->key().ToString(true), " is damaged"));
    }
    records_[std::string(View(it->key()).substr(prefix.size()))] = std::move(record);
  }
  return FromRocksDb(it->status(), "read the owners of agents");
}

AgentOwners::Claimed AgentOwners::Claim(absl::string_view agent_id, absl::string_view claimant,
                                        bool takes_over, uint32_t today) {
  TACHO_CHECK(!claimant.empty());
  absl::MutexLock lock(&mutex_);
  Record& record = records_[agent_id];
  if (record.owner.empty() || (takes_over && record.owner != claimant)) {
    record.owner = std::string(claimant);
    record.claimed_day = today;
    ++record.version;
  } else if (record.owner == claimant && record.claimed_day < today) {
    record.claimed_day = today;
    ++record.version;
  }
  return {record.owner, record.on_disk == record.version ? 0 : record.version};
}

uint64_t AgentOwners::Stage(absl::string_view agent_id, rocksdb::WriteBatch* write) const {
  absl::MutexLock lock(&mutex_);
  const auto found = records_.find(agent_id);
  if (found == records_.end()) return 0;  // Forgotten since.
  std::string value;
  PutLe32(found->second.claimed_day, &value);
  PutString(found->second.owner, &value);
  write->Put(state_, OwnerKey(agent_id), value);
  return found->second.version;
}

void AgentOwners::Written(absl::string_view agent_id, uint64_t version) {
  absl::MutexLock lock(&mutex_);
  const auto found = records_.find(agent_id);
  if (found != records_.end()) found->second.on_disk = version;
}

absl::StatusOr<bool> AgentOwners::HasSequences(const std::string& agent_id) const {
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), state_));
  const std::string first = OriginKey(agent_id, 0);
  const std::string last = OriginKey(agent_id, UINT64_MAX);
  // Longer ids lie in between.
  for (it->Seek(first); it->Valid() && View(it->key()) <= last; it->Next()) {
    if (it->key().size() == first.size()) return true;
  }
  TACHO_RETURN_IF_ERROR(FromRocksDb(it->status(), "read the durable sequences"));
  return false;
}

absl::Status AgentOwners::Forget(uint32_t before_day, rocksdb::WriteBatch* write) {
  std::vector<std::pair<std::string, uint64_t>> old;  // With their versions.
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [agent_id, record] : records_) {
      if (record.claimed_day < before_day) old.emplace_back(agent_id, record.version);
    }
  }
  for (const auto& [agent_id, version] : old) {
    TACHO_ASSIGN_OR_RETURN(const bool used, HasSequences(agent_id));
    if (used) continue;
    absl::MutexLock lock(&mutex_);
    const auto found = records_.find(agent_id);
    if (found == records_.end() || found->second.version != version) continue;  // Claimed again.
    records_.erase(found);
    write->Delete(state_, OwnerKey(agent_id));
  }
  return absl::OkStatus();
}

}  // namespace tacho::storage
