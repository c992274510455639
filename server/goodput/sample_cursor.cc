#include "server/goodput/sample_cursor.h"

#include <utility>

namespace tacho::server {

SampleCursor::SampleCursor(std::vector<std::unique_ptr<storage::SeriesReader>> readers,
                           double factor)
    : factor_(factor) {
  for (auto& reader : readers) sources_.push_back({.reader = std::move(reader)});
}

absl::Status SampleCursor::Fill(Source* source) {
  if (source->done || source->at < source->block.size()) return absl::OkStatus();
  const auto more = source->reader->Next(&source->block);
  if (!more.ok()) return more.status();
  source->at = 0;
  if (!*more) {
    source->done = true;
    source->block.clear();
  }
  return absl::OkStatus();
}

absl::Status SampleCursor::Next() {
  if (current_ != nullptr) ++current_->at;
  current_ = nullptr;
  for (Source& source : sources_) {
    if (absl::Status status = Fill(&source); !status.ok()) return status;
    if (source.done) continue;
    if (current_ == nullptr ||
        source.block.times[source.at] < current_->block.times[current_->at]) {
      current_ = &source;
    }
  }
  if (current_ != nullptr) {
    sample_ = SampleOf(current_->block, current_->at);
    sample_.value *= factor_;
  }
  return absl::OkStatus();
}

}  // namespace tacho::server
