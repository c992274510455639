#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <ostream>
#include <streambuf>
#include <string>
#include <system_error>
#include <vector>

#include "client/ctl/commands/run.h"
#include "client/ctl/line/environment.h"

namespace {

// An output buffer on a file descriptor that remembers why writing failed. After the first failure
// nothing more is written and the stream on top turns bad. Does not own the descriptor.
class FdStreambuf : public std::streambuf {
 public:
  explicit FdStreambuf(int fd) : fd_(fd) { Empty(); }
  ~FdStreambuf() override { FdStreambuf::sync(); }
  FdStreambuf(const FdStreambuf&) = delete;
  FdStreambuf& operator=(const FdStreambuf&) = delete;

  // errno of the first failed write, 0 if there was none.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) {
      *pptr() = traits_type::to_char_type(c);
      pbump(1);
    }
    return traits_type::not_eof(c);
  }

  int sync() override {
    const char* at = pbase();
    while (error_ == 0 && at < pptr()) {
      const ssize_t written = write(fd_, at, static_cast<size_t>(pptr() - at));
      if (written >= 0) {
        at += written;
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    Empty();
    return error_ == 0 ? 0 : -1;
  }

 private:
  void Empty() { setp(buffer_.data(), buffer_.data() + buffer_.size()); }

  const int fd_;
  int error_ = 0;
  std::array<char, size_t{64} << 10> buffer_;
};

}  // namespace

int main(int argc, char** argv) {
  // 'tachoctl query … | head' is no failure: write() reports EPIPE, and the program ends quietly.
  std::signal(SIGPIPE, SIG_IGN);
  FdStreambuf buffer(STDOUT_FILENO);
  std::ostream out(&buffer);
  tacho::ctl::Environment env = tacho::ctl::RealEnvironment();
  env.out = &out;
  const int result = tacho::ctl::Run(std::vector<std::string>(argv + 1, argv + argc), env);
  out.flush();
  if (buffer.error() == 0 || buffer.error() == EPIPE) return result;
  std::cerr << "tachoctl: cannot write the answer: "
            << std::generic_category().message(buffer.error()) << "\n";
  return result == tacho::ctl::kOk ? tacho::ctl::kNothing : result;
}
