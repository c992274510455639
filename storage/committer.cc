// One thread takes all that waits, stages it into one write, syncs that write, brings it into
// memory and only then calls back. A group is staged without a lock: what is a repeat is decided on
// copies of the agents' sequences, which become those of the committer when the disk has them.
#include "storage/committer.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/base/timed_wait.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

// Memory of a write that is kept for the next one: what a collector at full speed commits at once.
constexpr size_t kMaxKeptWrite = size_t{16} << 20;
// Room for what a write holds besides entries: a key a request, and origins.
constexpr size_t kWriteOverhead = size_t{64} << 10;

// An agent sends two lanes at most, so its durable sequences have few holes: ours leave 32
// (agent/stream/lanes.h). Without a bound an agent could make the set, and every write of it, as
// large as it likes.
constexpr size_t kMaxAheadRanges = 1024;

// How often trouble is looked for that RocksDB has in the background.
constexpr absl::Duration kLook = absl::Seconds(1);

// Whether the request would make one more range of a set that has as many as it may.
bool MakesTooManyRanges(const Committer::Request& request, const SequenceSet& set) {
  if (set.ahead().size() < kMaxAheadRanges) return false;
  if (!set.Contains(request.origin.sequence - 1)) return true;
  return request.lost.first != 0 && !set.Contains(request.lost.first - 1);
}

}  // namespace

Committer::Committer(Parts parts, uint64_t queue_bytes, absl::Duration spacing)
    : parts_(std::move(parts)), max_queue_bytes_(queue_bytes), spacing_(spacing) {}

Committer::~Committer() { Stop(); }

absl::Status Committer::Recover() {
  absl::MutexLock lock(&mutex_);
  TACHO_ASSIGN_OR_RETURN(count_, ReadCommitCount(parts_.db, parts_.state));
  const std::unique_ptr<rocksdb::Iterator> it(
      parts_.db->NewIterator(rocksdb::ReadOptions(), parts_.state));
  for (it->Seek("O"); it->Valid() && it->key().starts_with("O"); it->Next()) {
    auto record = OriginRecord::Decode(View(it->value()));
    if (!record) {
      return absl::DataLossError("the durable sequences under " + it->key().ToString(true) +
                                 " are damaged");
    }
    if (!record->heard_day) record->heard_day = Today();
    if (parts_.hold) shared_[it->key().ToString()] = record->durable;
    origins_[it->key().ToString()] = *std::move(record);
  }
  return FromRocksDb(it->status(), "read the durable sequences");
}

void Committer::Start() {
  TACHO_CHECK(!thread_.joinable());
  // Before anybody can append: a database that was opened on a full disk takes nothing.
  if (!parts_.disk->trouble().ok()) {
    Refuse(parts_.disk->trouble());
  } else if (!parts_.disk->ballast()->Make()) {
    WaitForRoom();
  }
  thread_ = std::thread(&Committer::Run, this);
}

void Committer::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Committer::Enqueue(Request request) {
  TACHO_CHECK(request.done != nullptr);
  TACHO_CHECK((request.layout == nullptr) == request.entry.empty());
  absl::Status refusal;
  {
    absl::MutexLock lock(&mutex_);
    if (!fence_.ok() && !request.upkeep) {
      refusal = fence_;
    } else if (!refusal_.ok() && !(request.upkeep && upkeep_goes_on_)) {
      refusal = refusal_;
    } else if (stopping_) {
      refusal = absl::UnavailableError("the store is closing");
    } else if (!request.upkeep && queued_bytes_ > 0 &&
               queued_bytes_ + request.weight() > max_queue_bytes_) {
      refusal = absl::ResourceExhaustedError("the disk is behind: the journal's queue is full");
    } else {
      request.queued = request.weight();
      queued_bytes_ += request.queued;
      ++queued_messages_;
      queue_.push_back(std::move(request));
      return;
    }
  }
  request.done(refusal);
}

bool Committer::Take(absl::Duration pause, std::vector<Request>* group) {
  absl::MutexLock lock(&mutex_);
  const auto pressing = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || queued_bytes_ > max_queue_bytes_ / 2;
  };
  const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !queue_.empty() || stopping_;
  };
  AwaitFor(&mutex_, absl::Condition(&pressing), pause);
  AwaitFor(&mutex_, absl::Condition(&due), kLook);
  group->swap(queue_);
  return !group->empty() || !stopping_;
}

void Committer::Run() {
  pthread_setname_np(pthread_self(), "committer");
  std::vector<Request> group;
  absl::Time begun = absl::InfinitePast();
  if (!refusal().ok()) Tell(DiskState::kRefusing);
  LookAtDisk();
  while (Take(begun + spacing_ - MonotonicNow(), &group)) {
    uint64_t weight = 0;
    for (const Request& request : group) weight += request.weight();
    const size_t messages = group.size();
    if (!group.empty()) {
      parts_.before_commit();
      begun = MonotonicNow();
      if (parts_.disk->ballast()->IsRoomLow(weight)) FindNoRoom();
      if (!refusal().ok()) RefuseRows(&group);
      if (!group.empty()) Commit(&group);
    }
    group.clear();
    {
      absl::MutexLock lock(&mutex_);
      TACHO_CHECK(queued_bytes_ >= weight && queued_messages_ >= messages);
      queued_bytes_ -= weight;
      queued_messages_ -= messages;
    }
    LookAtDisk();
    parts_.mark->SyncIfDue(MonotonicNow());
  }
  parts_.mark->Sync();
}

