// Joins the parts of a store, and keeps what waits for sealing within bounds. There are two: past
// the first, commits wait for the sealer; past the second, rows are refused, so that memory stays
// bounded even if sealing makes no progress.
#include "storage/engine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace tacho::storage {
namespace {

// How long a commit waits for sealing that makes no progress.
constexpr absl::Duration kPatience = absl::Seconds(2);

}  // namespace

Engine::Engine(StoreOptions store_options, std::unique_ptr<Database> opened,
               std::optional<SharedOpening> shared)
    : options(std::move(store_options)),
      database(std::move(opened)),
      opening(std::move(shared)),
      opened_at(database->db->GetLatestSequenceNumber()),
      columns(options.column_cache_bytes),
      journal(database->db.get(), database->journal),
      index(database->db.get(), database->index,
            {.limits = options.limits == nullptr ? LimitPolicy::Default() : options.limits,
             .now = options.now,
             .disk = database->disk.get()}),
      jobs(database->db.get(), database->state),
      kept(database->db.get(), database->disk.get()),
      owners(database->db.get(), database->state),
      mark(options.env, options.path, [this](absl::string_view line) { Log(line); }),
      committer({.db = database->db.get(),
                 .state = database->state,
                 .events = database->events,
                 .journal = &journal,
                 .index = &index,
                 .head = &head,
                 .jobs = &jobs,
                 .feed = &feed,
                 .mark = &mark,
                 .now = options.now,
                 .before_commit = [this] { AwaitRoom(); },
                 .after_append = [this] { NoteAppended(); },
                 .disk = database->disk.get(),
                 .on_disk = options.on_disk,
                 .before_resuming = [this]() -> absl::Status {
                   TACHO_RETURN_IF_ERROR(index.WriteKept());
                   return kept.Write(rocksdb::WriteBatch(), "remove what was to be removed");
                 },
                 .at_point = options.at_point,
                 .hold = opening.has_value()},
                options.queue_bytes, options.commit_spacing),
      merger(database.get(), &columns, &index, &head,
             {.seal_rows = options.seal_rows,
              .quiet = options.merge_quiet,
              .now = options.now,
              .log = options.log,
              .at_point = options.at_point,
              .is_whole =
                  [this](int64_t day) { return history == nullptr || history->IsWhole(day); }}),
      sealer(database.get(), &columns, &head, &jobs,
             {.seal_rows = options.seal_rows,
              .seal_age = options.seal_age,
              .open_bytes = options.open_bytes,
              .open_raw_bytes = options.open_raw_bytes,
              .positions_before = [this] { return PositionsToSeal(); },
              .now = options.now,
              .log = options.log,
              .after_round = [this] { AfterSealing(); },
              .on_sealed = [this](const std::vector<FrameRef>& frames) { merger.Add(frames); },
              .at_point = options.at_point}),
      pace(options.retention_days_per_hour, options.monotonic()) {}

void Engine::NoteAppended() {
  journal_begin = journal.begin();
  journal_end = journal.end();
  journal_bytes = journal.bytes();
  if (head.longest() >= options.seal_rows || head.total().bytes() > options.open_bytes ||
      journal_bytes > options.journal_bytes) {
    sealer.Wake();
  }
}

uint64_t Engine::SealedUpTo() const {
  const uint64_t late_rows = late.oldest();  // First, see there.
  return std::min(late_rows, head.SealedUpTo());
}

uint64_t Engine::PositionsToSeal() const {
  const uint64_t bytes = journal_bytes;
  if (bytes <= options.journal_bytes) return 0;
  // Entries are taken to be of one size; if they are not, the next round goes on.
  const double share =
      0.75 * static_cast<double>(options.journal_bytes) / static_cast<double>(bytes);
  const uint64_t begin = journal_begin;
  return begin + 1 + static_cast<uint64_t>((1 - share) * static_cast<double>(journal_end - begin));
}

void Engine::AwaitRoom() {
  if (!options.background) return;
  uint64_t least = UINT64_MAX;
  absl::Time last_progress = MonotonicNow();
  for (;;) {
    const uint64_t open = head.total().bytes();
    if (open <= options.open_bytes / 2 * 3) return;
    if (open < least) {
      least = open;
      last_progress = MonotonicNow();
    } else if (MonotonicNow() - last_progress > kPatience) {
      return;  // Then CheckRoom() refuses what comes.
    }
    sealer.Wake();
    absl::SleepFor(absl::Milliseconds(2));
  }
}

absl::Status Engine::CheckRoom() const {
  if (is_shared() && committer.held_bytes() > 2 * options.shared.max_unshipped_bytes) {
    return absl::ResourceExhaustedError(
        "the bucket does not answer, and too much waits for it (cluster.max_unshipped_bytes)");
  }
  if (head.total().bytes() <= 2 * options.open_bytes &&
      journal_bytes <= 2 * options.journal_bytes) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat("sealing is behind: ", head.total().bytes(),
                                                   " bytes of open rows, ", journal_bytes.load(),
                                                   " bytes of journal"));
}

absl::Status Engine::OnCommitter(std::function<absl::Status(rocksdb::WriteBatch*)> work) {
  absl::Mutex mutex;
  bool finished = false;
  absl::Status result;
  committer.Enqueue(
      {.stage = std::move(work), .upkeep = true, .done = [&](const absl::Status& status) {
         absl::MutexLock lock(&mutex);
         result = status;
         finished = true;
       }});
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&finished));
  return result;
}

}  // namespace tacho::storage
