// Shares the time of a poll among log directories and their runs, so that no directory starves
// another.
#include "agent/sources/tfevents/tfevents_source.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/tfevents/run_name.h"

namespace tacho::agent {
namespace {

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
  context_.max_series = options_.max_series;
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
    const bool twice =
        std::any_of(source->directories_.begin(), source->directories_.end(),
                    [&path](const Directory& other) { return other.root->path() == path; });
    if (twice) {
      return absl::InvalidArgumentError(
          absl::StrCat("sources.tfevents.directories: ", path, " is there twice"));
    }
    auto root = std::make_unique<BeneathDirectory>(path);
    auto tree = std::make_unique<LogTree>(
        root.get(),
        LogTree::Options{.interval = source->poll_interval_, .wanted = client::IsEventFileName});
    source->directories_.push_back({std::move(root), *std::move(namer), std::move(tree), {}});
  }
  return source;
}

absl::Time TfeventsSource::Poll(absl::Time now, RowSink* sink) {
  const absl::Time began = context_.clock();
  // Half of the turn each, if both have more to do than that.
  const bool looked = Look(now, began + options_.turn / 2, sink);
  refused_ = false;
  const bool read = Read(now, began + options_.turn, sink);
  for (Directory& directory : directories_) directory.root->Rest();
  if (refused_) return std::min(now + poll_interval_, std::max(NextLook(), now));
  if (looked && read) return std::max(NextLook(), now);
  return now + options_.rest * options_.turn;
}

absl::Time TfeventsSource::NextLook() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Directory& directory : directories_) {
    next = std::min(next, directory.tree->next_look());
  }
  return next;
}

bool TfeventsSource::Look(absl::Time now, absl::Time deadline, RowSink* sink) {
  for (size_t resting = 0; resting < directories_.size();) {
    if (LookAt(&directories_[looking_], now, sink)) {
      resting = 0;
    } else {
      ++resting;
      looking_ = (looking_ + 1) % directories_.size();
    }
    if (resting < directories_.size() && context_.clock() >= deadline) return false;
  }
  return true;
}

bool TfeventsSource::LookAt(Directory* directory, absl::Time now, RowSink* sink) {
  const LogTree& tree = *directory->tree;
  switch (directory->tree->Next(now)) {
    case LogTree::Step::kFile:
      See(directory, sink);
      break;
    case LogTree::Step::kComplete:
      EndLook(directory, sink);
      break;
    case LogTree::Step::kFailed:
      ++context_.stats.unreadable;
      if (tree.failure_is_new()) {
        log_.Warn("cannot read a directory", {{"reason", tree.failure()}});
      }
      break;
    case LogTree::Step::kGone:
      ForgetRun(directory, sink);
      break;
    case LogTree::Step::kNothing:
      break;
    case LogTree::Step::kRest:
      return false;
  }
  return true;
}

void TfeventsSource::See(Directory* directory, RowSink* sink) {
  const std::string& name = directory->tree->directory();
  const auto [run, is_new] = directory->runs.try_emplace(name);
  if (is_new) run->second.files = MakeRun(*directory, name);
  const LogTree::File& file = directory->tree->file();
  if (run->second.files != nullptr) {
    run->second.files->SeeFile(file.name, {file.size, file.changed}, *sink);
  }
}

void TfeventsSource::EndLook(Directory* directory, RowSink* sink) {
  const LogTree& tree = *directory->tree;
  if (tree.left_out() != std::exchange(directory->left_out_told, tree.left_out())) {
    log_.Warn("leaves out what is beyond the limits of a directory",
              {{"directory", directory->root->path()},
               {"most_directories", LogTree::kMaxDirectories},
               {"most_files", LogTree::kMaxFiles},
               {"most_levels", LogTree::kMaxDepth}});
  }
  const auto found = directory->runs.find(tree.directory());
  if (found == directory->runs.end() || found->second.files == nullptr) return;
  Run& run = found->second;
  if (!run.files->ForgetUnseen(sink)) return ForgetRun(directory, sink);
  if (run.queued || !run.files->HasWork()) return;
  run.queued = true;
  to_read_.push_back(&run);
}

void TfeventsSource::ForgetRun(Directory* directory, RowSink* sink) {
  const auto found = directory->runs.find(directory->tree->directory());
  if (found == directory->runs.end()) return;
  if (found->second.files != nullptr) found->second.files->Forget(sink);
  std::erase(to_read_, &found->second);
  directory->runs.erase(found);
}

std::unique_ptr<TfeventsRun> TfeventsSource::MakeRun(const Directory& directory,
                                                     const std::string& run) {
  const absl::StatusOr<TfeventsRunName> name = directory.namer.Name(run);
  if (!name.ok()) {
    ++context_.stats.unmatched_runs;
    log_.Warn(
        "leaves out a run",
        {{"run", run}, {"directory", directory.root->path()}, {"reason", name.status().message()}});
    return nullptr;
  }
  v1::Source source;
  source.set_job(name->job);
  source.set_task(name->task);
  source.set_attempt(name->attempt.value_or(0));
  source.set_host(options_.host);
  // Two slashes, so that log directories within each other have keys of their own.
  return std::make_unique<TfeventsRun>(directory.root.get(), run,
                                       absl::StrCat(directory.root->path(), "//", run),
                                       std::move(source), name->attempt.has_value(), &context_);
}

bool TfeventsSource::Read(absl::Time now, absl::Time deadline, RowSink* sink) {
  while (!to_read_.empty()) {
    Run* const run = to_read_.front();
    const TfeventsRun::Turn turn = run->files->ReadSome(now, deadline, sink);
    refused_ = turn == TfeventsRun::Turn::kRefused;
    if (refused_) return false;
    to_read_.pop_front();
    run->queued = turn == TfeventsRun::Turn::kMore;
    if (run->queued) to_read_.push_back(run);
    if (context_.clock() >= deadline) return to_read_.empty();
  }
  return true;
}

}  // namespace tacho::agent
