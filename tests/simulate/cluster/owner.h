// A collector as the protocol sees it: it becomes owner, restores, takes rows in, ships them,
// acknowledges them, commits, and removes garbage. What it stores is a model; how it becomes owner,
// ships, commits and finds garbage are the classes of storage/shard themselves.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/takeover/ownership.h"
#include "storage/shard/manifest_commit.h"
#include "storage/shard/manifest_object.h"
#include "storage/shard/shard_log.h"
#include "storage/shard/takeover.h"
#include "tests/simulate/cluster/rows.h"
#include "tests/simulate/cluster/world.h"

namespace tacho::cluster {

class Owner : private storage::RequestBucket {
 public:
  Owner(World& world, size_t index) : world_(world), index_(index) {}
  ~Owner() override { Crash(); }

  // Whatever it was before, it begins anew with nothing: as the owner of this epoch, or as a
  // process that waits until the shard has no owner.
  void TakeOver(uint64_t epoch);
  void Join();
  void Crash();
  // In good order: a process that waits, or owns the shard, gives it up first.
  void End() { ending_ = true; }

  // An agent sends its next row, if it has one that is not here.
  void Offer(size_t agent);
  // Hands rows over to the log.
  void Ship();
  // One that can go on, or null.
  Task* RandomTask();
  // Removes tasks that have ended. After each of their turns.
  void Tidy();

  bool is_alive() const { return !tasks_.empty(); }
  size_t index() const { return index_; }

 private:
  // What a segment of this owner holds, up to its end.
  struct Shipped {
    uint64_t last_position = 0;
    Watermarks watermarks{};
  };
  struct Export {
    ModelState state;
    storage::StateFile state_file;
    storage::Block block;
    uint64_t newest = 0;   // The position that the log must have.
    uint64_t version = 0;  // Of the manifest that it was made for.
    int64_t day = 0;       // Of the block.
    // The day that gets a list with this commit, if any.
    std::optional<int64_t> closed_day;
    storage::StoredFile list;
  };

  storage::BucketAnswer Ask(storage::BucketRequest request) override;
  storage::BucketAnswer AskForSegment(storage::BucketRequest request);
  storage::BucketAnswer AskWhileSealing(storage::BucketRequest request);
  void Spawn(std::function<void()> body);
  storage::BeforeRetry BeforeRetry();
  storage::ManifestObject Object();

  // Takes the shard when it may, and ends when another has it.
  void WaitForShard();
  void Own();
  bool Restore(const storage::Manifest& manifest);
  void Replay(const storage::Segment& segment);
  void Serve();
  void Send();
  void Stop() { stopped_ = true; }
  void Acknowledge();
  void AcknowledgeShipped(const Watermarks& watermarks);
  void LookForSlots();

  void Commit();
  bool PutFile(const std::string& key, const std::string& body);
  bool ExportState(Export* exported);
  bool CutBlock(Export* exported);
  bool CloseDay(Export* exported);
  std::optional<std::vector<storage::Block>> ListedBlocks(int64_t day);
  void Refresh();
  bool MergeBlocks(int64_t day, std::vector<storage::Block>* blocks);
  static absl::Status ChangeDays(const Export& exported, storage::Manifest* manifest);
  void AddGarbage(const storage::Committed& committed);
  storage::CommitRequest RequestFor(const Export& exported);
  void Committed(const Export& exported);
  std::vector<std::string> Covered(const storage::CommitRequest& request) const;
  uint64_t SegmentOf(uint64_t position) const;
  void CollectGarbage();

  World& world_;
  const size_t index_;

  // Everything below is of one life.
  std::vector<std::unique_ptr<Task>> tasks_;
  std::unique_ptr<server::takeover::Ownership> ownership_;  // Null: the dice decide.
  bool ending_ = false;
  bool stopped_ = false;
  uint64_t epoch_ = 0;
  bool sealing_ = false;
  storage::Manifest manifest_;  // As this owner knows it.
  std::vector<storage::SealedLog> sealed_logs_;
  std::unique_ptr<storage::ShardLog> log_;
  std::vector<ModelRow> rows_;  // Above the committed state's sealed position, in order.
  uint64_t sealed_ = 0;         // Of the committed state.
  uint64_t next_position_ = 1;
  Watermarks taken_in_{};
  Watermarks in_bucket_{};
  std::vector<Shipped> shipped_;  // By number - 1.
  uint64_t acknowledged_segments_ = 0;
  uint64_t restored_position_ = 0;
  uint64_t stored_position_ = 0;
  uint64_t files_ = 0;
  uint64_t unshipped_seal_ = 0;  // A sealed position that a mistake ships.
  std::vector<std::string> garbage_;
  std::map<std::string, int> tries_;                 // By key of a segment, for mistakes.
  std::map<std::string, std::string> first_bodies_;  // The same.
  std::map<uint64_t, uint64_t> slots_;               // By epoch, for a mistake.
};

}  // namespace tacho::cluster
