#include "client/ctl/text/fd_stream.h"

#include <unistd.h>

#include <cerrno>

namespace tacho::ctl {

FdStreambuf::FdStreambuf(int fd) : fd_(fd) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

FdStreambuf::int_type FdStreambuf::overflow(int_type c) {
  if (sync() != 0) return traits_type::eof();
  if (!traits_type::eq_int_type(c, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(c);
    pbump(1);
  }
  return traits_type::not_eof(c);
}

int FdStreambuf::sync() {
  const char* at = pbase();
  while (error_ == 0 && at < pptr()) {
    const ssize_t written = write(fd_, at, static_cast<size_t>(pptr() - at));
    if (written >= 0) {
      at += written;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return error_ == 0 ? 0 : -1;
}

}  // namespace tacho::ctl
