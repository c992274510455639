// An HTTP server that gives prepared answers, as slowly as the test wants.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tacho::testing {

// On 127.0.0.1. Every connection is answered by the bytes of the moment, then closed.
class CannedHttpServer {
 public:
  CannedHttpServer();
  ~CannedHttpServer();
  CannedHttpServer(const CannedHttpServer&) = delete;
  CannedHttpServer& operator=(const CannedHttpServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/metrics"; }
  std::string authority() const { return "127.0.0.1:" + std::to_string(port_); }

  // A whole answer, head included.
  void AnswerBytes(std::string bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // 200 with a Content-Length.
  void Answer(const std::string& body, const std::string& content_type = "text/plain");
  // Connections are accepted and never answered.
  void AnswerNothing() { AnswerBytes(""); }
  // Answers each request, its body included, with what `answer` makes of it, head and body, instead
  // of the bytes.
  // Called on the server's thread.
  void AnswerEach(std::function<std::string(const std::string& request)> answer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::string last_request() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Serve() ABSL_LOCKS_EXCLUDED(mutex_);
  void ServeOne(int fd) ABSL_LOCKS_EXCLUDED(mutex_);

  int listener_ = -1;
  uint16_t port_ = 0;
  absl::Mutex mutex_;
  std::string bytes_ ABSL_GUARDED_BY(mutex_);
  std::function<std::string(const std::string&)> answer_ ABSL_GUARDED_BY(mutex_);
  std::string request_ ABSL_GUARDED_BY(mutex_);
  int connection_ ABSL_GUARDED_BY(mutex_) = -1;
  std::thread thread_;
};

}  // namespace tacho::testing
