#include "tests/support/canned_http_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::testing {
namespace {

// Of head and body.
size_t BytesOf(const std::string& head) {
  constexpr char kLength[] = "\r\nContent-Length: ";
  const size_t end = head.find("\r\n\r\n") + 4;
  const size_t length = head.find(kLength);
  if (length == std::string::npos || length > end) return end;
  return end + std::strtoul(head.c_str() + length + sizeof(kLength) - 1, nullptr, 10);
}

}  // namespace

CannedHttpServer::CannedHttpServer() {
  listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 8) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Serve(); });
}

CannedHttpServer::~CannedHttpServer() {
  ::shutdown(listener_, SHUT_RDWR);  // Ends accept().
  {
    // And recv(): gRPC keeps a connection that says nothing for 20 s.
    absl::MutexLock lock(&mutex_);
    if (connection_ >= 0) ::shutdown(connection_, SHUT_RDWR);
  }
  thread_.join();
  ::close(listener_);
}

void CannedHttpServer::AnswerBytes(std::string bytes) {
  absl::MutexLock lock(&mutex_);
  bytes_ = std::move(bytes);
}

void CannedHttpServer::Answer(const std::string& body, const std::string& content_type) {
  AnswerBytes(absl::StrCat("HTTP/1.1 200 OK\r\nContent-Type: ", content_type,
                           "\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
}

void CannedHttpServer::AnswerEach(std::function<std::string(const std::string&)> answer) {
  absl::MutexLock lock(&mutex_);
  answer_ = std::move(answer);
}

std::string CannedHttpServer::last_request() {
  absl::MutexLock lock(&mutex_);
  return request_;
}

void CannedHttpServer::Serve() {
  for (;;) {
    const int fd = ::accept(listener_, nullptr, nullptr);
    if (fd < 0) return;
    {
      absl::MutexLock lock(&mutex_);
      connection_ = fd;
    }
    ServeOne(fd);
    absl::MutexLock lock(&mutex_);
    connection_ = -1;
    ::close(fd);
  }
}

void CannedHttpServer::ServeOne(int fd) {
  std::string request;
  char buffer[4096];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = ::recv(fd, buffer, sizeof(buffer), 0);
    if (got <= 0) return;
    request.append(buffer, static_cast<size_t>(got));
  }
  for (const size_t whole = BytesOf(request); request.size() < whole;) {
    const ssize_t got = ::recv(fd, buffer, sizeof(buffer), 0);
    if (got <= 0) return;
    request.append(buffer, static_cast<size_t>(got));
  }
  std::string bytes;
  std::function<std::string(const std::string&)> answer;
  {
    absl::MutexLock lock(&mutex_);
    request_ = request;
    bytes = bytes_;
    answer = answer_;
  }
  if (answer) bytes = answer(request);
  if (bytes.empty()) {
    while (::recv(fd, buffer, sizeof(buffer), 0) > 0) {  // Until the client gives up.
    }
    return;
  }
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<size_t>(sent);
  }
}

}  // namespace tacho::testing
