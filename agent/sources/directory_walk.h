// Walks a directory tree in small steps, so that a large one does not hold up its caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::agent {

// Links to directories are not followed, which keeps the walk finite; links to files are.
class DirectoryWalk {
 public:
  // Deeper directories are left alone: no log directory is nested so far.
  static constexpr int kMaxDepth = 64;

  struct File {
    std::string directory;  // Relative to the root; "." for the root.
    std::string name;
    uint64_t size = 0;
    int64_t changed = 0;  // In units of the file system's clock.
  };

  // `wanted` says by its name whether a file is looked at.
  DirectoryWalk(std::string root, std::function<bool(absl::string_view name)> wanted);

  enum class Step { kFile, kNothing, kEnd };
  // Looks at one directory entry; kFile if it is a regular file that is wanted, now in *file.
  Step Next(File* file);

  // What could not be listed, as "path: reason". While there is anything here, that a file has not
  // come up does not mean that it is gone.
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  struct Pending {
    std::string directory;
    int depth = 0;
  };

  bool OpenNextDirectory();
  Step Look(const std::filesystem::directory_entry& entry, File* file);
  void Fail(const std::string& path, const std::error_code& error);

  const std::string root_;
  const std::function<bool(absl::string_view)> wanted_;
  std::vector<Pending> pending_;
  Pending current_;
  std::filesystem::directory_iterator iterator_;
  std::vector<std::string> failures_;
};

}  // namespace tacho::agent
