// Reads mounts, their room and the counters of NFS. Local and network file systems are separate,
// because statvfs(2) on a network mount may hang.
#include "agent/sources/host/file_systems.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/sources/host/host_text.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

constexpr Metric kSize = {"host_filesystem_size_bytes", kGaugeType, "By", "Size.", "mount"};
constexpr Metric kAvailable = {"host_filesystem_available_bytes", kGaugeType, "By",
                               "Room for programs without privileges.", "mount"};
constexpr Metric kFiles = {"host_filesystem_files", kGaugeType, "1", "Files it can hold.", "mount"};
constexpr Metric kFilesFree = {"host_filesystem_files_free", kGaugeType, "1",
                               "Files it can hold besides those it has.", "mount"};
constexpr Metric kReadOnly = {"host_filesystem_readonly", kGaugeType, "1",
                              "1: it may only be read, also after an error.", "mount"};

constexpr Metric kNfsRead = {"host_nfs_read_bytes_total", kCounterType, "By",
                             "Read from the server.", "mount"};
constexpr Metric kNfsWritten = {"host_nfs_write_bytes_total", kCounterType, "By",
                                "Written to the server.", "mount"};
constexpr Metric kNfsCalls = {"host_nfs_operations_total", kCounterType, "1",
                              "Operations that the server was asked for.", "mount"};
constexpr Metric kNfsAgain = {"host_nfs_retransmissions_total", kCounterType, "1",
                              "Requests sent again.", "mount"};
constexpr Metric kNfsTimeouts = {"host_nfs_major_timeouts_total", kCounterType, "1",
                                 "Operations that waited beyond the major timeout.", "mount"};
constexpr Metric kNfsSeconds = {"host_nfs_operation_seconds_total", kCounterType, "s",
                                "Sum of the times of all operations.", "mount"};

constexpr std::array<absl::string_view, 13> kLocal = {{"ext2", "ext3", "ext4", "xfs", "btrfs",
                                                       "zfs", "f2fs", "tmpfs", "vfat", "exfat",
                                                       "jfs", "reiserfs", "bcachefs"}};
constexpr std::array<absl::string_view, 12> kNetworkTypes = {
    {"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "beegfs", "fuse.gcsfuse", "gpfs",
     "9p", "wekafs"}};

template <size_t N>
bool IsIn(absl::string_view type, const std::array<absl::string_view, N>& types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// "\040" is a space.
std::string WithoutEscapes(absl::string_view path) {
  constexpr size_t kDigits = 3;
  std::string plain;
  for (size_t i = 0; i < path.size(); ++i) {
    const absl::string_view digits = path.substr(i + 1, kDigits);
    const bool octal =
        path[i] == '\\' && digits.size() == kDigits &&
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '7'; });
    if (!octal) {
      plain.push_back(path[i]);
      continue;
    }
    plain.push_back(
        static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + digits[2] - '0'));
    i += kDigits;
  }
  return plain;
}

// A label cannot have control characters.
bool IsPathLabel(absl::string_view path) {
  constexpr size_t kMaxBytes = 1024;
  return !path.empty() && path.size() <= kMaxBytes &&
         std::none_of(path.begin(), path.end(),
                      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
}

// Mounts of containers and of the system; there may be hundreds of them.
bool IsSomebodyElses(absl::string_view path) {
  for (const char* prefix : {"/proc/", "/sys/", "/dev/", "/run/", "/var/lib/docker/",
                             "/var/lib/containerd/", "/var/lib/kubelet/pods/", "/snap/"}) {
    if (absl::StartsWith(path, prefix) && path != "/dev/shm") return true;
  }
  return false;
}

struct NfsSums {
  double calls = 0;
  double again = 0;
  double timeouts = 0;
  double milliseconds = 0;
};

void AddNfs(const std::string& mount, const NfsSums& sums, Sample* out) {
  out->Add(kNfsCalls, mount, sums.calls);
  out->Add(kNfsAgain, mount, sums.again);
  out->Add(kNfsTimeouts, mount, sums.timeouts);
  out->Add(kNfsSeconds, mount, sums.milliseconds * 1e-3);
}

// "READ: operations transmissions timeouts sent received queue rtt execute …"
bool AddOperation(const std::vector<absl::string_view>& words, NfsSums* sums) {
  constexpr size_t kExecuteAt = 8;
  if (words.size() <= kExecuteAt || !absl::EndsWith(words[0], ":")) return false;
  const std::optional<double> calls = Number(words[1]);
  const std::optional<double> sent = Number(words[2]);
  const std::optional<double> timeouts = Number(words[3]);
  const std::optional<double> execute = Number(words[kExecuteAt]);
  if (!calls || !sent || !timeouts || !execute) return false;
  sums->calls += *calls;
  sums->again += std::max(0.0, *sent - *calls);
  sums->timeouts += *timeouts;
  sums->milliseconds += *execute;
  return true;
}

absl::StatusOr<std::vector<Mount>> ReadMounts(const std::string& proc) {
  const auto text = ReadProcFile(proc + "/self/mounts");
  if (text.ok()) return ParseMounts(*text);
  return absl::UnavailableError(absl::StrCat(proc, "/self/mounts: ", text.status().message(),
                                             "; is sources.host.proc right?"));
}

}  // namespace

