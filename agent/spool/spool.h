// Keeps what the agent has seen and the collector does not have on disk yet. It is on this
// machine's disk, so that rows survive an outage of the collector, of the network, and of the agent
// itself.
//
// Sequence == position in the journal. Each entry is a serialized v1.ClientMessage that carries its
// own sequence: a Batch, Event, Attributes or Gap. Beside the entries are notes:
//
//   layout/<n>        a serialized v1.Layout; what `layout: <n>` of a spooled Batch refers to
//   checkpoint/<key>  how far a source has read; written together with the rows, all or nothing;
//                     and how far a collector has acknowledged (agent/stream/acknowledged.h), or
//                     another spool was moved into this one (agent/spool/spool_move.h)
//   dropped/<n>       entry <n> is left out; a Gap further on reports it to the collector
//   spooled/<n>       when the newest entry before <n> was spooled (agent/spool/spool_ages.h)
//
// An entry that is given up is replaced, in its place, by a Gap of its own sequence: any number of
// them leaves no hole at the collector. Only one whose Gap is refused too, or cannot be read, is
// left out.
//
// It may lose nothing when the process dies; when the machine does, what was spooled after
// the last Sync() (the sender calls it within a second), checkpoints included, so that sources
// which read files read that part again. Only synced entries are sent: a sequence that a collector
// has seen is never used again for something else.
//
// One write drops entries past a bound and spools the Gap that reports them, so no crash makes a
// row both delivered and lost, or neither. Memory does not grow with the number of waiting entries,
// but for some hundred KiB (storage/journal/entry_sizes.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agent/sources/rows/source.h"
#include "agent/spool/spool_ages.h"
#include "agent/spool/spool_losses.h"
#include "agent/spool/spool_stats.h"
#include "agent/spool/spooled_message.h"
#include "proto/base/log.h"
#include "storage/journal/spool_journal.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// How large a spooled Batch may become, and the message that defines its layout; one value is
// spooled whatever the limits. A layout past them is cut into several (layout_parts.h).
struct BatchLimits {
  // Below the smallest max_message_bytes that a collector can be configured with, 64 KiB. So what
  // is spooled before a collector has said its limits fits every collector.
  uint64_t max_bytes = 56u << 10;
  uint64_t max_rows = 4096;
  uint64_t max_series = 65'536;  // A layout has at most so many.
};

struct SpoolOptions {
  std::string path;              // Directory; created if missing.
  uint64_t max_bytes = 1 << 30;  // For entries; beyond it the oldest are dropped and counted.
  // Entries that have waited for longer are dropped and counted, up to a 64th later. Zero: no such
  // bound.
  absl::Duration max_age = absl::ZeroDuration();
  // Sources whose files keep what they read. While the spool is more than half full their rows are
  // refused with UNAVAILABLE, so that years of old files never drive out what is recorded now.
  std::set<std::string> patient_sources;
  std::function<absl::Time()> now = absl::Now;
  log::Log log;
  rocksdb::Env* env = nullptr;  // Not owned; must outlive the spool. nullptr: the real one.
  absl::Duration reopen_interval = absl::Seconds(1);  // After the disk refused.
};

// UNAVAILABLE if the checkpoint is of a patient source and spools with so many bytes are more than
// half full.
absl::Status CheckPatience(const SpoolOptions& options, uint64_t bytes,
                           const RowSink::Checkpoint& checkpoint);

// Thread-safe: sources append from the sampling thread, the sender reads and trims from its own.
class Spool : public RowSink {
 public:
  // A damaged directory is moved aside, as <path>.damaged-<time>, and a new generation begins; of
  // those only the newest is kept.
  //   FAILED_PRECONDITION  the directory has another format version.
  //   UNAVAILABLE          the disk refused, or another process has the directory open.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(SpoolOptions options);

  // RowSink. A layout that is too wide for a message, and its rows, are spooled in parts: each has
  // some of the columns and all of the times. Every Append may also fail with
  //   INVALID_ARGUMENT  the arguments do not fit the layout, or there is no such layout.
  absl::StatusOr<uint32_t> DefineLayout(const v1::Layout& layout) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AppendRows(uint32_t layout, std::span<const int64_t> times_unix_ns,
                          std::span<const int64_t> steps, std::span<const double> values,
                          const Checkpoint& checkpoint) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AppendEvent(const v1::Event& event, const Checkpoint& checkpoint) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AppendAttributes(const v1::Attributes& attributes,
                                const Checkpoint& checkpoint) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WriteCheckpoint(const Checkpoint& checkpoint) override ABSL_LOCKS_EXCLUDED(mutex_);
  std::string ReadCheckpoint(absl::string_view key) const override ABSL_LOCKS_EXCLUDED(mutex_);

