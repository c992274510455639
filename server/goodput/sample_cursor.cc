#include "server/goodput/sample_cursor.h"

#include <utility>

#include "proto/base/status_macros.h"

namespace tacho::server::goodput {

SampleCursor::SampleCursor(std::vector<std::unique_ptr<storage::SeriesReader>> readers,
                           double factor)
    : factor_(factor) {
  for (auto& reader : readers) sources_.push_back({.reader = std::move(reader)});
}

absl::Status SampleCursor::Fill(Source* source) {
  if (source->done || source->at < source->chunk.samples().size()) return absl::OkStatus();
  TACHO_ASSIGN_OR_RETURN(const auto more, source->reader->Next({}, &source->chunk));
  source->at = 0;
  if (!more) {
    source->done = true;
    source->chunk = {};
  }
  return absl::OkStatus();
}

absl::Status SampleCursor::Next() {
  if (current_ != nullptr) ++current_->at;
  current_ = nullptr;
  for (Source& source : sources_) {
    TACHO_RETURN_IF_ERROR(Fill(&source));
    if (source.done) continue;
    if (current_ == nullptr || source.time_ns() < current_->time_ns()) {
      current_ = &source;
    }
  }
  if (current_ != nullptr) {
    sample_ = query::SampleOf(current_->chunk.samples(), current_->at);
    sample_.value *= factor_;
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::goodput