bool IsNetworkFileSystem(absl::string_view type) { return IsIn(type, kNetworkTypes); }

std::vector<Mount> ParseMounts(absl::string_view text) {
  std::vector<Mount> mounts;
  std::set<std::string> devices;
  for (absl::string_view line : Lines(text)) {
    constexpr size_t kWords = 4;
    const std::vector<absl::string_view> words = Words(line);
    if (words.size() < kWords || mounts.size() == kMaxMounts) continue;
    const absl::string_view type = words[2];
    if (!IsIn(type, kLocal) && !IsIn(type, kNetworkTypes)) continue;
    std::string path = WithoutEscapes(words[1]);
    if (!IsPathLabel(path) || IsSomebodyElses(path)) continue;
    // A tmpfs has no device; others show the same room wherever they are mounted.
    if (type != "tmpfs" && !devices.emplace(words[0]).second) continue;
    mounts.push_back({.path = std::move(path), .type = std::string(type)});
  }
  return mounts;
}

void AddFill(const Mount& mount, Sample* out) {
  struct statvfs about = {};
  if (::statvfs(mount.path.c_str(), &about) != 0 || about.f_blocks == 0) return;
  const double block = static_cast<double>(about.f_frsize);
  out->Add(kSize, mount.path, static_cast<double>(about.f_blocks) * block);
  out->Add(kAvailable, mount.path, static_cast<double>(about.f_bavail) * block);
  out->Add(kReadOnly, mount.path, (about.f_flag & ST_RDONLY) != 0 ? 1 : 0);
  if (about.f_files == 0) return;  // It makes them as they are wanted.
  out->Add(kFiles, mount.path, static_cast<double>(about.f_files));
  out->Add(kFilesFree, mount.path, static_cast<double>(about.f_ffree));
}

bool ParseMountstats(absl::string_view text, Sample* out) {
  // "device SERVER:/x mounted on /mnt with fstype nfs4 statvers=1.1"
  constexpr size_t kMountAt = 4;
  constexpr size_t kTypeAt = 7;
  constexpr size_t kServerReadAt = 5;
  constexpr size_t kServerWrittenAt = 6;
  std::string mount;
  NfsSums sums;
  bool understood = false;
  size_t mounts = 0;
  const auto end_mount = [&] {
    if (!mount.empty()) AddNfs(mount, sums, out);
    mount.clear();
    sums = {};
  };
  for (absl::string_view line : Lines(text)) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.empty()) continue;
    if (words[0] == "device") {
      end_mount();
      if (words.size() > kTypeAt && absl::StartsWith(words[kTypeAt], "nfs") &&
          mounts < kMaxMounts) {
        mount = WithoutEscapes(words[kMountAt]);
        if (!IsPathLabel(mount)) mount.clear();
        ++mounts;
      }
    } else if (mount.empty()) {
      continue;
    } else if (words[0] == "bytes:" && words.size() > kServerWrittenAt) {
      const std::optional<double> read = Number(words[kServerReadAt]);
      const std::optional<double> written = Number(words[kServerWrittenAt]);
      if (read) out->Add(kNfsRead, mount, *read);
      if (written) out->Add(kNfsWritten, mount, *written);
      understood = true;
    } else {
      AddOperation(words, &sums);
    }
  }
  end_mount();
  return understood;
}

absl::Status TakeLocalFill(const std::string& proc, Sample* out) {
  TACHO_ASSIGN_OR_RETURN(const auto mounts, ReadMounts(proc));
  for (const Mount& mount : mounts) {
    if (!IsNetworkFileSystem(mount.type)) AddFill(mount, out);
  }
  return absl::OkStatus();
}

absl::Status TakeNetworkFileSystems(const std::string& proc, Sample* out) {
  TACHO_ASSIGN_OR_RETURN(const auto mounts, ReadMounts(proc));
  // A figure that the kernel has counted never hangs.
  if (const auto text = ReadProcFile(proc + "/self/mountstats"); text.ok()) {
    ParseMountstats(*text, out);
  }
  for (const Mount& mount : mounts) {
    if (IsNetworkFileSystem(mount.type)) AddFill(mount, out);
  }
  return absl::OkStatus();
}

}  // namespace tacho::agent
