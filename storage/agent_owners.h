// The owner of each agent's id: the first who used it, until somebody who may take it over does so.
// Without owners, everybody who may write could close the sequences of any agent whose generation
// they know.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace tacho::storage {

// Thread-safe but for Load(). The records lie in "state", under OwnerKey().
class AgentOwners {
 public:
  // Neither is owned; both must outlive this.
  AgentOwners(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* state) : db_(db), state_(state) {}

  // Call once, first.   DATA_LOSS names the record that is damaged.
  absl::Status Load() ABSL_LOCKS_EXCLUDED(mutex_);

  struct Claimed {
    std::string owner;    // The one that has the id now.
    uint64_t to_write{};  // The version of the record that Stage() is to write; 0: it is on disk.
  };
  // Gives the id to `claimant` if nobody has it, or if `takes_over`. `today` counts days since the
  // epoch.
  Claimed Claim(absl::string_view agent_id, absl::string_view claimant, bool takes_over,
                uint32_t today) ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds the record, as it is now, to a write. Returns its version, for Written().
  uint64_t Stage(absl::string_view agent_id, rocksdb::WriteBatch* write) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The disk has this version of the record.
  void Written(absl::string_view agent_id, uint64_t version) ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets the ids that nobody has claimed since `before_day`, unless there is a record of what
  // the agent sent, and adds their removal to a write.
  absl::Status Forget(uint32_t before_day, rocksdb::WriteBatch* write) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Record {
    std::string owner;
    uint32_t claimed_day = 0;
    uint64_t version = 1;
    uint64_t on_disk = 0;  // The newest version that is.
  };

  // Whether the disk has the durable sequences of any generation of the agent.
  absl::StatusOr<bool> HasSequences(const std::string& agent_id) const;

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const state_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Record> records_ ABSL_GUARDED_BY(mutex_);  // By agent id.
};

}  // namespace tacho::storage
