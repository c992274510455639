// Distinguishes a process from its children. Internal to the recorder.
#pragma once

namespace tacho::client {

// A trainer forks its data loaders. They have a copy of its recorder, which they must not use.
class ForkGuard {
 public:
  ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();

  // Whether this is the process that made the guard, and the guard works. No system call.
  bool InOwner() const { return owner_ != nullptr && *owner_ == 1; }

 private:
  // 1 in this process; the kernel wipes it in children.
  volatile unsigned char* owner_ = nullptr;
};

}  // namespace tacho::client
