// Reads the event files of one run in turns. The state of each file survives restarts in
// checkpoints, and a file is recognized by its content, because inodes and times of network file
// systems change.
#include "agent/sources/tfevents/tfevents_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/sources/tfevents/tfevents_delivery.h"

namespace tacho::agent {
namespace {

using Outcome = TfeventsChunk::Outcome;

void Raise(std::optional<int64_t>* highest, const std::optional<int64_t>& step) {
  // An absent step is below every other.
  *highest = std::max(*highest, step);
}

// "<length>:<tag><length>:<tag>…", since a tag may hold any byte.
std::string EncodeTags(const client::TfeventsOtherTags& tags) {
  std::string text;
  for (const std::string& tag : tags) absl::StrAppend(&text, tag.size(), ":", tag);
  return text;
}

client::TfeventsOtherTags DecodeTags(absl::string_view text) {
  client::TfeventsOtherTags tags;
  while (true) {
    const size_t colon = text.find(':');
    uint64_t size = 0;
    if (colon == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, colon), &size) ||
        size > text.size() - colon - 1) {
      return tags;
    }
    tags.emplace(text.substr(colon + 1, size));
    text.remove_prefix(colon + 1 + size);
  }
}

}  // namespace

TfeventsRun::TfeventsRun(BeneathDirectory* root, std::string directory, std::string key,
                         v1::Source source, bool fixed_attempt, TfeventsContext* context)
    : root_(root),
      directory_(std::move(directory)),
      key_(std::move(key)),
      source_(std::move(source)),
      fixed_attempt_(fixed_attempt),
      context_(context) {}

std::string TfeventsRun::FileKey(const std::string& name) const {
  return absl::StrCat("tfevents/file/", key_, "/", name);
}

std::string TfeventsRun::TagsKey() const { return absl::StrCat("tfevents/tags/", key_); }

std::string TfeventsRun::PathOf(const std::string& name) const {
  return directory_ == "." ? name : absl::StrCat(directory_, "/", name);
}

void TfeventsRun::SeeFile(const std::string& name, const TfeventsFileStamp& stamp,
                          const RowSink& sink) {
  if (!loaded_) {
    loaded_ = true;
    other_tags_ = DecodeTags(sink.ReadCheckpoint(TagsKey()));
    saved_other_tags_ = other_tags_.size();
  }
  const auto [file, is_new] = files_.try_emplace(name);
  file->second.stamp = stamp;
  file->second.seen = true;
  file->second.waiting = false;
  if (!is_new) return;
  const std::string checkpoint = sink.ReadCheckpoint(FileKey(name));
  if (checkpoint.empty()) return;
  // An unreadable checkpoint is as good as none: values stored again count once.
  file->second.position =
      client::TfeventsPosition::Decode(checkpoint).value_or(client::TfeventsPosition());
}

bool TfeventsRun::ForgetUnseen(RowSink* sink) {
  for (auto file = files_.begin(); file != files_.end();) {
    if (std::exchange(file->second.seen, false)) {
      ++file;
      continue;
    }
    if (file->second.position.placed) {
      forgotten_attempt_ = std::max(forgotten_attempt_, file->second.position.attempt);
    }
    Raise(&forgotten_highest_, file->second.position.highest);
    // If the sink has no room the checkpoint stays behind, which costs a few bytes.
    sink->WriteCheckpoint({FileKey(file->first), ""}).IgnoreError();
    file = files_.erase(file);
  }
  if (!files_.empty()) return true;
  if (saved_other_tags_ > 0) sink->WriteCheckpoint({TagsKey(), ""}).IgnoreError();
  return false;
}

void TfeventsRun::Forget(RowSink* sink) {
  for (auto& [name, file] : files_) file.seen = false;
  ForgetUnseen(sink);
}

TfeventsRun::Files::iterator TfeventsRun::FindWork() {
  // A chunk that was begun comes first: it must be cut into rows just as it was.
  const auto begun = std::find_if(files_.begin(), files_.end(), [](const auto& entry) {
    return entry.second.position.chunk_end != 0 && !entry.second.waiting;
  });
  if (begun != files_.end()) return begun;
  return std::find_if(files_.begin(), files_.end(),
                      [](const auto& entry) { return entry.second.HasMore(); });
}

client::TfeventsAttemptRule TfeventsRun::RuleFor(const std::string& name) const {
  client::TfeventsAttemptRule rule;
  if (fixed_attempt_) rule.fixed = source_.attempt();
  rule.newest = forgotten_attempt_;
  rule.highest = forgotten_highest_;
  std::optional<uint32_t> before;
  std::optional<uint32_t> after;
  for (const auto& [other, file] : files_) {
    if (other == name || !file.position.placed) continue;
    rule.newest = std::max(rule.newest, file.position.attempt);
    Raise(&rule.highest, file.position.highest);
    if (other < name) before = file.position.attempt;
    if (other > name && !after.has_value()) after = file.position.attempt;
  }
  if (after.has_value()) rule.late = before.has_value() ? before : after;
  return rule;
}

