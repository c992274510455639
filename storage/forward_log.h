// Everything that is stored, from a durable place on, for a receiver elsewhere: the cursor of
// forwarding.
//
//   journal   entry, entry, entry ...        what was stored lately, as it came
//   columns   layout by layout, series by series, ascending in time
//                                            what the journal had already trimmed
//
// A cursor is a journal position P: rows of entries before it have been forwarded. While the
// journal has P, entries are read from there. Once it is trimmed beyond P, to U, all rows before U
// are sealed, and a sweep hands on the columns that have a row from P on, which their keys say;
// then reading goes on at U. So a receiver may be away for as long as history is kept, and the
// journal is as short as without it.
//
// Every sample comes at least once, and those of a layout in the order in which they came or, from
// columns, in time. Samples come again in two cases only:
//   - after a crash, those since the last Commit(), or since the beginning of the series at which a
//     sweep was, and up to what was sealed while it ran;
//   - those that were sealed into one column with rows from P on: columns do not say which of their
//     rows came first. That is once an absence which outlasts the journal, for each layout about
//     StoreOptions::seal_age, or what was merged with it.
// They have the same times and values, so a receiver that keeps one sample a time is none the
// wiser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/journal/rows_entry.h"
#include "storage/model/series.h"
#include "storage/store.h"

namespace tacho::storage {

// The record of a receiver: the value under ForwardKey().
struct ForwardCursor {
  uint64_t position = 1;  // P.
  // A sweep is at work: up to `until`, which is U, and at this series. 0: none.
  uint64_t until = 0;
  JobId job = 0;
  LayoutId layout = 0;
  uint64_t column = 0;
  // When everything that was stored then had been forwarded; ns since the Unix epoch.
  int64_t complete_ns = 0;

  // varint position · varint until · varint job · varint layout · varint column · le64 complete_ns
  std::string Encode() const;
  static std::optional<ForwardCursor> Decode(absl::string_view bytes);
  friend bool operator==(const ForwardCursor&, const ForwardCursor&) = default;
};

// Who takes what a ForwardLog reads.
class ForwardSink {
 public:
  virtual ~ForwardSink() = default;
  // Whether a series is wanted; asked before it is decoded. The layout has the attempt.
  virtual bool Wants(const LayoutPtr& layout, size_t column) = 0;
  // Samples of a series that is wanted, as they were recorded. From the journal they may be stale
  // markers; in columns these are left out.
  virtual void Take(const LayoutPtr& layout, size_t column, std::span<const int64_t> times,
                    std::span<const double> values) = 0;
};

// One thread at a time. Two of one name must not be at work.
class ForwardLog {
 public:
  enum class Start { kNow, kOldest };

  // Goes on where the receiver of this name was; a new one begins at `start`, which is durable when
  // this returns. The store is not owned and must outlive the log.
  //   DATA_LOSS    the record is damaged.
  //   UNAVAILABLE  the disk refuses.
  static absl::StatusOr<std::unique_ptr<ForwardLog>> Open(Store* store, absl::string_view name,
                                                          Start start);
  ~ForwardLog();

  // Hands on about `max_samples` samples, at most one entry or column more, fewer if many are not
  // wanted. False: there was nothing that had not been handed on. After an error it may be called
  // again; what was handed on before the error counts, and does not come again.
  //   DATA_LOSS    the journal is damaged. Damaged columns are passed over, and counted.
  //   UNAVAILABLE  the disk, or the bucket with old days, does not answer.
  absl::StatusOr<bool> Next(size_t max_samples, ForwardSink* sink);

  // What Next() has handed on is forwarded: the cursor is written, so that it survives a crash of
  // the process. A crash of the machine may take the last seconds of it.
  //   UNAVAILABLE  the disk refuses. Going on is safe; the next call writes again.
  absl::Status Commit(int64_t complete_ns);

  // The cursor that Commit() would write.
  const ForwardCursor& cursor() const { return at_; }
  // The cursor's position once everything is handed on that is stored now.
  uint64_t end() const;
  uint64_t damaged_columns() const { return damaged_columns_; }

 private:
  struct Sweep;

  ForwardLog(Engine* engine, absl::string_view name);

  // *gap: the journal does not have the cursor's entry any more.
  absl::Status ReadJournal(size_t max_samples, ForwardSink* sink, size_t* taken, bool* gap);
  void TakeEntry(const LayoutPtr& layout, const RowsEntry& entry, ForwardSink* sink, size_t* taken);
  // Hands on something of the sweep; ends it if there is nothing left.
  absl::Status SweepOn(size_t max_samples, ForwardSink* sink, size_t* taken);
  // Opens the next layout with rows that are wanted; false if there is none.
  absl::StatusOr<bool> OpenLayout();
  absl::Status TakeColumns(size_t max_samples, ForwardSink* sink, size_t* taken);
  uint64_t FirstWanted(LayoutId layout) const;

  Engine* const engine_;
  const std::string key_;
  ForwardCursor at_;
  std::unique_ptr<Sweep> sweep_;  // The layout at which a sweep is; null: none is open.
  // Layouts whose rows beyond `until` were handed on by a sweep, and up to which position. Small:
  // entries go when the journal's reading has passed them.
  absl::flat_hash_map<LayoutId, uint64_t> swept_;
  uint64_t swept_up_to_ = 0;  // The highest of them.
  uint64_t damaged_columns_ = 0;
};

}  // namespace tacho::storage
