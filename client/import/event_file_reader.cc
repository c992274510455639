// Reads the event files of one run with the same rules as the agent, so that an import and a
// recording of the same run agree.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/import/input_file.h"
#include "client/import/readers.h"
#include "client/tfevents/record.h"
#include "client/tfevents/rows.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

// The agent's limit: a longer record holds a graph or images.
constexpr uint64_t kMaxPayloadBytes = uint64_t{4} << 20;
constexpr size_t kBlockBytes = size_t{256} << 10;

// One run: files in the order of their names.
class EventFiles {
 public:
  EventFiles(const ReadOptions& options, absl::FunctionRef<void(uint64_t)> progress,
             RecordSink* sink)
      : options_(options), progress_(progress), sink_(sink) {}

  absl::Status Read(const std::string& path) {
    TACHO_ASSIGN_OR_RETURN(auto file, InputFile::Open(path));
    file_ = file.get();
    buffer_.clear();
    begin_ = 0;
    position_ = {};
    records_ = 0;
    at_end_ = false;
    while (!at_end_) {
      const absl::Status status = ReadChunk();
      if (!status.ok())
        return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
    }
    if (position_.placed) newest_ = std::max(newest_.value_or(0), position_.attempt);
    if (position_.highest)
      highest_ = std::max(highest_.value_or(*position_.highest), *position_.highest);
    return absl::OkStatus();
  }

 private:
  client::TfeventsAttemptRule Rule() const {
    client::TfeventsAttemptRule rule;
    if (options_.fixed_attempt) rule.fixed = options_.attempt;
    rule.newest = newest_.value_or(options_.attempt);
    rule.highest = highest_;
    return rule;
  }

  // Some whole records: at most kBlockBytes of them, or one.
  absl::Status ReadChunk() {
    client::TfeventsRowBuilder builder(Rule(), position_, &other_tags_);
    absl::Status damage;
    size_t taken = 0;
    while (damage.ok() && taken < kBlockBytes) {
      const client::RecordView record =
          client::ReadRecord(absl::string_view(buffer_).substr(begin_), kMaxPayloadBytes);
      if (record.kind == client::RecordView::Kind::kNeedMore) {
        if (taken > 0) break;
        if (!Fill(record.bytes)) break;
        continue;
      }
      if (record.kind == client::RecordView::Kind::kTooLarge) {
        if (!SkipLarge(record.bytes)) break;
        continue;
      }
      const char* defect = record.kind == client::RecordView::Kind::kCorrupt
                               ? record.defect
                               : builder.Add(record.payload);
      if (defect != nullptr) {
        damage = Damaged(defect);
        break;
      }
      begin_ += record.bytes;
      taken += record.bytes;
      ++records_;
    }
    builder.UpdatePosition(&position_);
    TACHO_RETURN_IF_ERROR(Emit(builder));
    progress_(taken);
    return file_->status().ok() ? damage : file_->status();
  }

  // False at the end of the file.
  bool Fill(uint64_t wanted) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const size_t size = std::max<size_t>(static_cast<size_t>(wanted), kBlockBytes);
    const size_t old = buffer_.size();
    buffer_.resize(std::max(size, old));
    size_t filled = old;
    while (filled < buffer_.size()) {
      const size_t got = file_->Read(buffer_.data() + filled, buffer_.size() - filled);
      if (got == 0) break;
      filled += got;
    }
    buffer_.resize(filled);
    if (filled >= wanted) return true;
    at_end_ = true;
    if (filled > 0) {
      sink_->Note(absl::StrCat(file_->path(),
                               " ends inside a record, as it does while it is being "
                               "written: the whole ones before it are taken"));
    }
    return false;
  }

  bool SkipLarge(uint64_t bytes) {
    uint64_t left = bytes - std::min<uint64_t>(bytes, buffer_.size() - begin_);
    begin_ = static_cast<size_t>(std::min<uint64_t>(begin_ + bytes, buffer_.size()));
    std::string waste(kBlockBytes, '\0');
    while (left > 0) {
      const size_t got =
          file_->Read(waste.data(), static_cast<size_t>(std::min<uint64_t>(left, waste.size())));
      if (got == 0) {
        at_end_ = true;
        return false;
      }
      left -= got;
    }
    ++records_;
    sink_->Note(absl::StrCat("records above ", kMaxPayloadBytes >> 20,
                             " MiB (graphs, images) are passed over"));
    return true;
  }

  absl::Status Damaged(const char* defect) {
    at_end_ = true;
    if (!options_.skip_damaged) {
      return absl::InvalidArgumentError(absl::StrCat(
          "record ", records_ + 1, ": ", defect,
          records_ == 0 ? "; this is no event file"
                        : "; to take what is before it and leave the rest: --skip-damaged"));
    }
    sink_->Note(absl::StrCat(file_->path(), ", record ", records_ + 1, ": ", defect,
                             "; this and what follows it is left out"));
    return absl::OkStatus();
  }

  absl::Status Emit(const client::TfeventsRowBuilder& builder) {
    for (const auto& [attempt, tags] : builder.rows()) {
      for (const auto& [tag, rows] : tags) {
        if (!options_.Wants(tag)) continue;
        if (absl::Status status = EmitTag(attempt, tag, rows); !status.ok()) return status;
      }
    }
    sink_->AddSkipped(Skip::kNotScalar, builder.skipped().other, file_->path());
    sink_->AddSkipped(Skip::kNoTime, builder.skipped().no_time, file_->path());
    sink_->AddSkipped(Skip::kBadName, builder.skipped().bad_tag, file_->path());
    return absl::OkStatus();
  }

  absl::Status EmitTag(uint32_t attempt, const std::string& tag, const client::TfeventsRows& rows) {
    SeriesKey key = options_.Key(tag);
    key.attempt = attempt;
    std::optional<uint32_t> series;
    TACHO_RETURN_IF_ERROR(sink_->FindSeries(key, &series));
    if (!series) {
      sink_->AddSkipped(Skip::kBadName, rows.values.size(), tag);
      return absl::OkStatus();
    }
    Row row;
    row.cells.resize(1);
    for (size_t i = 0; i < rows.values.size(); ++i) {
      if (IsStaleMarker(rows.values[i])) {
        sink_->AddSkipped(Skip::kNoValue, 1, tag);
        continue;
      }
      row.time_unix_ns = rows.times_unix_ns[i];
      row.step = rows.steps[i];
      row.cells[0] = {*series, rows.values[i]};
      if (absl::Status status = sink_->AddRow(row); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  const ReadOptions& options_;
  const absl::FunctionRef<void(uint64_t)> progress_;
  RecordSink* const sink_;

  // State of the run.
  std::optional<uint32_t> newest_;
  std::optional<int64_t> highest_;
  client::TfeventsOtherTags other_tags_;

  // State of the current file.
  InputFile* file_ = nullptr;
  std::string buffer_;
  size_t begin_ = 0;
  client::TfeventsPosition position_;
  uint64_t records_ = 0;
  bool at_end_ = false;
};

}  // namespace

absl::Status ReadEventFiles(const std::vector<std::string>& paths, const ReadOptions& options,
                            absl::FunctionRef<void(uint64_t bytes)> progress, RecordSink* sink) {
  EventFiles files(options, progress, sink);
  for (const std::string& path : paths) {
    if (absl::Status status = files.Read(path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace tacho::importer