  // --- For the sender ------------------------------------------------------------------------

  uint64_t generation() const { return journal_->generation(); }
  // Oldest sequence kept, or the next one if there is none.
  uint64_t begin() const { return journal_->begin(); }
  uint64_t end() const { return journal_->end(); }
  // Everything below it may be sent.
  uint64_t synced_end() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Sync() ABSL_LOCKS_EXCLUDED(mutex_);

  // Called after every append, on the appending thread, without a lock held.
  void SetListener(std::function<void()> appended) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Entry {
    uint64_t sequence = 0;
    SpooledMessage message;
  };
  // Synced entries from `sequence` on, at most `max_bytes` of them but at least one if there is
  // one. In the place of entries given up are their Gaps; one that is damaged on disk is given up
  // here.
  //   DATA_LOSS    so many are damaged that the whole spool counts as damaged; open it again.
  //   UNAVAILABLE  the disk refused; try again.
  absl::StatusOr<std::vector<Entry>> Read(uint64_t sequence, uint64_t max_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // NOT_FOUND if no entry can refer to it.
  absl::StatusOr<v1::Layout> FindLayout(uint32_t layout) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets everything before `sequence`: the collector has it on disk.
  absl::Status Trim(uint64_t sequence) ABSL_LOCKS_EXCLUDED(mutex_);
  // The messages that the collector has on disk besides what may be trimmed, ascending: should room
  // be needed, they go without being counted as lost. Until the next call.
  void SetDurableAhead(std::vector<v1::SequenceRange> ranges) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives one entry up: from now on a Gap with the reason is read in its place. If it is such a
  // Gap, it is left out instead, and one with a sequence of its own is spooled.
  absl::Status Drop(uint64_t sequence, uint64_t rows, absl::string_view reason)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What an entry is of; empty if it is of no job, or its layout cannot be read.
  v1::Source SourceOf(const SpooledMessage& message) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The limits of the collector; only lowers what later batches and their layouts may be.
  void LimitBatches(const BatchLimits& limits) ABSL_LOCKS_EXCLUDED(mutex_);

  SpoolStats Stats() const ABSL_LOCKS_EXCLUDED(mutex_);

  // --- For the spools of a cluster (agent/spool/sharded_spool.h) ------------------------------

  uint64_t bytes() const { return journal_->bytes(); }
  // Drops the oldest messages if there are more bytes, as past SpoolOptions::max_bytes.
  void ShrinkTo(uint64_t max_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Spools a Gap on rows of another spool. Fails as AppendEvent().
  absl::Status AppendLoss(uint64_t rows, absl::string_view reason, const Checkpoint& checkpoint)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Checkpoint> Checkpoints() const ABSL_LOCKS_EXCLUDED(mutex_);
  // What was appended until now does not count in Stats(): it came from another spool.
  void CountFromHere() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct LayoutState {
    // The key in layouts_by_content_; null if only parts of it were ever spooled.
    const std::string* content = nullptr;
    // The layouts under which its rows are spooled, in the order of its columns. Empty: its own.
    std::vector<uint32_t> parts;
    std::string job;
    uint64_t width = 0;
    bool has_steps = false;
    bool noted = false;    // It is on disk.
    bool defined = false;  // A source has asked for it since Open().
  };

  // Row by row, as AppendRows() has them.
  struct Rows {
    std::span<const int64_t> times;
    std::span<const int64_t> steps;
    std::span<const double> values;
  };

  Spool(SpoolOptions options, std::unique_ptr<storage::SpoolJournal> journal);

  absl::Status Load() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns `id`.
  uint32_t AddLayout(uint32_t id, std::string content, const v1::Layout& layout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The layout must have no id.
  uint32_t DefineOne(const v1::Layout& layout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<uint32_t> DefineParts(const v1::Layout& layout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The layouts under which rows of `layout` are spooled: all fit the limits that hold now.
  std::vector<uint32_t> PartsOf(uint32_t layout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CutIfTooWide(uint32_t layout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Appends the messages with the checkpoint and `notes`, then makes room if they went past the
  // bound.
  absl::Status Append(std::span<v1::ClientMessage> messages, const Checkpoint& checkpoint,
                      std::vector<storage::SpoolJournal::Note> notes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the messages their sequences and appends them with `notes`; everything before `trim_to`
  // goes in the same write.
  absl::Status AppendMessages(std::span<v1::ClientMessage> messages,
                              std::vector<storage::SpoolJournal::Note> notes, uint64_t trim_to = 0)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // UNAVAILABLE if the disk is nearly full: what waits must still be read and trimmed.
  absl::Status CheckDisk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Rows that the disk refused and no source spools again; once the disk takes writes, a Gap.
  void CountRefusedRows(uint64_t rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellRefusedRows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AppendOne(v1::ClientMessage message, const Checkpoint& checkpoint)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // INVALID_ARGUMENT as AppendRows().
  absl::Status CheckRows(uint32_t layout, const Rows& rows) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<v1::ClientMessage> Split(std::span<const uint32_t> parts, const Rows& rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops what is past the bounds. Should the disk refuse, the next append tries again.
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropPast(uint64_t max_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops entries from the oldest on, those before `end` and of `bytes` bytes or a little more.
  void DropOldest(uint64_t end, uint64_t bytes, SpoolLoss loss)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The entries that one write drops: those before `kept`, which `gap` reports.
  struct Dropping {
    uint64_t kept = 0;
    SpoolLoss loss = SpoolLoss::kBytes;
    SpoolLosses losses;
    v1::Gap gap;
  };
  void CountDrop(const Dropping& drop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts the drop that the disk refused, if it was made after all. Only while the journal is
  // open.
  void SettleDrop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads entries from the oldest on into `losses`; returns the first that is to stay.
  uint64_t AddUpOldest(uint64_t end, uint64_t bytes, SpoolLosses* losses)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether dropping the entry loses nothing that was not lost or stored before.
  bool IsSettled(uint64_t sequence) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets what was kept of entries that are gone.
  absl::Status AfterTrim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts a Gap in the entry's place, and returns it.
  absl::StatusOr<SpooledMessage> StandIn(uint64_t sequence, uint64_t rows, SpoolLoss loss,
                                         absl::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // It is not read any more; a Gap at the end of the spool says so.
  absl::Status LeaveOut(uint64_t sequence, uint64_t rows, absl::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status GiveUpDamaged(uint64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetOldLayouts(std::vector<storage::SpoolJournal::Note>* obsolete)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellListener() ABSL_LOCKS_EXCLUDED(mutex_);

  const SpoolOptions options_;
  const std::unique_ptr<storage::SpoolJournal> journal_;

  mutable absl::Mutex mutex_;  // Taken before the journal's.
  std::shared_ptr<const std::function<void()>> listener_ ABSL_GUARDED_BY(mutex_);
  uint64_t synced_end_ ABSL_GUARDED_BY(mutex_) = 1;
  BatchLimits limits_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, uint32_t> layouts_by_content_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, LayoutState> layouts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::vector<uint32_t>, uint32_t> wide_by_parts_ ABSL_GUARDED_BY(mutex_);
  uint32_t next_layout_ ABSL_GUARDED_BY(mutex_) = 1;
  // Entries below it may refer to layouts of an earlier run; none from it on do.
  uint64_t old_layouts_end_ ABSL_GUARDED_BY(mutex_) = 1;
  bool old_layouts_forgotten_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::string, std::less<>> checkpoints_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> left_out_ ABSL_GUARDED_BY(mutex_);
  LossReport losses_ ABSL_GUARDED_BY(mutex_);
  SpoolAges ages_ ABSL_GUARDED_BY(mutex_);
  uint64_t unchecked_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Appended since the disk was looked at.
  uint64_t trimmed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;    // Since room was given back.
  // Entries before it that are too old are only Gaps, which stay.
  uint64_t only_gaps_before_ ABSL_GUARDED_BY(mutex_) = 1;
  // Entries before it may have been sent.
  uint64_t read_end_ ABSL_GUARDED_BY(mutex_) = 1;
  // The Gap that last reported dropped entries. While it has not been read, it grows instead of
  // being followed by another. Its sequence is 0: there is none.
  v1::Gap dropped_gap_ ABSL_GUARDED_BY(mutex_);
  std::optional<Dropping> unsure_drop_ ABSL_GUARDED_BY(mutex_);  // The disk refused its write.
  uint64_t rows_refused_ ABSL_GUARDED_BY(mutex_) = 0;  // By the disk, and not in a Gap yet.
  std::vector<v1::SequenceRange> durable_ahead_ ABSL_GUARDED_BY(mutex_);
  uint64_t damaged_entries_ ABSL_GUARDED_BY(mutex_) = 0;
  SpoolStats stats_ ABSL_GUARDED_BY(mutex_);  // Only what is counted.
};

}  // namespace tacho::agent
