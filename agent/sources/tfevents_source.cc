#include "agent/sources/tfevents_source.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tacho::agent {
namespace {

// The profiler's plugin leaves empty files that only mark a directory as a run.
bool IsEventFile(absl::string_view name) {
  return absl::StrContains(name, "tfevents") && !absl::EndsWith(name, ".profile-empty");
}

// Without slashes at its end, so that it is compared and joined in one way.
std::string Normalize(absl::string_view path) {
  while (path.size() > 1 && absl::ConsumeSuffix(&path, "/")) {
  }
  return std::string(path);
}

}  // namespace

TfeventsSource::TfeventsSource(absl::Duration poll_interval, TfeventsOptions options)
    : poll_interval_(poll_interval), options_(std::move(options)), log_("tfevents", options_.log) {
  context_.clock = options_.clock;
  context_.limits = options_.limits;
  context_.log = &log_;
}

absl::StatusOr<std::unique_ptr<TfeventsSource>> TfeventsSource::Create(
    const config::v1::Agent::Tfevents& config, TfeventsOptions options) {
  std::unique_ptr<TfeventsSource> source(
      new TfeventsSource(absl::Nanoseconds(config.poll_interval()), std::move(options)));
  for (const auto& entry : config.directories()) {
    absl::StatusOr<TfeventsRunNamer> namer = TfeventsRunNamer::Create(entry);
    if (!namer.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("sources.tfevents.directories: ", entry.path(),
                                                     ": ", namer.status().message()));
    }
    const std::string path = Normalize(entry.path());
    const bool twice = std::any_of(source->directories_.begin(), source->directories_.end(),
                                   [&path](const Directory& other) { return other.path == path; });
    if (twice) {
      return absl::InvalidArgumentError(
          absl::StrCat("sources.tfevents.directories: ", path, " is there twice"));
    }
    source->directories_.push_back({path, *std::move(namer), {}, {}});
  }
  return source;
}

absl::Time TfeventsSource::Poll(absl::Time now, RowSink* sink) {
  const absl::Time deadline = context_.clock() + options_.turn;
  if (phase_ == Phase::kIdle) {
    // The second condition: the clock was set back.
    if (now < next_cycle_ && next_cycle_ - now <= poll_interval_) return next_cycle_;
    next_cycle_ = now + poll_interval_;
    phase_ = Phase::kWalking;
    walking_ = 0;
  }
  if (phase_ == Phase::kWalking) {
    if (!Walk(now, deadline, sink)) return now;
    phase_ = Phase::kReading;
  }
  refused_ = false;
  if (!Read(now, deadline, sink)) return refused_ ? now + poll_interval_ : now;
  phase_ = Phase::kIdle;
  return std::max(next_cycle_, now);
}

bool TfeventsSource::Walk(absl::Time now, absl::Time deadline, RowSink* sink) {
  for (; walking_ < directories_.size(); ++walking_) {
    Directory& directory = directories_[walking_];
    if (walk_ == nullptr) walk_ = std::make_unique<DirectoryWalk>(directory.path, IsEventFile);
    while (true) {
      DirectoryWalk::File file;
      const DirectoryWalk::Step step = walk_->Next(&file);
      if (step == DirectoryWalk::Step::kEnd) break;
      if (step == DirectoryWalk::Step::kFile) See(&directory, file, now, sink);
      if (context_.clock() >= deadline) return false;
    }
    EndWalk(&directory, now, sink);
    walk_.reset();
  }
  return true;
}

void TfeventsSource::See(Directory* directory, const DirectoryWalk::File& file, absl::Time now,
                         RowSink* sink) {
  const auto [run, is_new] = directory->runs.try_emplace(file.directory);
  if (is_new) run->second = MakeRun(*directory, file.directory, now);
  if (run->second != nullptr) run->second->SeeFile(file.name, {file.size, file.changed}, *sink);
}

std::unique_ptr<TfeventsRun> TfeventsSource::MakeRun(const Directory& directory,
                                                     const std::string& run, absl::Time now) {
  const absl::StatusOr<TfeventsRunName> name = directory.namer.Name(run);
  if (!name.ok()) {
    ++context_.stats.unmatched_runs;
    log_.Say(now, "unmatched",
             absl::StrCat("run '", run, "' of ", directory.path,
                          " is left out: ", name.status().message()));
    return nullptr;
  }
  v1::Source source;
  source.set_job(name->job);
  source.set_task(name->task);
  source.set_attempt(name->attempt.value_or(0));
  source.set_host(options_.host);
  // Two slashes, so that log directories within each other have keys of their own.
  return std::make_unique<TfeventsRun>(absl::StrCat(directory.path, "/", run),
                                       absl::StrCat(directory.path, "//", run), std::move(source),
                                       name->attempt.has_value(), &context_);
}

void TfeventsSource::EndWalk(Directory* directory, absl::Time now, RowSink* sink) {
  for (const std::string& failure : walk_->failures()) {
    ++context_.stats.unreadable;
    if (!absl::c_linear_search(directory->failures, failure)) {
      log_.Say(now, "unreadable", failure);
    }
  }
  directory->failures = walk_->failures();
  const bool complete = walk_->failures().empty();
  for (auto run = directory->runs.begin(); run != directory->runs.end();) {
    if (run->second != nullptr) {
      if (complete && !run->second->ForgetUnseen(sink)) {
        run = directory->runs.erase(run);
        continue;
      }
      if (run->second->HasWork()) to_read_.push_back(run->second.get());
    }
    ++run;
  }
}

bool TfeventsSource::Read(absl::Time now, absl::Time deadline, RowSink* sink) {
  while (!to_read_.empty()) {
    TfeventsRun* run = to_read_.front();
    const TfeventsRun::Turn turn = run->ReadSome(now, deadline, sink);
    refused_ = turn == TfeventsRun::Turn::kRefused;
    if (refused_) return false;
    to_read_.pop_front();
    if (turn == TfeventsRun::Turn::kMore) to_read_.push_back(run);
    if (context_.clock() >= deadline) return to_read_.empty();
  }
  return true;
}

}  // namespace tacho::agent
