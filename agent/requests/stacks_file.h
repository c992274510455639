// The file into which a trainer's faulthandler writes its stacks on a signal.
//
//   RING.stacks:   tacho-stacks 1 41\n      the signal; then what the handler has written
//
// The trainer makes it beside its ring, and opens it for appending; see stacks= in
// client/python/tacho/recording.py. Whoever reads a dump cuts the file back to its first line.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/sources/rings/trainer_process.h"

namespace tacho::agent {

// A file that has grown past this, because nobody may cut it back, is not written to any more; and
// no more of one dump is read.
inline constexpr uint64_t kMaxStacksFile = 4u << 20;
inline constexpr uint64_t kMaxStacksDump = 1u << 20;

// One thread.
class StacksFile {
 public:
  //   NOT_FOUND            there is none: the trainer does not allow this.
  //   FAILED_PRECONDITION  the file is not one that a trainer of ours made, or has grown too large.
  //   PERMISSION_DENIED    it may not be read.
  static absl::StatusOr<StacksFile> Open(const std::string& ring);
  StacksFile(StacksFile&& other) noexcept;
  StacksFile& operator=(StacksFile&&) = delete;
  ~StacksFile();

  // Sends the signal, if the process has a handler for it.
  //   FAILED_PRECONDITION  it has none.
  //   others               as TrainerProcess::Signal().
  absl::Status Request(const TrainerProcess& process, uint32_t pid);

  // What the handler has written since Request(): waits until it has begun and has been quiet for a
  // moment. `until` is MonotonicNow()'s.
  //   DEADLINE_EXCEEDED  it has written nothing: no thread of the trainer takes signals.
  absl::StatusOr<std::string> Take(absl::Time until);

 private:
  StacksFile(int fd, int signal, uint64_t begin) : fd_(fd), signal_(signal), begin_(begin) {}
  uint64_t Size() const;

  int fd_;
  int signal_;
  uint64_t begin_;      // The handler writes from here on, behind the first line.
  uint64_t asked_ = 0;  // The size at Request().
};

}  // namespace tacho::agent
