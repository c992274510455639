// Creates the file of a ring so that nobody ever sees half of one: it is filled under a hidden name
// and linked to its own when it is complete.
#include "client/ring/ring_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "client/ring/ring_text.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"

namespace tacho::client {
namespace {

// A process that opens more recorders of one task than this gets no further one.
constexpr uint32_t kMaxCopies = 16;

// Until the file is complete.
constexpr mode_t kHiddenMode = 0600;
// Another user who may write could cut the file short under the trainer's mapping, which would kill
// the trainer.
constexpr mode_t kAllowedModes = 0644;
constexpr mode_t kDirectoryMode = 0755;

std::string Trouble(const std::string& doing, int error) {
  char buffer[128];
  // The GNU form, which returns the text wherever it lies.
  return doing + ": " + strerror_r(error, buffer, sizeof(buffer));
}

bool LockWholeFile(int fd) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

RingHeader MakeHeader(const RingFileOptions& options, bool locked) {
  RingHeader header = {};
  std::memcpy(header.magic, kRingMagic, sizeof(kRingMagic));
  header.version = kRingVersion;
  header.header_bytes = kRingHeaderBytes;
  header.definition_bytes = kDefinitionBytes;
  header.block_bytes = kBlockBytes;
  header.record_bytes = options.record_bytes;
  header.pid = static_cast<uint32_t>(getpid());
  header.task = options.task;
  header.process_start_ticks = ProcessStartTicks("/proc/self/stat");
  header.created_unix_ns = options.created_unix_ns;
  header.attempt = options.attempt;
  header.flags = locked ? kFlagLocked : 0;
  TACHO_CHECK(options.job.size() <= sizeof(header.job));
  header.job_bytes = static_cast<uint32_t>(options.job.size());
  std::memcpy(header.job, options.job.data(), options.job.size());
  header.crc = ExtendCrc32c(0, &header, kHeaderCrcOffset);
  return header;
}

}  // namespace

uint64_t ProcessStartTicks(const std::string& stat_path) {
  const int fd = open(stat_path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[2048];
  const ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (got <= 0) return 0;
  text[got] = '\0';
  // Field 2 is the command in parentheses and may hold anything, so count from its last one.
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  uint64_t ticks = 0;
  for (at = at == nullptr ? "" : at + 1; *at >= '0' && *at <= '9'; ++at) {
    ticks = ticks * 10 + static_cast<uint64_t>(*at - '0');
  }
  return ticks;
}

RingFile::~RingFile() {
  if (base_ != nullptr) munmap(base_, size_);
  if (fd_ >= 0) close(fd_);
}

std::string RingFile::Create(const RingFileOptions& options) {
  TACHO_DCHECK(base_ == nullptr && fd_ < 0);
  TACHO_DCHECK(std::has_single_bit(options.record_bytes));
  mkdir(options.directory.c_str(), kDirectoryMode);  // Without a directory, open() says why.
  const auto pid = static_cast<uint32_t>(getpid());
  const std::string prefix = options.directory + "/";
  // The file gets its name when it is complete. A name that begins with a dot is no ring's.
  const std::string hidden = prefix + "." + RingFileName(options.job, options.task, pid, 0) + "." +
                             std::to_string(options.created_unix_ns);
  const int fd =
      open(hidden.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kHiddenMode);
  if (fd < 0) return Trouble("create " + hidden, errno);

  std::string trouble = Fill(fd, options);
  for (uint32_t copy = 0; trouble.empty(); ++copy) {
    path_ = prefix + RingFileName(options.job, options.task, pid, copy);
    // Unlike rename(), this never replaces a ring that the agent may not have read to its end.
    if (link(hidden.c_str(), path_.c_str()) == 0) break;
    if (errno != EEXIST || copy + 1 == kMaxCopies) trouble = Trouble("name " + path_, errno);
  }
  unlink(hidden.c_str());
  if (trouble.empty()) {
    fd_ = fd;
    return trouble;
  }
  if (base_ != nullptr) munmap(base_, size_);
  base_ = nullptr;
  path_.clear();
  close(fd);
  return trouble;
}

std::string RingFile::Fill(int fd, const RingFileOptions& options) {
  size_ = kRingHeaderBytes + kDefinitionBytes + options.record_bytes;
  const int refused = posix_fallocate(fd, 0, static_cast<off_t>(size_));
  if (refused != 0) return Trouble("allocate a ring in " + options.directory, refused);
  // Populated, so that no page fault falls into the trainer's steps.
  void* base =
      mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, /*offset=*/0);
  if (base == MAP_FAILED) return Trouble("map a ring", errno);
  base_ = static_cast<char*>(base);
  record_bytes_ = options.record_bytes;
  const RingHeader header = MakeHeader(options, LockWholeFile(fd));
  std::memcpy(base_, &header, sizeof(header));
  // Not left to the umask: with 077, which is common, no agent of another user could read it.
  if (fchmod(fd, options.mode & kAllowedModes) != 0)
    return Trouble("set the mode of a ring", errno);
  return "";
}

}  // namespace tacho::client
