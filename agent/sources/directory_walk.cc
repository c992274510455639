#include "agent/sources/directory_walk.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace fs = std::filesystem;

DirectoryWalk::DirectoryWalk(std::string root, std::function<bool(absl::string_view name)> wanted)
    : root_(std::move(root)), wanted_(std::move(wanted)), pending_({{".", 0}}) {}

void DirectoryWalk::Fail(const std::string& path, const std::error_code& error) {
  failures_.push_back(absl::StrCat(path, ": ", error.message()));
}

bool DirectoryWalk::OpenNextDirectory() {
  while (!pending_.empty()) {
    current_ = std::move(pending_.back());
    pending_.pop_back();
    const std::string path =
        current_.directory == "." ? root_ : absl::StrCat(root_, "/", current_.directory);
    std::error_code error;
    iterator_ = fs::directory_iterator(path, error);
    // A directory below the root that is gone since it was listed is no failure: its files are
    // gone.
    if (error && (current_.depth == 0 || error != std::errc::no_such_file_or_directory)) {
      Fail(path, error);
    }
    if (!error && iterator_ != fs::directory_iterator()) return true;
  }
  return false;
}

DirectoryWalk::Step DirectoryWalk::Next(File* file) {
  if (iterator_ == fs::directory_iterator() && !OpenNextDirectory()) return Step::kEnd;
  const Step step = Look(*iterator_, file);
  std::error_code error;
  iterator_.increment(error);
  if (error) {
    Fail(current_.directory, error);
    iterator_ = fs::directory_iterator();
  }
  return step;
}

DirectoryWalk::Step DirectoryWalk::Look(const fs::directory_entry& entry, File* file) {
  std::error_code error;
  const fs::file_status status = entry.symlink_status(error);
  const std::string name = entry.path().filename().string();
  if (!error && fs::is_directory(status)) {
    if (current_.depth >= kMaxDepth) return Step::kNothing;
    pending_.push_back(
        {current_.directory == "." ? name : absl::StrCat(current_.directory, "/", name),
         current_.depth + 1});
    return Step::kNothing;
  }
  if (!wanted_(name) || !entry.is_regular_file(error) || error) return Step::kNothing;
  file->directory = current_.directory;
  file->name = name;
  file->size = entry.file_size(error);
  if (error) return Step::kNothing;  // Gone meanwhile.
  file->changed = entry.last_write_time(error).time_since_epoch().count();
  return error ? Step::kNothing : Step::kFile;
}

}  // namespace tacho::agent
