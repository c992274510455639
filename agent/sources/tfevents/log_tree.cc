// Walks a log directory in small steps, so that a tree of 50,000 directories never blocks a poll,
// and looks less often at what has not changed for long.
#include "agent/sources/tfevents/log_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <tuple>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/tfevents/run_name.h"

namespace tacho::agent {
namespace {

// A directory that changed a minute ago is looked at again 6 s after the last look.
constexpr int kIdleShare = 10;

template <typename... Parts>
uint64_t HashOf(const Parts&... parts) {
  return absl::Hash<std::tuple<Parts...>>()(std::tuple<Parts...>(parts...));
}

}  // namespace

LogTree::LogTree(BeneathDirectory* root, Options options)
    : root_(root), options_(std::move(options)) {
  Directory& top = directories_[client::kRootRun];
  top.path = client::kRootRun;
  top.next_look = absl::InfinitePast();
  due_.emplace(top.next_look, &top);
}

LogTree::~LogTree() {
  if (stream_ != nullptr) ::closedir(stream_);
}

std::string LogTree::Below(const std::string& directory) {
  return directory == "." ? std::string() : directory + "/";
}

absl::Time LogTree::next_look() const {
  return due_.empty() ? absl::InfiniteFuture() : due_.begin()->first;
}

void LogTree::NoticeClock(absl::Time now) {
  if (due_.empty() || due_.rbegin()->first <= now + (kMaxIdle + 1) * options_.interval) return;
  // It was set back.
  due_.clear();
  for (auto& [path, directory] : directories_) {
    directory.next_look = now;
    if (&directory != listed_ || stream_ == nullptr) due_.emplace(now, &directory);
  }
}

LogTree::Step LogTree::Next(absl::Time now) {
  if (!gone_.empty()) {
    directory_ = std::move(gone_.back());
    gone_.pop_back();
    return Step::kGone;
  }
  NoticeClock(now);
  if (stream_ != nullptr) return Look(now);
  return next_look() <= now ? Begin(now) : Step::kRest;
}

LogTree::Step LogTree::Begin(absl::Time now) {
  Directory* const directory = due_.begin()->second;
  due_.erase(due_.begin());
  const int opened = root_->Open(directory->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (opened >= 0) stream_ = ::fdopendir(opened);
  if (stream_ == nullptr) {
    const int error = errno;
    if (opened >= 0) ::close(opened);
    return Fail(directory, error, now);
  }
  listed_ = directory;
  directory_ = directory->path;
  ++listing_;
  fingerprint_ = 0;
  listed_files_ = listed_children_ = new_children_ = 0;
  return Step::kNothing;
}

LogTree::Step LogTree::Look(absl::Time now) {
  directory_ = listed_->path;
  errno = 0;
  const dirent* const entry = ::readdir(stream_);  // NOLINT(concurrency-mt-unsafe): our own stream.
  if (entry == nullptr) {
    const int error = errno;
    ::closedir(stream_);
    stream_ = nullptr;
    return error == 0 ? End(now) : Fail(listed_, error, now);
  }
  const absl::string_view name = entry->d_name;
  if (name == "." || name == "..") return Step::kNothing;
  unsigned char type = entry->d_type;
  if (type == DT_UNKNOWN) {  // Some file systems do not say.
    struct stat info = {};
    if (::fstatat(::dirfd(stream_), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
      type = S_ISDIR(info.st_mode) ? DT_DIR : DT_REG;
    }
  }
  if (type == DT_DIR) {
    SeeChild(std::string(name), now);
    return Step::kNothing;
  }
  return options_.wanted(name) ? LookAtFile(entry->d_name) : Step::kNothing;
}

LogTree::Step LogTree::LookAtFile(const char* name) {
  struct stat info = {};
  if (::fstatat(::dirfd(stream_), name, &info, 0) != 0 || !S_ISREG(info.st_mode)) {
    return Step::kNothing;  // Gone meanwhile, or a link to nothing.
  }
  if (files_ - listed_->files + listed_files_ >= options_.max_files) {
    ++left_out_;
    return Step::kNothing;
  }
  ++listed_files_;
  file_.name = name;
  file_.size = static_cast<uint64_t>(info.st_size);
  file_.changed = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  // A sum, since nothing promises that entries keep their order.
  fingerprint_ += HashOf(file_.name, file_.size, file_.changed);
  return Step::kFile;
}

void LogTree::SeeChild(const std::string& name, absl::Time now) {
  const std::string path = client::RunBelow(listed_->path, name);
  auto child = directories_.find(path);
  if (child == directories_.end()) {
    if (listed_->depth >= kMaxDepth || directories_.size() >= options_.max_directories) {
      ++left_out_;
      return;
    }
    child = directories_.try_emplace(path).first;
    Directory& made = child->second;
    made.path = path;
    made.depth = listed_->depth + 1;
    made.phase = static_cast<double>(HashOf(path) % 1024) / 1024;
    made.next_look = now;
    due_.emplace(now, &made);
    ++new_children_;
  }
  child->second.seen_in = listing_;
  ++listed_children_;
  fingerprint_ += HashOf(name);
}

LogTree::Step LogTree::End(absl::Time now) {
  if (listed_->children + new_children_ != listed_children_) ForgetUnseenChildren();
  if (std::exchange(listed_->fingerprint, fingerprint_) != fingerprint_ ||
      listed_->changed == absl::Time()) {
    listed_->changed = now;
  }
  files_ += listed_files_ - listed_->files;
  listed_->files = listed_files_;
  listed_->children = listed_children_;
  listed_->failure.clear();
  Schedule(listed_, now);
  return Step::kComplete;
}

void LogTree::ForgetUnseenChildren() {
  const std::string below = Below(listed_->path);
  std::vector<std::string> unseen;
  for (auto it = directories_.lower_bound(below);
       it != directories_.end() && absl::StartsWith(it->first, below); ++it) {
    const bool is_child =
        &it->second != listed_ && it->first.find('/', below.size()) == std::string::npos;
    if (is_child && it->second.seen_in != listing_) unseen.push_back(it->first);
  }
  for (const std::string& path : unseen) {
    Forget(directories_.find(path));
    const std::string within = Below(path);
    for (auto it = directories_.lower_bound(within);
         it != directories_.end() && absl::StartsWith(it->first, within);) {
      it = Forget(it);
    }
  }
}

LogTree::Directories::iterator LogTree::Forget(Directories::iterator directory) {
  files_ -= directory->second.files;
  due_.erase({directory->second.next_look, &directory->second});
  gone_.push_back(directory->first);
  return directories_.erase(directory);
}

LogTree::Step LogTree::Fail(Directory* directory, int error, absl::Time now) {
  Schedule(directory, now);
  directory_ = directory->path;
  // A directory below the root that is gone since it was listed: its parent's next listing says so.
  if (error == ENOENT && directory->path != "." && !root_->is_missing()) return Step::kNothing;
  Directory& failed = root_->is_missing() ? directories_["."] : *directory;
  failure_ = absl::StrCat(root_->path(), failed.path == "." ? "" : "/",
                          failed.path == "." ? "" : failed.path, ": ",
                          std::generic_category().message(error));
  failure_is_new_ = std::exchange(failed.failure, failure_) != failure_;
  return Step::kFailed;
}

void LogTree::Schedule(Directory* directory, absl::Time now) {
  const absl::Duration idle = std::max(now - directory->changed, absl::ZeroDuration());
  absl::Duration pause = options_.interval;
  if (directory->path != "." && directory->changed != absl::Time()) {
    pause = std::clamp(idle / kIdleShare, options_.interval, kMaxIdle * options_.interval);
    // Directories that have all been idle for long are not all due in the same moment.
    if (pause > 4 * options_.interval) pause *= 1 - directory->phase / 4;
  }
  directory->next_look = now + pause;
  due_.emplace(directory->next_look, directory);
}

}  // namespace tacho::agent
