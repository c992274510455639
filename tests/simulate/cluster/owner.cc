#include "tests/simulate/cluster/owner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/garbage.h"
#include "storage/shard/segment.h"

namespace tacho::cluster {

using storage::BucketAnswer;
using storage::BucketRequest;
using storage::LogStart;
using storage::Manifest;
using storage::ShardLog;

namespace {

constexpr int kSenders = 3;

std::string AddressOf(size_t index) { return absl::StrCat("collector-", index); }

bool IsSegmentKey(const std::string& key) {
  const auto name = storage::ParseObjectKey(key);
  return name.has_value() && name->kind == storage::ObjectKind::kSegment;
}

}  // namespace

// --- Life and death ---

void Owner::Crash() {
  tasks_.clear();
  ownership_.reset();
  world_.Forget(this);
  log_.reset();
  ending_ = stopped_ = sealing_ = false;
  epoch_ = sealed_ = acknowledged_segments_ = restored_position_ = stored_position_ = files_ =
      unshipped_seal_ = 0;
  next_position_ = 1;
  manifest_ = {};
  sealed_logs_.clear();
  rows_.clear();
  taken_in_ = in_bucket_ = {};
  shipped_.clear();
  garbage_.clear();
  tries_.clear();
  first_bodies_.clear();
  slots_.clear();
}

void Owner::TakeOver(uint64_t epoch) {
  Crash();
  epoch_ = epoch;
  Spawn([this] { Own(); });
}

void Owner::Join() {
  Crash();
  server::takeover::OwnershipOptions options;
  options.bucket = this;
  for (const size_t index : {0, 1, 2}) options.members.push_back(AddressOf(index));
  options.address = AddressOf(index_);
  if (index_ == 0) options.home = 0;
  options.takeover_after = world_.takeover_after();
  options.monotonic = [this] { return world_.Now(index_); };
  options.random = [this] { return world_.Random(); };
  ownership_ = std::make_unique<server::takeover::Ownership>(std::move(options));
  ownership_->Seek();
  Spawn([this] { WaitForShard(); });
}

void Owner::WaitForShard() {
  bool owns = false;
  for (;;) {
    ownership_->Look();
    if (ending_) {
      ownership_->Release();
      return Stop();
    }
    const bool named = ownership_->shard().has_value();
    if (owns && !named) return Stop();
    if (named && !owns) {
      owns = true;
      world_.CountTakeover();
      Spawn([this] { Own(); });
    }
    world_.PauseIdle();
  }
}

void Owner::Spawn(std::function<void()> body) {
  tasks_.push_back(std::make_unique<Task>(world_.stacks(), std::move(body)));
}

Task* Owner::RandomTask() {
  std::vector<Task*> ready;
  for (const auto& task : tasks_) {
    if (!task->waiting && (!task->idle || world_.Chance(0.05))) ready.push_back(task.get());
  }
  return ready.empty() ? nullptr : ready[world_.Below(ready.size())];
}

void Owner::Tidy() {
  if (stopped_) return Crash();
  std::erase_if(tasks_, [](const auto& task) { return task->fiber.ended(); });
}

storage::BeforeRetry Owner::BeforeRetry() {
  return [this](int) {
    world_.Pause();
    return world_.Chance(0.05) ? absl::CancelledError("given up") : absl::OkStatus();
  };
}

storage::ManifestObject Owner::Object() {
  const bool repeats = world_.planted() == Planted::kManifestNonceRepeats;
  return storage::ManifestObject(
      {.bucket = this,
       .shard = kShard,
       .random = [this, repeats] { return repeats ? 42 : world_.Random(); },
       .before_retry = BeforeRetry()});
}

// --- Becoming owner ---

void Owner::Own() {
  const bool early = world_.planted() == Planted::kServeBeforeSeal;
  if (world_.planted() == Planted::kSlotBeforeEpoch) LookForSlots();
  const storage::ManifestObject object = Object();
  const bool counts = world_.handover() == Handover::kByClocks;
  const auto epoch = counts ? std::nullopt : std::optional(epoch_);
  const auto claimed = storage::ClaimShard(object, epoch, AddressOf(index_));
  if (!claimed.ok()) return Stop();
  manifest_ = claimed->manifest;
  epoch_ = manifest_.epoch;
  if (early && Restore(manifest_)) Serve();
  std::vector<storage::Segment> segments;
  sealing_ = true;
  const auto sealed = storage::SealOlderLogs(object, manifest_, [&](storage::Segment segment) {
    segments.push_back(std::move(segment));
    return absl::OkStatus();
  });
  sealing_ = false;
  if (!sealed.ok()) return Stop();
  sealed_logs_ = *sealed;
  if (!early) {
    if (!Restore(manifest_)) return Stop();
    for (const storage::Segment& segment : segments) Replay(segment);
    in_bucket_ = taken_in_;
    restored_position_ = stored_position_ = next_position_ - 1;
    Serve();
  }
  for (;;) {
    world_.Pause();
    if (world_.Chance(0.3)) Commit();
  }
}

bool Owner::Restore(const Manifest& manifest) {
  for (const storage::StateFile& file : manifest.state) {
    const auto object = storage::GetUntilAnswered(*this, file.file.key, BeforeRetry());
    if (!object.ok()) return false;
    const ModelState state = DecodeState(object->body);
    sealed_ = state.sealed;
    next_position_ = state.next_position;
    taken_in_ = state.watermarks;
  }
  in_bucket_ = taken_in_;
  return true;
}

void Owner::Replay(const storage::Segment& segment) {
  for (const std::string& record : segment.records) {
    if (const auto sealed = SealedOfRecord(record); sealed.has_value()) {
      sealed_ = std::max(sealed_, *sealed);
      std::erase_if(rows_, [&](const ModelRow& row) { return row.position <= sealed_; });
      continue;
    }
    storage::ByteReader in(record);
    ModelRow row = ReadRow(&in);
    row.segment = {segment.place.epoch, segment.place.number};
    taken_in_[row.agent] = std::max(taken_in_[row.agent], row.sequence);
    next_position_ = std::max(next_position_, row.position + 1);
    if (row.position > sealed_) rows_.push_back(row);
  }
}

// A mistake: where the older logs end, before the claim.
void Owner::LookForSlots() {
  const auto read = Object().Read();
  if (!read.ok()) return;
  for (const LogStart& log : read->manifest.logs) {
    uint64_t number = log.first;
    while (storage::GetUntilAnswered(*this, storage::SegmentKey(kShard, log.epoch, number),
                                     BeforeRetry())
               .ok()) {
      ++number;
    }
    slots_[log.epoch] = number;
  }
}

// --- Serving ---

void Owner::Serve() {
  ++world_.result().served;
  log_ = std::make_unique<ShardLog>(storage::ShardLogOptions{
      .bucket = this, .shard = kShard, .epoch = epoch_, .nonce = world_.Random()});
  for (int i = 0; i < kSenders; ++i) Spawn([this] { Send(); });
  Spawn([this] { CollectGarbage(); });
}

void Owner::Send() {
  for (;;) {
    const ShardLog::Sent sent = log_->SendOne();
    if (sent == ShardLog::Sent::kFenced) {
      ++world_.result().fenced;
      return Stop();
    }
    Acknowledge();
    sent == ShardLog::Sent::kNothing ? world_.PauseIdle() : world_.Pause();
  }
}

void Owner::Offer(size_t agent) {
  if (log_ == nullptr) return;
  const bool local = world_.planted() == Planted::kWelcomeFromLocal;
  if (world_.Chance(0.2)) world_.Acknowledge(agent, local ? taken_in_[agent] : in_bucket_[agent]);
  const uint64_t sequence = std::max(world_.acknowledged(agent), taken_in_[agent]) + 1;
  if (sequence > world_.produced(agent)) return;
  taken_in_[agent] = sequence;
  rows_.push_back({.position = next_position_++, .agent = agent, .sequence = sequence});
}

void Owner::Ship() {
  if (log_ == nullptr || !world_.Chance(0.4)) return;
  std::vector<std::string> records;
  for (const ModelRow& row : rows_) {
    if (row.segment.first == 0) records.push_back(EncodeRow(row));
  }
  if (records.empty()) return;
  if (unshipped_seal_ > 0) records.push_back(EncodeSealedRecord(unshipped_seal_));
  const auto number = log_->Append(records, 0, next_position_ - 1);
  if (!number.ok()) return;
  unshipped_seal_ = 0;
  for (const auto& task : tasks_) task->idle = false;
  for (ModelRow& row : rows_) {
    if (row.segment.first == 0) row.segment = {epoch_, *number};
  }
  shipped_.push_back({next_position_ - 1, taken_in_});
  if (world_.planted() == Planted::kAckEarly) AcknowledgeShipped(taken_in_);
}

void Owner::Acknowledge() {
  for (; acknowledged_segments_ < log_->stored(); ++acknowledged_segments_) {
    const Shipped& shipped = shipped_[acknowledged_segments_];
    stored_position_ = shipped.last_position;
    in_bucket_ = shipped.watermarks;
    AcknowledgeShipped(in_bucket_);
  }
}

void Owner::AcknowledgeShipped(const Watermarks& watermarks) {
  for (size_t agent = 0; agent < kAgents; ++agent) world_.Acknowledge(agent, watermarks[agent]);
}

// --- Committing ---

bool Owner::PutFile(const std::string& key, const std::string& body) {
  const storage::BeforeRetry before_retry = BeforeRetry();
  while (!static_cast<storage::Bucket*>(this)->Put(key, body).ok()) {
    if (!before_retry(1).ok()) return false;
  }
  return true;
}

// Everything up to a position counts as sealed; what was taken in is in the state, too.
bool Owner::ExportState(Export* exported) {
  const uint64_t newest = next_position_ - 1;
  const uint64_t least = std::max(sealed_, exported->state.sealed);
  exported->state = {.sealed = least + world_.Below(newest - least + 1),
                     .next_position = next_position_,
                     .watermarks = taken_in_};
  exported->newest = std::max(exported->newest, newest);
  if (world_.planted() == Planted::kSealedPositionInLog) unshipped_seal_ = exported->state.sealed;
  exported->state_file.file.key = storage::StateFileKey(kShard, epoch_, absl::StrCat(++files_));
  return PutFile(exported->state_file.file.key, EncodeState(exported->state));
}

// Blocks hold what the state calls sealed, and perhaps what was sealed since.
bool Owner::CutBlock(Export* exported) {
  const uint64_t newest = next_position_ - 1;
  const uint64_t least = std::max(sealed_, exported->state.sealed);
  const uint64_t cut = least + world_.Below(newest - least + 1);
  std::vector<ModelRow> rows;
  for (const ModelRow& row : rows_) {
    if (row.position <= cut) rows.push_back(row);
  }
  exported->newest = std::max(exported->newest, cut);
  exported->version = manifest_.version;
  exported->day = 1 + static_cast<int64_t>(manifest_.closed_days.size());
  exported->block.file.key = storage::BlockKey(kShard, exported->day, epoch_, ++files_);
  if (world_.planted() == Planted::kBlocksBeforeState) exported->state.sealed = cut;
  return PutFile(exported->block.file.key, EncodeBlock(rows));
}

// Sometimes the open day is closed: its list names its blocks, or one that has all their rows. And
// sometimes the blocks of an older day become one.
bool Owner::CloseDay(Export* exported) {
  std::vector<storage::Block> blocks;
  bool merge = true;
  if (world_.Chance(0.2)) {
    exported->closed_day = exported->day;
    blocks = manifest_.open_days[exported->day];
    blocks.push_back(exported->block);
    merge = world_.Chance(0.5);
  } else if (!manifest_.closed_days.empty() && world_.Chance(0.2)) {
    exported->closed_day = 1 + static_cast<int64_t>(world_.Below(manifest_.closed_days.size()));
    const auto listed = ListedBlocks(*exported->closed_day);
    if (!listed.has_value()) return false;  // Given up, or a newer owner has removed it.
    blocks = *listed;
  } else {
    return true;
  }
  if (merge && !MergeBlocks(*exported->closed_day, &blocks)) return false;
  exported->list.key = storage::BlockListKey(kShard, *exported->closed_day, epoch_, ++files_);
  return PutFile(exported->list.key, storage::EncodeBlockList(blocks));
}

std::optional<std::vector<storage::Block>> Owner::ListedBlocks(int64_t day) {
  const auto object =
      storage::GetUntilAnswered(*this, manifest_.closed_days.at(day).key, BeforeRetry());
  if (!object.ok()) return std::nullopt;
  const auto listed = storage::DecodeBlockList(object->body);
  return listed.ok() ? std::optional(*listed) : std::nullopt;
}

bool Owner::MergeBlocks(int64_t day, std::vector<storage::Block>* blocks) {
  std::string rows;
  for (const storage::Block& block : *blocks) {
    const auto object = storage::GetUntilAnswered(*this, block.file.key, BeforeRetry());
    if (!object.ok()) return false;
    rows += object->body;
  }
  *blocks = {{.file = {.key = storage::BlockKey(kShard, day, epoch_, ++files_)}}};
  return PutFile(blocks->front().file.key, rows);
}

absl::Status Owner::ChangeDays(const Export& exported, Manifest* manifest) {
  // A commit whose answer was lost has happened since. What was planned does not fit any more.
  if (exported.closed_day.has_value() && manifest->version != exported.version) {
    return absl::FailedPreconditionError("plan it again");
  }
  if (manifest->closed_days.contains(exported.day)) {
    return absl::FailedPreconditionError("the day is closed");
  }
  manifest->open_days[exported.day].push_back(exported.block);
  if (exported.closed_day.has_value()) {
    manifest->open_days.erase(*exported.closed_day);
    manifest->closed_days[*exported.closed_day] = exported.list;
  }
  return absl::OkStatus();
}

// After a commit of unknown outcome: what the next one is planned for.
void Owner::Refresh() {
  const auto read = Object().Read();
  if (!read.ok()) return;
  if (read->manifest.epoch != epoch_) return Stop();
  manifest_ = read->manifest;
}

uint64_t Owner::SegmentOf(uint64_t position) const {
  if (position <= restored_position_) return 0;
  uint64_t number = 1;
  while (number < shipped_.size() && shipped_[number - 1].last_position < position) ++number;
  return number;
}

storage::CommitRequest Owner::RequestFor(const Export& exported) {
  const LogStart end{epoch_, log_->stored() + 1};
  const auto oldest = std::find_if(rows_.begin(), rows_.end(), [&](const ModelRow& row) {
    return row.position > exported.state.sealed;
  });
  LogStart from = oldest == rows_.end() || oldest->segment.first == 0 ? end : oldest->segment;
  if (from.epoch == epoch_) from.first = std::min(from.first, end.first);
  const bool unchecked = world_.planted() == Planted::kStateNotStored;
  return {.replay_from = from,
          .stored_through = unchecked ? 0 : SegmentOf(exported.newest),
          .sealed = sealed_logs_,
          .change = [exported](Manifest* manifest) {
            manifest->state = {exported.state_file};
            return ChangeDays(exported, manifest);
          }};
}

// What a commit would make garbage, told by a mistake before it is known to have succeeded.
std::vector<std::string> Owner::Covered(const storage::CommitRequest& request) const {
  std::vector<std::string> keys;
  for (const LogStart& log : manifest_.logs) {
    const auto ended = std::find_if(sealed_logs_.begin(), sealed_logs_.end(),
                                    [&](const auto& l) { return l.epoch == log.epoch; });
    uint64_t end = ended != sealed_logs_.end() ? ended->seal : log.first;
    if (log.epoch == request.replay_from.epoch) end = request.replay_from.first;
    if (log.epoch > request.replay_from.epoch) continue;
    for (uint64_t n = log.first; n < end; ++n) {
      keys.push_back(storage::SegmentKey(kShard, log.epoch, n));
    }
  }
  return keys;
}

void Owner::Commit() {
  if (log_ == nullptr) return;
  Export exported;
  const bool swapped = world_.planted() == Planted::kBlocksBeforeState;
  const bool uploaded = swapped ? CutBlock(&exported) && ExportState(&exported)
                                : ExportState(&exported) && CutBlock(&exported);
  if (!uploaded || !CloseDay(&exported)) return;
  if (world_.planted() != Planted::kStateNotStored) {
    while (stored_position_ < exported.newest) {
      if (log_->fenced()) return Stop();
      world_.Pause();
    }
  }
  const storage::CommitRequest request = RequestFor(exported);
  const std::vector<std::string> covered = Covered(request);
  if (world_.planted() == Planted::kTrimFirst) storage::DeleteObjects(*this, covered);
  const auto committed = storage::CommitManifest(Object(), *log_, request);
  if (absl::IsAborted(committed.status())) return Stop();
  if (world_.planted() == Planted::kTrimUnknown && !committed.ok()) {
    garbage_.insert(garbage_.end(), covered.begin(), covered.end());
  }
  if (!committed.ok()) return Refresh();
  AddGarbage(*committed);
  Committed(exported);
}

void Owner::AddGarbage(const storage::Committed& committed) {
  const std::set<std::string> named_before = storage::FilesOf(manifest_);
  manifest_ = committed.written.manifest;
  garbage_.insert(garbage_.end(), committed.garbage.begin(), committed.garbage.end());
  if (world_.planted() == Planted::kListsNotRead) {
    const std::set<std::string> named = storage::FilesOf(manifest_);
    for (const std::string& key : named_before) {
      if (!named.contains(key)) garbage_.push_back(key);
    }
  }
  if (world_.planted() == Planted::kSealCollected) {
    for (const storage::SealedLog& log : sealed_logs_) {
      const bool gone = std::none_of(manifest_.logs.begin(), manifest_.logs.end(),
                                     [&](const LogStart& l) { return l.epoch == log.epoch; });
      if (gone) garbage_.push_back(storage::SegmentKey(kShard, log.epoch, log.seal));
    }
  }
}

void Owner::Committed(const Export& exported) {
  ++world_.result().commits;
  sealed_ = exported.state.sealed;
  std::erase_if(rows_, [&](const ModelRow& row) {
    return row.position <= sealed_ && row.segment.first != 0;
  });
}

void Owner::CollectGarbage() {
  for (;;) {
    world_.PauseIdle();
    if (!garbage_.empty() && world_.Chance(0.5)) {
      const std::vector<std::string> keys = std::exchange(garbage_, {});
      world_.result().deleted += storage::DeleteObjects(*this, keys);
    }
    if (!world_.Chance(0.1)) continue;
    Manifest current = manifest_;
    if (world_.planted() == Planted::kOwnOrphansCollected) ++current.epoch;
    const auto orphans = storage::FindOrphans(*this, current, {}, BeforeRetry());
    if (orphans.ok()) world_.result().deleted += storage::DeleteObjects(*this, *orphans);
  }
}

// --- The way to the bucket, with the mistakes that are made there ---

BucketAnswer Owner::Ask(BucketRequest request) {
  using Kind = BucketRequest::Kind;
  const Planted planted = world_.planted();
  if (planted == Planted::kManifestUnconditional && request.kind == Kind::kPutIf) {
    request.kind = Kind::kPut;
  }
  if (planted == Planted::kNone || !IsSegmentKey(request.key)) {
    return world_.Ask(this, std::move(request));
  }
  if (sealing_) return AskWhileSealing(std::move(request));
  if (log_ != nullptr) return AskForSegment(std::move(request));
  return world_.Ask(this, std::move(request));
}

BucketAnswer Owner::AskWhileSealing(BucketRequest request) {
  using Kind = BucketRequest::Kind;
  if (world_.planted() == Planted::kNoSeal && request.kind == Kind::kPutNew) return {.tag = "none"};
  const auto name = storage::ParseObjectKey(request.key);
  const auto slot = slots_.find(name->epoch);
  const auto first = std::find_if(manifest_.logs.begin(), manifest_.logs.end(),
                                  [&](const LogStart& l) { return l.epoch == name->epoch; });
  // The older owner has trimmed beyond the slot since: the seal lands below, and stops nobody.
  if (request.kind == Kind::kGet && slot != slots_.end() && first != manifest_.logs.end() &&
      slot->second < first->first && name->number == first->first) {
    const storage::LogPlace place{kShard, name->epoch, slot->second};
    BucketAnswer answer =
        world_.Ask(this, {.kind = Kind::kPutNew,
                          .key = storage::SegmentKey(kShard, place.epoch, place.number),
                          .body = storage::EncodeSeal({.place = place, .sealed_by = epoch_})});
    if (answer.status.ok()) {
      const storage::LogPlace here{kShard, name->epoch, name->number};
      return {.body = storage::EncodeSeal({.place = here, .sealed_by = epoch_})};
    }
  }
  return world_.Ask(this, std::move(request));
}

BucketAnswer Owner::AskForSegment(BucketRequest request) {
  using Kind = BucketRequest::Kind;
  const Planted planted = world_.planted();
  const std::string key = request.key;
  if (request.kind == Kind::kGet && !first_bodies_.contains(key)) {
    return world_.Ask(this, std::move(request));
  }
  if (request.kind == Kind::kGet) {
    BucketAnswer answer = world_.Ask(this, std::move(request));
    if (planted == Planted::kRereadTakesAny && answer.status.ok()) answer.body = first_bodies_[key];
    if (planted == Planted::kRetryOtherContent && answer.status.ok() &&
        storage::LooksLikeSegment(answer.body)) {
      answer.body = first_bodies_[key];
    }
    return answer;
  }
  if (request.kind != Kind::kPutNew) return world_.Ask(this, std::move(request));
  first_bodies_[key] = request.body;
  const auto name = storage::ParseObjectKey(key);
  if (planted == Planted::kRetryOtherContent && ++tries_[key] > 1) {
    // Rows that have come meanwhile go along.
    auto object = storage::DecodeLogObject(request.body, {kShard, name->epoch, name->number});
    auto& segment = std::get<storage::Segment>(*object);
    for (ModelRow& row : rows_) {
      if (row.segment.first != 0 || name->number != shipped_.size()) continue;
      segment.records.push_back(EncodeRow(row));
      row.segment = {epoch_, name->number};
      shipped_.back() = {row.position, taken_in_};
    }
    request.body = storage::EncodeSegment(segment);
  }
  BucketAnswer answer = world_.Ask(this, std::move(request));
  if (planted == Planted::kExistsIsSuccess && absl::IsAlreadyExists(answer.status)) return {};
  if (planted == Planted::kAckOutOfOrder && answer.status.ok()) {
    AcknowledgeShipped(shipped_[name->number - 1].watermarks);
  }
  if (planted == Planted::kLostIsFailed && absl::IsUnavailable(answer.status)) {
    for (ModelRow& row : rows_) {
      if (row.segment != LogStart{epoch_, name->number}) continue;
      row.position = next_position_++;
      row.segment = {};
    }
    std::sort(rows_.begin(), rows_.end(),
              [](const ModelRow& a, const ModelRow& b) { return a.position < b.position; });
    return {};
  }
  return answer;
}

}  // namespace tacho::cluster
