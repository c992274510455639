#include "tests/chaos/process_clock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/base/check.h"

namespace tacho::chaos {

ProcessClock::ProcessClock(const std::string& library, const std::string& file) {
  if (library.empty()) return;
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  TACHO_CHECK(fd >= 0 && ftruncate(fd, sizeof(int64_t)) == 0);
  void* const page = mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  TACHO_CHECK(page != MAP_FAILED);
  close(fd);
  step_ = static_cast<std::atomic<int64_t>*>(page);
  environment_ = {"LD_PRELOAD=" + library, "TACHO_CLOCK_STEP_FILE=" + file};
}

ProcessClock::~ProcessClock() {
  if (step_ != nullptr) munmap(step_, sizeof(int64_t));
}

void ProcessClock::Set(absl::Duration ahead) {
  if (step_ != nullptr) step_->store(absl::ToInt64Nanoseconds(ahead));
}

}  // namespace tacho::chaos
