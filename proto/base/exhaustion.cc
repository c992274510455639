// Our own code throws nothing, but std::thread and operator new do, and gRPC aborts when it gets no
// thread. What runs here may run where nothing can be allocated any more, and in a handler of a
// signal: only system calls and the stack.
#include "proto/base/exhaustion.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

namespace tacho {
namespace {

constexpr int kExitStatus = 1;
// A thread takes 8 MiB of address space by default, and malloc up to 64 MiB for its heap.
constexpr uint64_t kHardlyAny = uint64_t{64} << 20;

const char* program_name = "";

// Up to 512 characters; the rest is cut off.
class Line {
 public:
  Line& operator<<(const char* text) {
    const size_t size = std::strlen(text);
    const size_t fits = size < sizeof(text_) - size_ ? size : sizeof(text_) - size_;
    std::memcpy(text_ + size_, text, fits);
    size_ += fits;
    return *this;
  }
  Line& operator<<(uint64_t number) {
    const auto end = std::to_chars(text_ + size_, text_ + sizeof(text_), number);
    if (end.ec == std::errc()) size_ = static_cast<size_t>(end.ptr - text_);
    return *this;
  }
  void Write() const {
    // Nobody is left to hear that it did not work.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text_, size_);
  }

 private:
  char text_[512];
  size_t size_ = 0;
};

// UINT64_MAX: not limited.
uint64_t AddressSpaceLimit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

// 0 if it is not known.
uint64_t AddressSpaceInUse() {
  char text[32];
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t size = ::read(file, text, sizeof(text));
  ::close(file);
  uint64_t pages = 0;
  if (size > 0) std::from_chars(text, text + size, pages);
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

[[noreturn]] void Explain(const char* what) {
  Line line;
  line << program_name << ": " << what;
  const uint64_t limit = AddressSpaceLimit();
  if (limit != UINT64_MAX) {
    line << "; its address space is limited to " << (limit >> 20) << " MiB (ulimit -v, RLIMIT_AS)";
  }
  line << ": raise the limits of memory and threads, or give the machine more memory\n";
  line.Write();
  ::_exit(kExitStatus);
}

[[noreturn]] void OnTerminate() {
  if (std::current_exception() != nullptr) {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      Explain("no memory is left");
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::resource_unavailable_try_again) {
        Explain("the system gives it no other thread");
      }
    } catch (...) {
    }
  }
  std::abort();
}

void OnAbort(int signal) {
  const uint64_t limit = AddressSpaceLimit();
  if (limit != UINT64_MAX && AddressSpaceInUse() + kHardlyAny > limit) {
    Explain("hardly any memory is left");
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void ExplainExhaustion(const char* program) {
  program_name = program;
  std::set_terminate(OnTerminate);
  std::signal(SIGABRT, OnAbort);
}

}  // namespace tacho
