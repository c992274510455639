#include "storage/db/resume.h"

#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/timed_wait.h"
#include "rocksdb/db.h"
#include "storage/db/disk_watch.h"

namespace tacho::storage {
namespace {

// A flush that is merely slow does not mind.
constexpr absl::Duration kNudge = absl::Milliseconds(500);
// More than can be forgotten: writes wait for a flush before there are so many.
constexpr int kRequests = 8;

// A request to write memory out that was about to be served when the write was refused stays in
// RocksDB's queue, but the turn that was meant for it is gone. Each later request brings one turn,
// which serves the oldest: so the newest waits for ever, and with it Resume() or the next writer.
// Several requests at once bring more turns than the first of them needs, and a turn that finds
// nothing left to do empties the queue.
void ServeForgotten(const std::function<void()>& request_flush) {
  for (int i = 0; i < kRequests; ++i) request_flush();
}

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
      ServeForgotten(request_flush_);
    }
  }

  const std::function<void()>& request_flush_;
  absl::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

rocksdb::Status ResumeWriting(rocksdb::DB* db, bool stopped,
                              const std::function<void()>& request_flush) {
  // RocksDB checks while it resumes that no file is deleted. It sees to that itself after some
  // failed writes of the manifest only: not after those for a column family, or for a list of logs.
  rocksdb::Status status = db->DisableFileDeletions();
  if (status.ok()) {
    const FlushNudger nudger(request_flush);
    status = db->Resume();
  }
  if (status.ok() && stopped) {
    DiskWatch::PutMarker(db);  // So that there is something to be written out.
    ServeForgotten(request_flush);
  }
  db->EnableFileDeletions(/*force=*/false).PermitUncheckedError();
  return status;
}

}  // namespace tacho::storage
