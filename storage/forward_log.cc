// Reads the journal from a cursor on, and where the journal begins later, the columns first. A
// sweep goes by the records of sealed positions, because they say which layouts have anything new.
// Each layout is read in one snapshot together with its sealed position, so that what the sweep
// hands on of it is exactly what lies up to that position, and the journal's entries up to there
// are passed over later.
#include "storage/forward_log.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/columns/stored_view.h"
#include "storage/db/rocksdb_status.h"
#include "storage/engine.h"

namespace tacho::storage {
namespace {

// Values that one Next() looks at, wanted or not: about a tenth of a second.
constexpr size_t kMaxLookedAt = 1 << 20;

}  // namespace

std::string ForwardCursor::Encode() const {
  std::string bytes;
  for (const uint64_t value : {position, until, uint64_t{job}, layout, column}) {
    PutVarint(value, &bytes);
  }
  PutLe64(static_cast<uint64_t>(complete_ns), &bytes);
  return bytes;
}

std::optional<ForwardCursor> ForwardCursor::Decode(absl::string_view bytes) {
  ByteReader in(bytes);
  ForwardCursor cursor;
  cursor.position = in.Varint();
  cursor.until = in.Varint();
  cursor.job = static_cast<JobId>(in.Varint());
  cursor.layout = in.Varint();
  cursor.column = in.Varint();
  cursor.complete_ns = static_cast<int64_t>(in.Le64());
  if (!in.AtEnd() || cursor.position == 0) return std::nullopt;
  return cursor;
}

// A layout that is being read.
struct ForwardLog::Sweep {
  LayoutPtr layout;
  uint64_t sealed = 0;  // Its sealed position in the view's snapshot.
  // All columns are read in this snapshot. Not if a process before has handed on some of them: they
  // may end at a lower position than the others.
  bool whole = true;
  std::unique_ptr<StoredView> view;
  size_t partition = 0;
  SeriesColumnsPtr columns;  // Of the series and day; null: not looked for yet.
  StoredView::MetBytes met;
  size_t index = 0;  // Among them.
};

ForwardLog::ForwardLog(Engine* engine, absl::string_view name)
    : engine_(engine), key_(ForwardKey(name)) {}

ForwardLog::~ForwardLog() = default;

absl::StatusOr<std::unique_ptr<ForwardLog>> ForwardLog::Open(Store* store, absl::string_view name,
                                                             Start start) {
  std::unique_ptr<ForwardLog> log(new ForwardLog(store->engine_.get(), name));
  const Database& database = *log->engine_->database;
  std::string bytes;
  const rocksdb::Status read =
      database.db->Get(rocksdb::ReadOptions(), database.state, log->key_, &bytes);
  if (read.ok()) {
    const auto cursor = ForwardCursor::Decode(bytes);
    if (!cursor) {
      return absl::DataLossError(absl::StrCat("the cursor of the receiver \"", name,
                                              "\" is damaged; give the receiver a new name"));
    }
    log->at_ = *cursor;
    return log;
  }
  if (!read.IsNotFound()) return FromRocksDb(read, "read the cursor of a receiver");
  if (start == Start::kNow) log->at_.position = std::max<uint64_t>(1, log->engine_->journal_end);
  TACHO_RETURN_IF_ERROR(log->Commit(absl::ToUnixNanos(log->engine_->options.now())));
  return log;
}

uint64_t ForwardLog::end() const { return engine_->journal_end; }

absl::Status ForwardLog::Commit(int64_t complete_ns) {
  at_.complete_ns = complete_ns;
  rocksdb::WriteBatch write;
  write.Put(engine_->database->state, key_, at_.Encode());
  return engine_->database->WriteUnsynced(&write, "write the cursor of a receiver");
}

absl::StatusOr<bool> ForwardLog::Next(size_t max_samples, ForwardSink* sink) {
  const ForwardCursor before = at_;
  const size_t partition = sweep_ == nullptr ? 0 : sweep_->partition;
  const size_t index = sweep_ == nullptr ? 0 : sweep_->index;
  size_t taken = 0;
  absl::Status status;
  while (status.ok() && taken < max_samples) {
    if (at_.until != 0) {
      status = SweepOn(max_samples, sink, &taken);
      // A sweep of what nobody wants ends here now and then, so that it is committed.
      if (at_.until != 0 && taken == 0) break;
      continue;
    }
    bool gap = false;
    status = ReadJournal(max_samples, sink, &taken, &gap);
    // The copy of where the journal begins may be older than what was read: then it is not yet
    // time.
    if (!gap || engine_->journal_begin <= at_.position) break;
    at_.until = engine_->journal_begin;
    at_.job = 0;
    at_.layout = 0;
    at_.column = 0;
  }
  const bool moved =
      taken > 0 || at_ != before ||
      (sweep_ != nullptr && (sweep_->partition != partition || sweep_->index != index));
  if (!status.ok() && !moved) return status;
  return moved;
}

absl::Status ForwardLog::ReadJournal(size_t max_samples, ForwardSink* sink, size_t* taken,
                                     bool* gap) {
  const uint64_t end = engine_->journal_end;
  if (at_.position >= end) return absl::OkStatus();
  size_t looked_at = 0;
  bool any = false;
  const absl::Status read = engine_->journal.Read(
      at_.position, [&](uint64_t position, absl::string_view bytes) -> absl::Status {
        any = true;
        if (position != at_.position) {
          *gap = true;
          return absl::CancelledError();
        }
        if (position >= end) return absl::CancelledError();
        const auto entry = DecodeRowsEntry(bytes);
        if (!entry) {
          return absl::DataLossError(absl::StrCat("journal entry ", position, " is damaged"));
        }
        const auto swept = swept_.find(entry->layout);
        if (swept == swept_.end() || position > swept->second) {
          const auto layout = engine_->index.FindLayout(entry->job, entry->layout);
          if (layout.ok() && (*layout)->series.size() == entry->columns) {
            TakeEntry(*layout, *entry, sink, taken);
          } else if (!layout.ok() && !absl::IsNotFound(layout.status())) {
            return layout.status();
          }  // Else the job has expired.
        }
        ++at_.position;
        looked_at += entry->rows * entry->columns;
        return *taken >= max_samples || looked_at >= kMaxLookedAt ? absl::CancelledError()
                                                                  : absl::OkStatus();
      });
  if (!any && read.ok()) *gap = true;  // Trimmed as a whole.
  if (at_.position > swept_up_to_) swept_.clear();
  return absl::IsCancelled(read) ? absl::OkStatus() : read;
}

void ForwardLog::TakeEntry(const LayoutPtr& layout, const RowsEntry& entry, ForwardSink* sink,
                           size_t* taken) {
  std::vector<int64_t> times(entry.rows);
  for (size_t row = 0; row < entry.rows; ++row) times[row] = entry.Time(row);
  std::vector<double> values(entry.rows);
  for (size_t column = 0; column < entry.columns; ++column) {
    if (!sink->Wants(layout, column)) continue;
    for (size_t row = 0; row < entry.rows; ++row) values[row] = entry.Value(row, column);
    sink->Take(layout, column, times, values);
    *taken += entry.rows;
  }
}

uint64_t ForwardLog::FirstWanted(LayoutId layout) const {
  const auto swept = swept_.find(layout);
  return swept == swept_.end() ? at_.position : std::max(at_.position, swept->second + 1);
}

absl::StatusOr<bool> ForwardLog::OpenLayout() {
  // Commits of the layout's job go on; the snapshot of the view is what counts.
  auto view = std::make_unique<StoredView>(*engine_->database, engine_->elsewhere(),
                                           &engine_->columns, CapturedRows(), ReadAmount::kLittle);
  rocksdb::ReadOptions read;
  read.snapshot = view->snapshot();
  const std::unique_ptr<rocksdb::Iterator> it(
      engine_->database->db->NewIterator(read, engine_->database->state));
  for (it->Seek(SealedKey(at_.job, at_.layout)); it->Valid() && it->key().starts_with("P");
       it->Next()) {
    ByteReader key(View(it->key()));
    ByteReader value(View(it->value()));
    key.Byte();
    const JobId job = key.Be32();
    const LayoutId id = key.Be64();
    const uint64_t sealed = value.Varint();
    if (job != at_.job || id != at_.layout) at_.column = 0;
    at_.job = job;
    at_.layout = id;
    if (sealed < FirstWanted(id)) continue;
    auto layout = engine_->index.FindLayout(job, id);
    if (absl::IsNotFound(layout.status())) continue;  // The job has expired.
    if (!layout.ok()) return layout.status();
    sweep_ = std::make_unique<Sweep>();
    sweep_->layout = *std::move(layout);
    sweep_->sealed = sealed;
    sweep_->whole = at_.column == 0;
    sweep_->view = std::move(view);
    return true;
  }
  TACHO_RETURN_IF_ERROR(FromRocksDb(it->status(), "read sealed positions"));
  return false;
}

absl::Status ForwardLog::SweepOn(size_t max_samples, ForwardSink* sink, size_t* taken) {
  if (sweep_ == nullptr) {
    TACHO_ASSIGN_OR_RETURN(const bool found, OpenLayout());
    if (!found) {
      at_.position = at_.until;
      at_.until = 0;
      return absl::OkStatus();
    }
  }
  TACHO_RETURN_IF_ERROR(TakeColumns(max_samples, sink, taken));
  if (at_.column < sweep_->layout->series.size()) return absl::OkStatus();
  if (sweep_->whole && sweep_->sealed >= at_.until) {
    swept_[at_.layout] = sweep_->sealed;
    swept_up_to_ = std::max(swept_up_to_, sweep_->sealed);
  }
  sweep_ = nullptr;
  ++at_.layout;  // Layouts of a job ascend, and so do jobs.
  at_.column = 0;
  return absl::OkStatus();
}

absl::Status ForwardLog::TakeColumns(size_t max_samples, ForwardSink* sink, size_t* taken) {
  Sweep& sweep = *sweep_;
  const Layout& layout = *sweep.layout;
  const uint64_t first_wanted = FirstWanted(layout.id);
  const ReadOptions once = {.read_once = true};
  size_t looked_at = 0;
  const auto next_day = [&sweep] {
    ++sweep.partition;
    sweep.columns = nullptr;
    sweep.index = 0;
  };
  while (at_.column < layout.series.size() && *taken < max_samples && looked_at < kMaxLookedAt) {
    const Series& series = *layout.series[at_.column];
    if (sweep.partition >= sweep.view->partitions().size() ||
        !sink->Wants(sweep.layout, at_.column)) {
      ++at_.column;
      sweep.partition = 0;
      sweep.columns = nullptr;
      sweep.index = 0;
      ++looked_at;
      continue;
    }
    if (sweep.columns == nullptr) {
      auto columns = sweep.view->FindColumns(sweep.partition, series, once, &sweep.met);
      if (absl::IsDataLoss(columns.status())) {
        ++damaged_columns_;
        next_day();
        continue;
      }
      if (!columns.ok()) return columns.status();
      sweep.columns = *std::move(columns);
    }
    if (sweep.index >= sweep.columns->columns().size()) {
      next_day();
      ++looked_at;
      continue;
    }
    const ColumnInfo& column = sweep.columns->columns()[sweep.index];
    if (column.layout != layout.id || column.position < first_wanted) {
      ++sweep.index;
      continue;
    }
    const auto decoded = sweep.view->FindDecoded(sweep.partition, series, sweep.columns,
                                                 sweep.index, once, sweep.met);
    if (!decoded.ok() && !absl::IsDataLoss(decoded.status())) return decoded.status();
    ++sweep.index;
    if (!decoded.ok()) {
      ++damaged_columns_;
      continue;
    }
    std::vector<int64_t> times;
    std::vector<double> values;
    for (size_t row = 0; row < (*decoded)->values.size(); ++row) {
      if (IsStaleMarker((*decoded)->values[row])) continue;
      times.push_back((*decoded)->times->column.times[row]);
      values.push_back((*decoded)->values[row]);
    }
    sink->Take(sweep.layout, at_.column, times, values);
    *taken += times.size();
    looked_at += times.size();
  }
  return absl::OkStatus();
}

}  // namespace tacho::storage