uint32_t Committer::Today() const {
  return static_cast<uint32_t>(std::max<int64_t>(0, DayOf(absl::ToUnixNanos(parts_.now()))));
}

SequenceSet* Committer::FindSet(const std::string& key, Staged* staged) {
  const auto [found, added] = staged->origins.try_emplace(key);
  if (added) {
    absl::MutexLock lock(&mutex_);
    if (const auto known = origins_.find(key); known != origins_.end()) {
      found->second = known->second;
    }
    found->second.heard_day = Today();
  }
  return &found->second.durable;
}

absl::Status Committer::UseJob(const Layout& layout) {
  TACHO_CHECK(!layout.series.empty());
  const JobId job = layout.series.front()->job_id;
  absl::Status status = parts_.index->Use(job);
  if (absl::IsNotFound(status)) {
    return absl::FailedPreconditionError("the layout's job has expired: define the layout again");
  }
  if (status.ok()) status = parts_.jobs->Use(job);
  return status;
}

Committer::Staged Committer::Stage(const std::vector<Request>& group, rocksdb::WriteBatch* write) {
  Staged staged;
  staged.positions.resize(group.size(), 0);
  staged.results.resize(group.size());
  staged.stored.resize(group.size(), false);
  for (size_t i = 0; i < group.size(); ++i) {
    const Request& request = group[i];
    SequenceSet* set = nullptr;
    std::string key;
    if (request.origin.sequence != 0 || request.lost.first != 0) {
      key = OriginKey(request.origin.agent_id, request.origin.generation);
      set = FindSet(key, &staged);
    }
    if (request.origin.sequence != 0) {
      if (set->Contains(request.origin.sequence)) {
        ++staged.repeats;
        continue;
      }
      if (MakesTooManyRanges(request, *set)) {
        staged.results[i] = absl::InvalidArgumentError(
            absl::StrCat("sequence ", request.origin.sequence, ": more than ", kMaxAheadRanges,
                         " holes in this agent's sequences; send them in order within a lane"));
        continue;
      }
    }
    if (request.layout != nullptr) {
      staged.results[i] = UseJob(*request.layout);
      if (!staged.results[i].ok()) continue;
      staged.positions[i] = parts_.journal->Stage(request.entry, write);
    } else if (request.stage != nullptr) {
      staged.results[i] = request.stage(write);
      if (!staged.results[i].ok()) continue;
    }
    staged.stored[i] = true;
    if (set != nullptr) {
      if (request.lost.first != 0) set->Add(request.lost);
      if (request.origin.sequence != 0) set->Add(request.origin.sequence);
      staged.changed.insert(std::move(key));
    }
  }
  for (const auto& [key, origin] : staged.origins) {
    if (staged.changed.contains(key)) write->Put(parts_.state, key, origin.Encode());
  }
  staged.anything = write->Count() > 0;
  if (staged.anything) {
    staged.count = CountWith(group, staged);
    write->Put(parts_.state, CommitCountKey(), staged.count.Encode());
  }
  TACHO_CHECK(staged.anything || staged.changed.empty());
  return staged;
}

CommitCount Committer::CountWith(const std::vector<Request>& group, const Staged& staged) const {
  CommitCount count = count_;
  ++count.commits;
  count.time_ns = absl::ToUnixNanos(parts_.now());
  for (size_t i = 0; i < group.size(); ++i) {
    if (!staged.stored[i] || group[i].upkeep) continue;
    ++count.messages;
    count.rows += group[i].rows;
  }
  return count;
}

void Committer::Apply(const std::vector<Request>& group, const Staged& staged) {
  const absl::Time now = parts_.now();
  uint64_t rows = 0;
  uint64_t samples = 0;
  uint64_t batches = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    if (staged.stored[i] && group[i].event != nullptr) {
      const auto job = parts_.index->FindJob(group[i].event->source.job);
      if (job.has_value()) parts_.jobs->NoteEvent(*job);
    }
    if (staged.positions[i] == 0) continue;
    const auto entry = DecodeRowsEntry(group[i].entry);
    TACHO_CHECK(entry.has_value());  // EncodeRowsEntry() made it.
    parts_.head->Append(group[i].layout, *entry, staged.positions[i], now);
    parts_.jobs->Include(*group[i].layout, *entry);
    rows += entry->rows;
    samples += CountValues(entry->values.data(), entry->rows * entry->columns);
    ++batches;
  }
  parts_.after_append();
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, origin] : staged.origins) origins_[key] = origin;
  stats_.rows_appended += rows;
  stats_.samples_appended += samples;
  stats_.batches_appended += batches;
  stats_.batches_repeated += staged.repeats;
  stats_.journal_entries = parts_.journal->end() - parts_.journal->begin();
  stats_.journal_bytes = parts_.journal->bytes();
}

