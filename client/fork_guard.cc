#include "client/fork_guard.h"

#include <sys/mman.h>

namespace tacho::client {

ForkGuard::ForkGuard() {
  void* page = mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;  // Then nothing is recorded, here or in a child.
  // Without it (Linux before 4.14) a child that records would write into its parent's ring.
  madvise(page, 1, MADV_WIPEONFORK);
  owner_ = static_cast<volatile unsigned char*>(page);
  *owner_ = 1;
}

ForkGuard::~ForkGuard() {
  if (owner_ != nullptr) munmap(const_cast<unsigned char*>(owner_), 1);
}

}  // namespace tacho::client
