// Creates a ring and maps it. Internal to the writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "client/ring/ring_format.h"

namespace tacho::client {

// Agents that run as another user may read the ring; only its owner writes.
inline constexpr uint32_t kDefaultRingMode = 0644;

struct RingFileOptions {
  std::string directory;
  std::string job;
  uint32_t task = 0;
  uint32_t attempt = 0;
  uint64_t record_bytes = kDefaultRecordBytes;  // A power of two within the limits of the format.
  int64_t created_unix_ns = 0;
  uint32_t mode = kDefaultRingMode;  // Permissions of the file, whatever the umask.
};

// A ring of this process, mapped for writing. All its bytes are allocated when it is created, so
// that no later store can fail for want of space (which would be a SIGBUS).
class RingFile {
 public:
  RingFile() = default;
  RingFile(const RingFile&) = delete;
  RingFile& operator=(const RingFile&) = delete;
  ~RingFile();

  // Called once. Creates the directory (its last component) and the file. Returns an empty string,
  // or what went wrong; then nothing is mapped and no file is left.
  std::string Create(const RingFileOptions& options);

  // The mapping, all zero behind its RingHeader; nullptr without a ring.
  char* base() const { return base_; }
  uint64_t record_bytes() const { return record_bytes_; }
  const std::string& path() const { return path_; }

 private:
  std::string Fill(int fd, const RingFileOptions& options);

  std::string path_;
  int fd_ = -1;  // Kept open: its lock shows the agent that this process lives.
  char* base_ = nullptr;
  size_t size_ = 0;
  uint64_t record_bytes_ = 0;
};

// Field 22 of a /proc/<pid>/stat file: when the process started, in clock ticks since boot. 0 if
// the file cannot be read.
uint64_t ProcessStartTicks(const std::string& stat_path);

}  // namespace tacho::client
