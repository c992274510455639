// An output stream on a file descriptor that remembers why writing failed.
#pragma once

#include <array>
#include <streambuf>

namespace tacho::ctl {

// Buffers until it is full or flushed. After the first failure nothing more is written and the
// stream on top turns bad. Does not own the descriptor. Not thread-safe.
class FdStreambuf : public std::streambuf {
 public:
  explicit FdStreambuf(int fd);
  ~FdStreambuf() override { FdStreambuf::sync(); }
  FdStreambuf(const FdStreambuf&) = delete;
  FdStreambuf& operator=(const FdStreambuf&) = delete;

  // errno of the first failed write, 0 if there was none.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  const int fd_;
  int error_ = 0;
  std::array<char, size_t{64} << 10> buffer_;
};

}  // namespace tacho::ctl
