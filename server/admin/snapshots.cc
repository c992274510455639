#include "server/admin/snapshots.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace tacho::server::admin {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPartial = ".partial-";
constexpr size_t kMaxName = 100;

absl::Status Refused(absl::string_view doing, const std::string& path, int error) {
  const std::string text =
      absl::StrCat(doing, " ", path, ": ", std::generic_category().message(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(text);
  return absl::UnavailableError(text);
}

absl::Status SyncDirectory(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return Refused("open", path, errno);
  const bool synced = ::fsync(descriptor) == 0;
  const int error = errno;
  ::close(descriptor);
  return synced ? absl::OkStatus() : Refused("sync", path, error);
}

// Removes the remains of a collector that was killed. The lock on the directory says that nobody is
// at it.
void RemovePartial(const std::string& directory) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
    if (absl::StartsWith(entry.path().filename().string(), kPartial)) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

void Measure(const std::string& path, Snapshot* snapshot) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) {
    ++snapshot->files;
    const uintmax_t size = entry.file_size(ignored);
    if (!ignored) snapshot->bytes += size;
  }
}

}  // namespace

absl::Status CheckSnapshotName(absl::string_view name) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  };
  if (!name.empty() && name.size() <= kMaxName && name[0] != '.' &&
      std::all_of(name.begin(), name.end(), allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "name: expected 1 to ", kMaxName, " of A-Z a-z 0-9 . _ -, not beginning with a dot"));
}

absl::StatusOr<Snapshot> Snapshots::Make(absl::string_view name) {
  std::string chosen(name);
  if (chosen.empty()) {
    chosen = absl::FormatTime("%Y%m%dT%H%M%SZ", options_.now(), absl::UTCTimeZone());
  }
  TACHO_RETURN_IF_ERROR(CheckSnapshotName(chosen));
  if (options_.directory.empty()) {
    return absl::FailedPreconditionError(
        "admin.snapshot_directory is not set: name a directory there, on the file system of "
        "storage.path if snapshots are to be cheap");
  }
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(busy_, true)) {
      return absl::AbortedError("another snapshot is being made: try again when it is done");
    }
  }
  const auto done = absl::MakeCleanup([this] {
    absl::MutexLock lock(&mutex_);
    busy_ = false;
  });
  const std::string& path = options_.directory;
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Refused("admin.snapshot_directory: make", path, errno);
  }
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return Refused("admin.snapshot_directory: open", path, errno);
  const auto close = absl::MakeCleanup([directory] { ::close(directory); });
  if (::flock(directory, LOCK_EX | LOCK_NB) != 0) {
    return absl::AbortedError(
        absl::StrCat("another process makes a snapshot in ", path, ": try again when it is done"));
  }
  return MakeIn(directory, std::move(chosen));
}

absl::StatusOr<Snapshot> Snapshots::MakeIn(int directory, std::string name) {
  // RocksDB wants an absolute path.
  std::error_code error;
  const std::string root = fs::absolute(options_.directory, error).string();
  if (error) return Refused("find", options_.directory, error.value());
  RemovePartial(root);
  Snapshot snapshot{.name = std::move(name), .begun = options_.now()};
  snapshot.path = absl::StrCat(root, "/", snapshot.name);
  const absl::Status taken = absl::AlreadyExistsError(
      absl::StrCat("there is something at ", snapshot.path, " already: choose another name"));
  if (fs::exists(fs::symlink_status(snapshot.path, error))) return taken;

  const std::string partial = absl::StrCat(root, "/", kPartial, snapshot.name);
  const auto clean = absl::MakeCleanup([&root] { RemovePartial(root); });
  TACHO_RETURN_IF_ERROR(options_.store->Checkpoint(partial));
  TACHO_RETURN_IF_ERROR(SyncDirectory(partial));
  Measure(partial, &snapshot);
  // Into a place that is still free, whoever else may write here.
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, snapshot.path.c_str(), RENAME_NOREPLACE) !=
      0) {
    return errno == EEXIST ? taken : Refused("rename to", snapshot.path, errno);
  }
  if (::fsync(directory) != 0) return Refused("sync", root, errno);
  snapshot.took = options_.now() - snapshot.begun;
  return snapshot;
}

}  // namespace tacho::server::admin