TfeventsRun::Turn TfeventsRun::ReadSome(absl::Time now, absl::Time deadline, RowSink* sink) {
  const auto found = FindWork();
  if (found == files_.end()) return Turn::kIdle;
  return ReadChunk(found->first, &found->second, now, deadline, sink);
}

TfeventsRun::Turn TfeventsRun::ReadChunk(const std::string& name, File* file, absl::Time now,
                                         absl::Time deadline, RowSink* sink) {
  client::TfeventsRowBuilder builder(RuleFor(name), file->position, &other_tags_);
  const TfeventsChunk chunk =
      ReadTfeventsChunk(root_, PathOf(name), file->position, context_->limits,
                        [&builder](absl::string_view payload) { return builder.Add(payload); });
  const bool doubtful = chunk.outcome == Outcome::kCorrupt || chunk.outcome == Outcome::kDiffers;
  const bool certain = doubtful && IsCertain(chunk.end, now, file);
  if (!doubtful) file->doubted = absl::InfiniteFuture();
  if (chunk.outcome == Outcome::kReplaced || (certain && chunk.outcome == Outcome::kDiffers)) {
    ++context_->stats.replaced_files;
    context_->log->Warn("reads a file from its beginning: it is another file than before",
                        {{"file", absl::StrCat(root_->path(), "/", PathOf(name))}});
    return StartAnew(file);
  }
  const bool newly_dead = certain;
  if (chunk.end > file->position.offset || newly_dead) {
    client::TfeventsPosition end;
    end.offset = chunk.end;
    end.first_crc = chunk.first_crc;
    end.last_crc = chunk.last_crc;
    end.dead = newly_dead;
    builder.UpdatePosition(&end);
    TfeventsDelivery delivery(source_, FileKey(name), context_, sink);
    const TfeventsDelivery::Result result =
        delivery.Deliver(builder, end, deadline, &file->position);
    if (result == TfeventsDelivery::Result::kRefused) return Turn::kRefused;
    if (result == TfeventsDelivery::Result::kPaused) return Turn::kMore;
    context_->stats.skipped.other += builder.skipped().other;
    context_->stats.skipped.no_time += builder.skipped().no_time;
    context_->stats.skipped.bad_tag += builder.skipped().bad_tag;
    context_->stats.skipped_records += chunk.skipped_records;
    SaveOtherTags(sink);
  }
  return Finish(name, chunk, file);
}

bool TfeventsRun::IsCertain(uint64_t offset, absl::Time now, File* file) {
  // The last condition: the clock was set back.
  if (file->doubted == absl::InfiniteFuture() || file->doubted_at != offset ||
      now < file->doubted) {
    file->doubted = now;
    file->doubted_at = offset;
  }
  return now - file->doubted >= kTfeventsPatience;
}

TfeventsRun::Turn TfeventsRun::StartAnew(File* file) {
  // The steps and attempts of the old content stay known to the run.
  if (file->position.placed) {
    forgotten_attempt_ = std::max(forgotten_attempt_, file->position.attempt);
  }
  Raise(&forgotten_highest_, file->position.highest);
  const TfeventsFileStamp stamp = file->stamp;
  *file = File();
  file->stamp = stamp;
  return Turn::kMore;
}

TfeventsRun::Turn TfeventsRun::Finish(const std::string& name, const TfeventsChunk& chunk,
                                      File* file) {
  const auto warn = [&](absl::string_view message, absl::string_view reason) {
    context_->log->Warn(
        message, {{"file", absl::StrCat(root_->path(), "/", PathOf(name))}, {"reason", reason}});
  };
  if (chunk.outcome == Outcome::kMore) return Turn::kMore;
  file->read = file->stamp;
  file->read_once = true;
  if (chunk.outcome == Outcome::kDiffers ||
      (chunk.outcome == Outcome::kCorrupt && !file->position.dead)) {
    // Again at the next look, whether it has changed or not.
    file->read_once = false;
    file->waiting = true;
  } else if (chunk.outcome == Outcome::kCorrupt) {
    ++context_->stats.dead_files;
    warn("reads a damaged file no further", absl::StrCat(chunk.text, " at byte ", chunk.end));
  } else if (chunk.outcome == Outcome::kUnreadable) {
    ++context_->stats.unreadable;
    file->read_once = false;
    file->waiting = true;
    if (std::exchange(file->said, chunk.text) != chunk.text) warn("cannot read a file", chunk.text);
  } else if (chunk.outcome == Outcome::kShrunk) {
    constexpr char kText[] = "it is shorter than what was read of it";
    file->waiting = true;
    if (std::exchange(file->said, kText) != kText) warn("waits for a file to grow again", kText);
  } else {
    file->said.clear();
  }
  return FindWork() == files_.end() ? Turn::kIdle : Turn::kMore;
}

void TfeventsRun::SaveOtherTags(RowSink* sink) {
  if (other_tags_.size() == saved_other_tags_) return;
  if (sink->WriteCheckpoint({TagsKey(), EncodeTags(other_tags_)}).ok()) {
    saved_other_tags_ = other_tags_.size();
  }
}

}  // namespace tacho::agent
