// A keep-alive HTTP connection that sends prepared requests, one after the answer to the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::bench {

// A complete HTTP/1.1 request, and how many samples it carries.
struct Post {
  std::string request;
  uint64_t samples = 0;
};

// One thread at a time. Problems end the process: a benchmark that lost requests has no result.
class PostConnection {
 public:
  PostConnection(uint16_t port, std::vector<Post> posts);
  PostConnection(PostConnection&& other) noexcept;
  PostConnection(const PostConnection&) = delete;
  ~PostConnection();

  int fd() const { return fd_; }
  bool done() const { return answered_ == posts_.size(); }
  const std::vector<float>& latencies_ms() const { return latencies_ms_; }
  uint64_t answered_samples() const { return answered_samples_; }

  // Lets `requests` more be sent; the first is sent at once if no answer is awaited.
  void Allow(uint64_t requests);
  // The socket can be read or written. Returns whether there is another one now: a server may end a
  // connection after some answers, and says so in the last of them.
  bool OnReady();

 private:
  void SendMore();
  // Whether the server ends the connection.
  bool Receive();

  const uint16_t port_;
  int fd_;
  std::vector<Post> posts_;
  uint64_t allowed_ = 0;
  uint64_t answered_ = 0;
  uint64_t answered_samples_ = 0;
  bool awaiting_ = false;  // posts_[answered_] is on its way.
  size_t sent_bytes_ = 0;  // Bytes of it.
  double sent_at_ = 0;
  std::string answer_;
  std::vector<float> latencies_ms_;
};

}  // namespace tacho::bench
