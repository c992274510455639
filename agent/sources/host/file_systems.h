// How full file systems are, and what NFS mounts do.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/sources/rows/sample.h"

namespace tacho::agent {

struct Mount {
  std::string path;
  std::string type;  // "ext4", "nfs4", …
};

// /proc/self/mounts, of file systems that hold files of their own: no proc, cgroup, overlay of
// containers, bind mounts of single files. Only the first mount of a device counts. At most
// kMaxMounts. Octal escapes of the paths ("\040") are undone.
constexpr size_t kMaxMounts = 128;
std::vector<Mount> ParseMounts(absl::string_view text);

// Whether it is on other machines: asking it may hang as long as they do not answer.
bool IsNetworkFileSystem(absl::string_view type);

// Size and room of each, by statvfs(2), which may hang on network file systems.
void AddFill(const Mount& mount, Sample* out);

// /proc/self/mountstats: bytes, calls, retransmissions and times of each NFS mount.
bool ParseMountstats(absl::string_view text, Sample* out);

// Samples the machine's own file systems, or those on the network. The latter are a source of their
// own (SampledSource), so that a server that is away silences nothing else.
//   UNAVAILABLE  the list of mounts cannot be read.
absl::Status TakeLocalFill(const std::string& proc, Sample* out);
absl::Status TakeNetworkFileSystems(const std::string& proc, Sample* out);

}  // namespace tacho::agent
