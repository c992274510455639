#include "storage/db/resume.h"

#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/timed_wait.h"
#include "rocksdb/db.h"
#include "storage/db/disk_watch.h"

namespace tacho::storage {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(250);
// A flush that is to begin does so before there are so many looks.
constexpr int kIdleLooks = 3;
// After an error Resume() returns by itself, long before there are so many looks; but the error may
// be that of a flush that had begun before, and then it waits on.
constexpr int kIdleLooksAfterError = 20;
// More than can be forgotten: writes wait for a flush before there are so many.
constexpr int kRequests = 8;

// A request to write memory out that was about to be served when the write was refused stays in
// RocksDB's queue, but the turn that was meant for it is gone. Each later request brings one turn,
// which serves the oldest: so the newest waits for ever, and with it Resume() or the next writer.
// Once writing goes on, several requests at once bring more turns than the first of them needs, and
// a turn that finds nothing left to do empties the queue.
void ServeForgotten(const std::function<void()>& request_flush) {
  for (int i = 0; i < kRequests; ++i) request_flush();
}

// Brings one turn at a time, and only where RocksDB does nothing while it resumes. A turn too many
// is dangerous: if the flush before it could not write the manifest, version 7.8 writes the tables
// again, gives up without saying so to the memory that it has taken, and every later Resume() waits
// for that memory without end.
class FlushNudger {
 public:
  FlushNudger(rocksdb::DB* db, const std::function<void()>& request_flush,
              const std::atomic<uint64_t>& errors)
      : db_(db),
        request_flush_(request_flush),
        errors_(errors),
        errors_before_(errors),
        thread_(&FlushNudger::Run, this) {}
  ~FlushNudger() {
    {
      absl::MutexLock lock(&mutex_);
      done_ = true;
    }
    thread_.join();
  }

 private:
  void Run() {
    for (int idle = 0;;) {
      {
        absl::MutexLock lock(&mutex_);
        if (AwaitFor(&mutex_, absl::Condition(&done_), kLook)) return;
      }
      uint64_t running = 0;
      db_->GetIntProperty(rocksdb::DB::Properties::kNumRunningFlushes, &running);
      idle = running == 0 ? idle + 1 : 0;
      // A flush reports its error before it counts as ended, so this comes second.
      if (idle < (errors_ == errors_before_ ? kIdleLooks : kIdleLooksAfterError)) continue;
      idle = 0;
      request_flush_();
    }
  }

  rocksdb::DB* const db_;
  const std::function<void()>& request_flush_;
  const std::atomic<uint64_t>& errors_;
  const uint64_t errors_before_;
  absl::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

rocksdb::Status ResumeWriting(rocksdb::DB* db, bool stopped,
                              const std::function<void()>& request_flush,
                              const std::atomic<uint64_t>& errors) {
  // RocksDB checks while it resumes that no file is deleted. It sees to that itself after some
  // failed writes of the manifest only: not after those for a column family, or for a list of logs.
  rocksdb::Status status = db->DisableFileDeletions();
  if (status.ok()) {
    const FlushNudger nudger(db, request_flush, errors);
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
