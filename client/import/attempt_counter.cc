#include "client/import/attempt_counter.h"

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {

void AttemptCounter::Begin(absl::string_view why) {
  if (options_.fixed_attempt) return;
  ++later_;
  rows_.clear();
  moved_.clear();
  last_step_.reset();
  Note(absl::StrCat(why, ": what follows is attempt ", options_.attempt + later_,
                    " (to make one attempt of all: --attempt ", options_.attempt, ")"));
}

absl::Status AttemptCounter::FindSeries(const SeriesKey& key, std::optional<uint32_t>* series) {
  TACHO_RETURN_IF_ERROR(sink_->FindSeries(key, series));
  if (*series && !options_.fixed_attempt) keys_.try_emplace(**series, key);
  return absl::OkStatus();
}

void AttemptCounter::NoteStep(const Row& row) {
  if (!row.step || options_.fixed_attempt) return;
  uint64_t hash = absl::HashOf(*row.step);
  for (const Cell& cell : row.cells) hash = absl::HashOf(hash, cell.series);
  if (last_step_ && *row.step < *last_step_ && rows_.contains(hash)) {
    Begin(absl::StrCat("step ", *row.step, " comes again after later ones"));
  }
  last_step_ = row.step;
  if (rows_.size() < kMaxRows) rows_.insert(hash);
}

absl::Status AttemptCounter::InThisAttempt(uint32_t series, std::optional<uint32_t>* moved) {
  if (const auto found = moved_.find(series); found != moved_.end()) {
    *moved = found->second;
    return absl::OkStatus();
  }
  SeriesKey key = keys_.at(series);
  key.attempt += later_;
  TACHO_RETURN_IF_ERROR(sink_->FindSeries(key, moved));
  if (*moved) moved_.emplace(series, **moved);
  return absl::OkStatus();
}

absl::Status AttemptCounter::AddRow(const Row& row) {
  NoteStep(row);
  if (later_ == 0) return sink_->AddRow(row);
  Row in_attempt = row;
  in_attempt.cells.clear();
  for (const Cell& cell : row.cells) {
    std::optional<uint32_t> series;
    TACHO_RETURN_IF_ERROR(InThisAttempt(cell.series, &series));
    if (series) in_attempt.cells.push_back({*series, cell.value});
  }
  return sink_->AddRow(in_attempt);
}

absl::Status AttemptCounter::AddEvent(v1::Event event) {
  event.mutable_source()->set_attempt(event.source().attempt() + later_);
  return sink_->AddEvent(std::move(event));
}

absl::Status AttemptCounter::AddAttributes(uint32_t attempt, const std::string& name,
                                           const std::string& value) {
  return sink_->AddAttributes(attempt + later_, name, value);
}

}  // namespace tacho::importer
