// The directories below a log directory and the wanted files in them, looked at in small steps and
// each as often as it changes: hundreds of runs that ended long ago cost next to nothing.
//
//   the log directory itself          every `interval`, so that a new run is seen at once
//   a directory that changed          every `interval`
//   one that has not for a while      after a tenth of that while, at most kMaxIdle intervals
//
// A change is another name, or another size or time of a wanted file. Times are compared with
// themselves alone: they are those of a file server, whose clock is its own. Times of directories
// are not believed, as some file systems have none. Links to directories are not followed, which
// keeps the tree finite; links to files are (agent/sources/tfevents/beneath_directory.h).
#pragma once

#include <dirent.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/tfevents/beneath_directory.h"

namespace tacho::agent {

// One thread. At most two descriptors are open, between the steps of one look.
class LogTree {
 public:
  // Beyond these, directories and files are left out: no log directory is so deep or so large, and
  // each takes some hundred bytes.
  static constexpr int kMaxDepth = 64;
  static constexpr size_t kMaxDirectories = 50'000;
  static constexpr size_t kMaxFiles = 50'000;
  static constexpr int kMaxIdle = 30;

  struct Options {
    absl::Duration interval = absl::Seconds(2);
    // Says by its name whether a file is looked at.
    std::function<bool(absl::string_view name)> wanted;
    size_t max_directories = kMaxDirectories;
    size_t max_files = kMaxFiles;
  };

  struct File {
    std::string name;
    uint64_t size = 0;
    int64_t changed = 0;  // By the file server's clock, in ns.
  };

  // `root` is not owned.
  LogTree(BeneathDirectory* root, Options options);
  LogTree(const LogTree&) = delete;
  LogTree& operator=(const LogTree&) = delete;
  ~LogTree();

  enum class Step {
    kFile,      // file() is in directory().
    kComplete,  // All files of directory() have come up; what it had besides is gone.
    kFailed,    // directory() cannot be listed for the reason in failure(); its files may be there.
    kGone,      // directory() is gone with its files.
    kNothing,
    kRest,  // Nothing is due before next_look().
  };
  // Looks at one directory entry, or begins with a directory.
  Step Next(absl::Time now);

  const std::string& directory() const { return directory_; }  // Relative; "." is the root.
  const File& file() const { return file_; }
  const std::string& failure() const { return failure_; }
  // The directory did not fail with this reason the last time.
  bool failure_is_new() const { return failure_is_new_; }
  absl::Time next_look() const;
  // Times that something was past a limit.
  uint64_t left_out() const { return left_out_; }

 private:
  struct Directory {
    std::string path;
    int depth = 0;
    absl::Time next_look;
    absl::Time changed;
    uint64_t fingerprint = 0;
    size_t files = 0;  // When it was last complete, as the next.
    size_t children = 0;
    uint64_t seen_in = 0;  // Number of the parent's listing.
    std::string failure;
    double phase = 0;  // In [0, 1): spreads looks over time.
  };

  using Directories = std::map<std::string, Directory>;

  void NoticeClock(absl::Time now);
  Step Begin(absl::Time now);
  Step Look(absl::Time now);
  Step LookAtFile(const char* name);
  Step End(absl::Time now);
  Step Fail(Directory* directory, int error, absl::Time now);
  void SeeChild(const std::string& name, absl::Time now);
  void ForgetUnseenChildren();
  Directories::iterator Forget(Directories::iterator directory);
  void Schedule(Directory* directory, absl::Time now);
  // Prefix of the paths below a directory.
  static std::string Below(const std::string& directory);

  BeneathDirectory* const root_;
  const Options options_;
  Directories directories_;
  std::set<std::pair<absl::Time, Directory*>> due_;
  size_t files_ = 0;
  uint64_t left_out_ = 0;
  std::vector<std::string> gone_;  // Not reported yet.

  // The listing that is going on.
  DIR* stream_ = nullptr;
  Directory* listed_ = nullptr;
  uint64_t listing_ = 0;  // Its number.
  uint64_t fingerprint_ = 0;
  size_t listed_files_ = 0;
  size_t listed_children_ = 0;
  size_t new_children_ = 0;

  std::string directory_;
  File file_;
  std::string failure_;
  bool failure_is_new_ = false;
};

}  // namespace tacho::agent
