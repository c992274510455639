// Sees every change of the bucket and every acknowledgement, and knows what a new owner would find.
// After each of them:
//
//   - what was acknowledged is found;
//   - no row is found under two positions;
//   - the rows of an agent are found in the order of their sequences;
//   - every file that the manifest names is there;
//   - the object under a number of a log never gets other bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/manifest.h"
#include "tests/simulate/cluster/rows.h"

namespace tacho::cluster {

class Oracle {
 public:
  explicit Oracle(uint32_t shard) : shard_(shard) {}

  void Changed(const std::string& key, const std::string* body);
  void Acknowledged(size_t agent, uint64_t sequence);
  // Looks now. violation() is empty while all is right.
  void Check();
  const std::string& violation() const { return violation_; }

  uint64_t acknowledged() const;

 private:
  struct Logged {
    bool seal = false;
    std::vector<ModelRow> rows;
    uint64_t sealed = 0;  // Of a record that must not be there.
  };
  using Place = std::pair<uint64_t, uint64_t>;  // Epoch and number.

  void LogChanged(const storage::ObjectName& name, const std::string& body);
  void Recover();
  bool AddBlock(const std::string& key);
  bool AddBlocks();
  bool AddRow(const ModelRow& row);
  void CheckOrder();
  void CheckAcknowledged(size_t agent, uint64_t from);
  void Violation(std::string what);

  const uint32_t shard_;
  std::string violation_;
  bool changed_ = false;
  storage::Manifest manifest_;
  std::map<Place, Logged> log_;
  std::map<Place, uint32_t> first_bytes_;  // The checksum of what was there first.
  absl::flat_hash_map<std::string, std::vector<ModelRow>> blocks_;
  absl::flat_hash_map<std::string, ModelState> states_;
  absl::flat_hash_map<std::string, std::vector<storage::Block>> lists_;
  std::array<std::vector<uint64_t>, kAgents> positions_;  // By sequence; 0: not found.
  Watermarks acknowledged_{};
};

}  // namespace tacho::cluster
