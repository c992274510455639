// Says to gRPC clients why their connection is refused. A connection that is only closed looks to
// them as if no collector were there.
//
// Speaks as much HTTP/2 as that takes, without TLS: sends SETTINGS, waits for requests, and answers
// each with UNAVAILABLE and the reason. gRPC itself never sees the connection, which costs about a
// KiB here.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tacho::server::edge {

// Thread-safe.
class RefusalAnswers {
 public:
  // At once; more are closed without a word. A flood must not make work for us.
  static constexpr size_t kMost = 32;
  // A client that has connected sends its first request at once.
  static constexpr absl::Duration kPatience = absl::Seconds(1);
  // A preface, settings and a few requests.
  static constexpr size_t kMaxBytes = 16 << 10;

  RefusalAnswers() = default;
  RefusalAnswers(const RefusalAnswers&) = delete;
  RefusalAnswers& operator=(const RefusalAnswers&) = delete;
  ~RefusalAnswers();

  // The caller keeps `fd` and closes it; the connection stays open for the answer. `reason` is one
  // sentence of ASCII.
  void Start(int fd, absl::string_view reason, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers what has come, and closes connections that are done. Does not wait.
  void Step(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    int fd = -1;
    std::string reason;
    absl::Time until;
    std::string received = {};
    size_t at = 0;  // The next frame in `received`.
  };

  // Whether the connection is to be closed.
  static bool StepOne(Waiting* waiting, absl::Time now);

  absl::Mutex mutex_;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::edge
