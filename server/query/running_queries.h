// The queries and watches that are at work now, for those who run the collector.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/query/read/query_control.h"

namespace tacho::server::query {

struct RunningQuery {
  std::string method;  // As in tacho_query_requests_total.
  std::string caller;  // The name of the caller's rights.
  std::string peer;    // As security::PeerOf().
  std::string job;     // The job that it names; empty: none.
  absl::Time began;    // By the collector's clock.
  bool watch = false;
  uint64_t samples_read = 0;
};

// Thread-safe.
class RunningQueries {
  struct Row {
    RunningQuery query;
    const QueryControl* control;
  };

 public:
  // Lists a query from Begin() until End() or the entry's destruction. For one thread at a time.
  class Entry {
   public:
    explicit Entry(RunningQueries* all) : all_(all) {}
    ~Entry() { End(); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    // `control` counts what the query reads. It is not owned, and must outlive the listing. Once.
    void Begin(RunningQuery query, const QueryControl* control);
    void End();

   private:
    RunningQueries* const all_;
    bool listed_ = false;
    std::list<Row>::iterator row_;
  };

  // At most so many, in the order in which they began.
  std::vector<RunningQuery> Oldest(size_t at_most) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  std::list<Row> rows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::query
