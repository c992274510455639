// Finds rings, reads them in turns, and removes those of trainers that have ended once everything
// in them is spooled.
#include "agent/sources/rings/ring_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

std::string KeyOf(const std::string& path) {
  return absl::StrCat("rings/", fs::path(path).filename().string());
}

bool SameRing(const client::RingInfo& a, const client::RingInfo& b) {
  return a.pid == b.pid && a.process_start_ticks == b.process_start_ticks &&
         a.created_unix_ns == b.created_unix_ns;
}

}  // namespace

RingSource::RingSource(const config::v1::Agent::Rings& config, RingOptions options)
    : directory_(config.directory()),
      poll_interval_(absl::Nanoseconds(config.poll_interval())),
      options_(std::move(options)),
      log_("rings", options_.log) {}

absl::Time RingSource::Poll(absl::Time now, RowSink* sink) {
  const absl::Time deadline = options_.clock() + options_.turn;
  if (to_read_.empty()) {
    // The second condition: the clock was set back.
    if (now < next_ && next_ - now <= poll_interval_) return next_;
    next_ = now + poll_interval_;
    if (DirectoryMayHaveChanged(now)) Scan(now, sink);
    for (const auto& [path, ring] : rings_) to_read_.push_back(path);
  }
  while (!to_read_.empty()) {
    if (!ReadOne(now, sink)) return now + poll_interval_;
    if (options_.clock() >= deadline) break;
  }
  return to_read_.empty() ? std::max(next_, now) : now;
}

bool RingSource::DirectoryMayHaveChanged(absl::Time now) {
  struct stat about = {};
  const bool is_there = ::stat(directory_.c_str(), &about) == 0;
  const absl::Time changed =
      is_there ? absl::TimeFromTimespec(about.st_mtim) : absl::InfinitePast();
  const bool listed_lately = now >= listed_ && now - listed_ < kListUnchanged;
  if (changed == std::exchange(directory_changed_, changed) && listed_lately) return false;
  listed_ = now;
  return true;
}

void RingSource::Scan(absl::Time now, RowSink* sink) {
  std::set<std::string> seen;
  std::error_code error;
  fs::directory_iterator entry(directory_, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!absl::EndsWith(path, ".ring")) continue;
    seen.insert(path);
    if (!rings_.contains(path)) OpenRing(path, now, sink);
  }
  // No directory: no trainer has been here yet.
  if (error && error != std::errc::no_such_file_or_directory) {
    log_.Warn("cannot read the directory",
              {{"directory", directory_}, {"reason", error.message()}});
    return;
  }
  std::erase_if(rejected_, [&seen](const auto& item) { return !seen.contains(item.first); });
  // A ring that somebody else removed is read to its end all the same, since it is open.
}

void RingSource::OpenRing(const std::string& path, absl::Time now, RowSink* sink) {
  const auto rejected = rejected_.find(path);
  if (rejected != rejected_.end() && now < rejected->second.retry) return;
  absl::StatusOr<std::unique_ptr<client::RingReader>> reader = client::RingReader::Open(path);
  if (absl::IsNotFound(reader.status())) return;  // Gone since it was listed.
  if (!reader.ok()) {
    Reject(path, reader.status(), now);
    return;
  }
  rejected_.erase(path);
  rings_[path] =
      std::make_unique<RingTail>(*std::move(reader), KeyOf(path), options_.host, *sink, &stats_);
}

void RingSource::Reject(const std::string& path, const absl::Status& status, absl::Time now) {
  const auto [entry, is_new] = rejected_.try_emplace(path);
  entry->second.retry = now + kRetryRejected;
  const std::string reason = status.ToString();
  if (!is_new && entry->second.reason == reason) return;
  entry->second.reason = reason;
  ++stats_.rejected_files;
  log_.Warn("leaves out a ring", {{"ring", path}, {"reason", reason}});
}

bool RingSource::ReadOne(absl::Time now, RowSink* sink) {
  const std::string path = std::move(to_read_.front());
  to_read_.pop_front();
  const auto ring = rings_.find(path);
  if (ring == rings_.end()) return true;
  using State = RingTail::State;
  State state = State::kWaiting;
  const uint64_t lost_before = stats_.lost_rows;
  absl::Status status = ring->second->Read(now, sink, &state);
  if (stats_.lost_rows != lost_before) {
    log_.Warn("rows were overwritten before they were read",
              {{"ring", path}, {"rows", stats_.lost_rows - lost_before}});
  }
  const bool ended = state == State::kEnded || state == State::kDrained;
  if (status.ok() && ended) status = TellEnd(ring->second.get(), now, sink);
  if (absl::IsUnavailable(status)) {
    to_read_.push_back(path);
    return false;
  }
  if (!status.ok()) {
    Reject(path, status, now);
    rings_.erase(ring);
    return true;
  }
  if (state == State::kMore) to_read_.push_back(path);
  if (state == State::kDrained) Remove(path, now, sink);
  return true;
}

absl::Status RingSource::TellEnd(RingTail* ring, absl::Time now, RowSink* sink) const {
  if (ring->end_told()) return absl::OkStatus();
  const client::RingInfo& ended = ring->info();
  const bool goes_on = std::any_of(rings_.begin(), rings_.end(), [&](const auto& item) {
    const client::RingInfo& info = item.second->info();
    return item.second.get() != ring && info.job == ended.job && info.task == ended.task &&
           info.attempt == ended.attempt && item.second->MayGoOn();
  });
  // Once that one has told the end, this one could not know it any more.
  return goes_on ? ring->LeaveEndToAnother(sink) : ring->TellEnd(now, sink);
}

void RingSource::Remove(const std::string& path, absl::Time now, RowSink* sink) {
  const auto ring = rings_.find(path);
  const absl::StatusOr<std::unique_ptr<client::RingReader>> again = client::RingReader::Open(path);
  // Not a younger ring that has taken the name meanwhile.
  if (again.ok() && SameRing((*again)->info(), ring->second->info())) {
    std::error_code error;
    fs::remove(path, error);
    if (error) {
      // It would be read once more at every look, so it must be said and not only counted.
      Reject(path,
             absl::PermissionDeniedError(absl::StrCat("cannot be removed: ", error.message())),
             now);
      rings_.erase(ring);
      return;
    }
    // Where the trainer wrote its stacks, if it allowed that.
    fs::remove(path + ".stacks", error);
    ++stats_.removed_files;
  }
  sink->WriteCheckpoint({KeyOf(path), ""}).IgnoreError();
  rings_.erase(ring);
}

}  // namespace tacho::agent
