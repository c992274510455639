// A client of the HTTP port that sends any bytes, at any time.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "gtest/gtest.h"

namespace tacho::server::http {

class RawClient {
 public:
  explicit RawClient(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // A server that says nothing fails a test and does not hang it.
    const timeval patience = {20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  RawClient(int port, const std::string& bytes) : RawClient(port) { Send(bytes); }
  ~RawClient() { close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  int fd() const { return fd_; }
  void Send(const std::string& bytes) const {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // False once the other side has closed.
  bool TrySend(const std::string& bytes) const {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0;
  }
  // Until the other side closes.
  std::string Read() const {
    std::string answer;
    char buffer[65536];
    for (ssize_t got; (got = recv(fd_, buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(got));
    }
    return answer;
  }
  // One answer, whose body has a length or comes in chunks; of it all bytes as they came. Less if
  // the other side closes before.
  std::string ReadAnswer() const {
    std::string answer = ReadUntil("\r\n\r\n");
    const size_t length = answer.find("Content-Length: ");
    if (length != std::string::npos)
      return answer + ReadBytes(std::stoul(answer.substr(length + 16)));
    if (answer.find("Transfer-Encoding: chunked") == std::string::npos) return answer;
    for (;;) {
      const std::string size = ReadUntil("\r\n");
      if (size.empty()) return answer;
      const size_t bytes = std::stoul(size, nullptr, 16);
      answer += size + ReadBytes(bytes + 2);
      if (bytes == 0) return answer;
    }
  }
  // Up to and with these bytes.
  std::string ReadUntil(const std::string& end) const {
    std::string bytes;
    while (bytes.size() < end.size() || bytes.compare(bytes.size() - end.size(), end.size(), end)) {
      char byte = 0;
      if (recv(fd_, &byte, 1, 0) != 1) return bytes;
      bytes.push_back(byte);
    }
    return bytes;
  }
  std::string ReadBytes(size_t count) const {
    std::string bytes(count, '\0');
    size_t got = 0;
    while (got < count) {
      const ssize_t more = recv(fd_, bytes.data() + got, count - got, 0);
      if (more <= 0) break;
      got += static_cast<size_t>(more);
    }
    bytes.resize(got);
    return bytes;
  }
  bool IsClosed() const {
    char byte = 0;
    const ssize_t got = recv(fd_, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

 private:
  const int fd_;
};

}  // namespace tacho::server::http
