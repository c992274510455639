// One request and its answer, between the thread of the front, which has the sockets, and the
// threads that answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/http/browser_guard.h"
#include "server/http/http_message.h"
#include "server/http/http_router.h"
#include "server/http/responder.h"

namespace tacho::server::http {

// Wakes the front: which connections have something to take. Responders may ring it after the front
// has gone. Thread-safe.
class AnswerBell {
 public:
  AnswerBell();
  ~AnswerBell();
  AnswerBell(const AnswerBell&) = delete;
  AnswerBell& operator=(const AnswerBell&) = delete;

  // For poll(); below zero if no descriptors were left.
  int fd() const { return fd_; }
  void Ring(uint64_t connection) ABSL_LOCKS_EXCLUDED(mutex_);
  // Those for which it rang since the last call.
  std::vector<uint64_t> Take() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const int fd_;
  absl::Mutex mutex_;
  std::vector<uint64_t> rung_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe, but for `request` and `route`: the front's until it hands the exchange to a worker.
class HttpExchange {
 public:
  // How the answer is written.
  struct Form {
    Audience audience = Audience::kMachines;
    bool head_only = false;  // HEAD.
    bool chunked = true;     // HTTP/1.1.
    bool keep_open = false;
    bool packs = false;  // The client takes gzip.
    std::function<absl::Time()> now;
  };
  // The front sends this next.
  struct Piece {
    std::string bytes;
    bool begun = false;  // It is, or follows, the head of a streamed answer.
    bool ended = false;  // Nothing follows.
    bool cut = false;    // And the client must see that something is missing.
    int status = 0;      // 0: there is no head yet.
  };

  HttpExchange(HttpRequest asked, const Route* to, Form form, uint64_t connection,
               std::shared_ptr<AnswerBell> bell);

  HttpRequest request;
  const Route* const route;  // Not owned. Null: the request is refused.

  // For the front's thread.
  Piece Take() ABSL_LOCKS_EXCLUDED(mutex_);
  // So many bytes are on their way.
  void OnSent(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nobody takes the answer any more.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsOpen() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool keep_open() const { return form_.keep_open; }
  // Its handler may take as long as it likes.
  bool AnswersLater() const { return route != nullptr && route->later != nullptr; }

  // As Responder.
  void Answer(HttpResponse response) ABSL_LOCKS_EXCLUDED(mutex_);
  void Begin(HttpResponse head) ABSL_LOCKS_EXCLUDED(mutex_);
  void Write(absl::string_view bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void Finish() ABSL_LOCKS_EXCLUDED(mutex_);
  size_t unsent() const ABSL_LOCKS_EXCLUDED(mutex_);
  void OnRoom(std::function<void()> room) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnGone(std::function<void()> gone) ABSL_LOCKS_EXCLUDED(mutex_);
  // The handler ends without an end of the answer.
  void Abandon() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Append(absl::string_view bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Form form_;
  const uint64_t connection_;
  const std::shared_ptr<AnswerBell> bell_;

  mutable absl::Mutex mutex_;
  std::string pending_ ABSL_GUARDED_BY(mutex_);  // Not yet taken by the front.
  size_t unsent_ ABSL_GUARDED_BY(mutex_) = 0;    // That, and what it has not sent.
  int status_ ABSL_GUARDED_BY(mutex_) = 0;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> room_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> gone_ ABSL_GUARDED_BY(mutex_);
};

// The responder of an exchange for its handler.
ResponderPtr MakeResponder(std::shared_ptr<HttpExchange> exchange);

}  // namespace tacho::server::http
