// Query.WatchConditions of all jobs in a cluster: one stream from those of all members.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "server/cluster/asking/forward_calls.h"
#include "tacho/v1/query.grpc.pb.h"

namespace tacho::server::cluster {

// Passes on what members send, of jobs that they keep. It says `live` once all members have. A
// member's next message is read when the one before has left. The first member whose stream ends
// ends the watch, with its status. Deletes itself when gRPC is done with it.
class MergedConditionWatch final : public grpc::ServerWriteReactor<v1::WatchConditionsResponse> {
 public:
  // `request` is that of gRPC's call.
  MergedConditionWatch(ForwardCalls* calls, const Asker& asker,
                       const v1::WatchConditionsRequest* request);
  ~MergedConditionWatch() override;

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCancel() override { CancelAll(); }
  void OnDone() override { delete this; }

 private:
  class From;

  void CancelAll();
  // Writes the message that `from` has read, now or after others.
  void OnMessage(From* from) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  const Membership& membership_;
  std::vector<std::unique_ptr<From>> from_;
  absl::Mutex mutex_;
  std::deque<From*> ready_ ABSL_GUARDED_BY(mutex_);  // The first one's message is with gRPC.
  size_t not_live_ ABSL_GUARDED_BY(mutex_);          // Members that have not said so.
  size_t open_ ABSL_GUARDED_BY(mutex_);              // Members whose streams have not ended.
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);  // Of the first that ended.
};

}  // namespace tacho::server::cluster
