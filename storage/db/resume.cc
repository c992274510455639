#include "storage/db/resume.h"

#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/timed_wait.h"
#include "rocksdb/db.h"

namespace tacho::storage {
namespace {

// A flush that is merely slow does not mind.
constexpr absl::Duration kNudge = absl::Milliseconds(500);

// Resume() queues a request to write memory out and waits until it has been served. But a request
// that was about to be served when the write was refused is still in the queue, without a thread
// assigned to it. The thread for the new request serves the old one, and Resume() waits for ever:
// unless there is another request.
class FlushNudger {
 public:
  explicit FlushNudger(const std::function<void()>& request_flush)
      : request_flush_(request_flush), thread_(&FlushNudger::Run, this) {}
  ~FlushNudger() {
    {
      absl::MutexLock lock(&mutex_);
      done_ = true;
    }
    thread_.join();
  }

 private:
  void Run() {
    for (;;) {
      {
        absl::MutexLock lock(&mutex_);
        if (AwaitFor(&mutex_, absl::Condition(&done_), kNudge)) return;
      }
      request_flush_();
    }
  }

  const std::function<void()>& request_flush_;
  absl::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

rocksdb::Status ResumeWriting(rocksdb::DB* db, const std::function<void()>& request_flush) {
  // RocksDB checks while it resumes that no file is deleted. It sees to that itself after some
  // failed writes of the manifest only: not after those for a column family, or for a list of logs.
  rocksdb::Status status = db->DisableFileDeletions();
  if (status.ok()) {
    const FlushNudger nudger(request_flush);
    status = db->Resume();
  }
  db->EnableFileDeletions(/*force=*/false).PermitUncheckedError();
  return status;
}

}  // namespace tacho::storage