void Committer::Publish(const Staged& staged, std::vector<Request>* group) {
  if (!parts_.feed->has_subscribers()) return;
  for (size_t i = 0; i < group->size(); ++i) {
    if (!staged.stored[i]) continue;
    Request& request = (*group)[i];
    if (request.layout != nullptr) parts_.feed->AddRows(request.layout, std::move(request.entry));
    if (request.event != nullptr) parts_.feed->AddEvent(request.event);
  }
}

rocksdb::WriteBatch* Committer::EmptyWrite(const std::vector<Request>& group) {
  size_t expected = kWriteOverhead;
  for (const Request& request : group) expected += request.weight();
  const size_t kept = write_ == nullptr ? 0 : write_->Data().capacity();
  // Made as large as it will be, and as a somewhat larger one will: growing would copy it over and
  // over, and each new one is of fresh pages.
  if (kept < expected || kept > kMaxKeptWrite) {
    write_ = std::make_unique<rocksdb::WriteBatch>(std::bit_ceil(expected));
  }
  write_->Clear();  // Its memory stays: fresh pages cost as much as filling them.
  return write_.get();
}

void Committer::Commit(std::vector<Request>* group) {
  rocksdb::WriteBatch* const write = EmptyWrite(*group);
  const Staged staged = Stage(*group, write);
  absl::Status written;
  {
    absl::MutexLock lock(&commit_);
    if (staged.anything) {
      Reach(parts_.at_point, crash_point::kCommitStaged);
      const absl::Time begin = MonotonicNow();
      const rocksdb::Status status = Write(write);
      written = status.ok() ? absl::OkStatus() : RefuseAfter(status);
      if (written.ok()) CountCommit(MonotonicNow() - begin);
    }
    if (written.ok()) {
      if (staged.anything) {
        count_ = staged.count;
        parts_.mark->Write(count_);
      }
      Reach(parts_.at_point, crash_point::kCommitWritten);
      parts_.jobs->KeepMerged();
      Apply(*group, staged);
      Publish(staged, group);
    }
  }
  if (!written.ok()) {
    for (const Request& request : *group) request.done(written);
    return;
  }
  Reach(parts_.at_point, crash_point::kCommitApplied);
  if (parts_.hold) {
    Hold(group, staged);
  } else {
    for (size_t i = 0; i < group->size(); ++i) (*group)[i].done(staged.results[i]);
  }
  parts_.feed->Announce();
}

rocksdb::Status Committer::Write(rocksdb::WriteBatch* write) {
  absl::MutexLock turn(parts_.disk->log_mutex());
  if (parts_.disk->blocks_writes()) {
    return rocksdb::Status::NoSpace(std::string(parts_.disk->trouble().message()));
  }
  // Before the rows that need it. On this thread nothing waits behind another synced write.
  rocksdb::Status status = parts_.index->WriteRegistered();
  if (!status.ok()) return status;
  parts_.disk->KeepResumable(parts_.db);
  rocksdb::WriteOptions synced;
  synced.sync = true;
  return parts_.db->Write(synced, write);
}

void Committer::CountCommit(absl::Duration took) {
  const auto us = static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Microseconds(took)));
  absl::MutexLock lock(&mutex_);
  ++stats_.commits;
  stats_.commit_seconds += absl::ToDoubleSeconds(took);
  const size_t last = std::size(stats_.commit_latency_us_buckets) - 1;
  ++stats_.commit_latency_us_buckets[std::min<size_t>(last, std::bit_width(us))];
}

SequenceSet Committer::DurableSequences(absl::string_view agent_id, uint64_t generation) const {
  absl::MutexLock lock(&mutex_);
  const auto found = origins_.find(OriginKey(agent_id, generation));
  if (found == origins_.end()) return SequenceSet();
  found->second.heard_day = Today();
  if (!parts_.hold) return found->second.durable;
  const auto shared = shared_.find(found->first);
  return shared == shared_.end() ? SequenceSet() : shared->second;
}

void Committer::ForgetAgents(uint32_t before_day, rocksdb::WriteBatch* write) {
  absl::MutexLock lock(&mutex_);
  for (auto it = origins_.begin(); it != origins_.end();) {
    const auto origin = it++;
    if (origin->second.heard_day >= before_day) continue;
    write->Delete(parts_.state, origin->first);
    shared_.erase(origin->first);
    origins_.erase(origin);
  }
}

void Committer::FillStats(StoreStats* stats) const {
  absl::MutexLock lock(&mutex_);
  *stats = stats_;
  stats->queued_bytes = queued_bytes_;
  stats->queued_messages = queued_messages_;
}

}  // namespace tacho::storage
