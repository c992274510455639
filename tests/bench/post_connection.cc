#include "tests/bench/post_connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/bench/load_report.h"

namespace tacho::bench {
namespace {

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

int ConnectTo(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) Die("socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) Die("connect");
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) Die("fcntl");
  return fd;
}

}  // namespace

PostConnection::PostConnection(uint16_t port, std::vector<Post> posts)
    : port_(port), fd_(ConnectTo(port)), posts_(std::move(posts)) {
  latencies_ms_.reserve(posts_.size());
}

PostConnection::PostConnection(PostConnection&& other) noexcept
    : port_(other.port_), fd_(std::exchange(other.fd_, -1)), posts_(std::move(other.posts_)) {}

PostConnection::~PostConnection() {
  if (fd_ >= 0) close(fd_);
}

void PostConnection::Allow(uint64_t requests) {
  allowed_ += requests;
  SendMore();
}

bool PostConnection::OnReady() {
  const bool ends = Receive();
  if (ends) {
    close(fd_);
    fd_ = ConnectTo(port_);
  }
  SendMore();
  return ends;
}

void PostConnection::SendMore() {
  if (!awaiting_) {
    if (answered_ == posts_.size() || answered_ == allowed_) return;
    awaiting_ = true;
    sent_bytes_ = 0;
    sent_at_ = MonotonicSeconds();
  }
  const std::string& post = posts_[answered_].request;
  while (sent_bytes_ < post.size()) {
    const ssize_t sent =
        send(fd_, post.data() + sent_bytes_, post.size() - sent_bytes_, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) Die("send");
    sent_bytes_ += static_cast<size_t>(sent);
  }
}

bool PostConnection::Receive() {
  char block[4096];
  const ssize_t count = recv(fd_, block, sizeof block, 0);
  if (count < 0 && errno == EAGAIN) return false;
  if (count <= 0) Die("recv");
  answer_.append(block, static_cast<size_t>(count));
  // A 204 has no body, so its headers are all of it; another answer ends the load anyway.
  if (answer_.find("\r\n\r\n") == std::string::npos) return false;
  if (!awaiting_ || !answer_.starts_with("HTTP/1.1 204")) {
    std::fprintf(stderr, "expected a 204, got: %s\n", answer_.c_str());
    std::exit(1);
  }
  const bool ends = answer_.find("\r\nConnection: close\r\n") != std::string::npos;
  answer_.clear();
  latencies_ms_.push_back(static_cast<float>((MonotonicSeconds() - sent_at_) * 1e3));
  answered_samples_ += posts_[answered_].samples;
  posts_[answered_++].request = std::string();
  awaiting_ = false;
  return ends;
}

}  // namespace tacho::bench
