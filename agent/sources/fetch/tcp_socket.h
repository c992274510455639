// A connection whose every step has a deadline.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::agent {

// Deadlines are MonotonicNow()'s. One thread.
class TcpSocket {
 public:
  explicit TcpSocket(int fd) : fd_(fd) {}
  TcpSocket(const TcpSocket&) = delete;
  TcpSocket& operator=(const TcpSocket&) = delete;
  ~TcpSocket();

  int fd() const { return fd_; }
  //   DEADLINE_EXCEEDED, UNAVAILABLE
  absl::Status AwaitReadable(absl::Time deadline) const;
  absl::Status AwaitWritable(absl::Time deadline) const;
  absl::Status Send(absl::string_view bytes, absl::Time deadline) const;
  // Up to `size` bytes; 0 at the end.
  absl::StatusOr<size_t> Receive(char* buffer, size_t size, absl::Time deadline) const;

 private:
  const int fd_;
};

// To the first of the name's addresses that answers. Looking the name up may take longer than that
// where the resolver hangs.
//   UNAVAILABLE         no such name, or nobody listens; the text says which.
//   DEADLINE_EXCEEDED   nothing answers.
absl::StatusOr<std::unique_ptr<TcpSocket>> ConnectTcp(const std::string& host,
                                                      const std::string& port, absl::Time deadline);

}  // namespace tacho::agent
