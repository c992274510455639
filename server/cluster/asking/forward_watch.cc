#include "server/cluster/asking/forward_watch.h"

#include <algorithm>

#include "grpcpp/generic/generic_stub.h"

namespace tacho::server::cluster {

// The stream of one member. It does not end while its message waits to be written, because it holds
// the call until a read fails.
class MergedConditionWatch::From final
    : public grpc::ClientBidiReactor<v1::WatchConditionsRequest, v1::WatchConditionsResponse> {
 public:
  From(MergedConditionWatch* to, ForwardCalls* calls, uint32_t shard, const Asker& asker)
      : to_(to), call_(calls, shard, asker) {}

  void Start(const v1::WatchConditionsRequest* request) {
    grpc::TemplatedGenericStub<v1::WatchConditionsRequest, v1::WatchConditionsResponse>(
        call_.channel())
        .PrepareBidiStreamingCall(call_.context(), "/tacho.v1.Query/WatchConditions",
                                  grpc::StubOptions(), this);
    AddHold();
    StartWriteLast(request, grpc::WriteOptions());
    StartRead(&message);
    StartCall();
  }
  void Next() { StartRead(&message); }
  void Cancel() { call_.Cancel(); }
  uint32_t shard() const { return call_.shard(); }

  void OnReadDone(bool ok) override {
    if (!ok) return RemoveHold();
    to_->OnMessage(this);
  }
  void OnDone(const grpc::Status& status) override { to_->OnEnd(call_.Ended(status)); }

  v1::WatchConditionsResponse message;

 private:
  MergedConditionWatch* const to_;
  ForwardCalls::Call call_;
};

MergedConditionWatch::MergedConditionWatch(ForwardCalls* calls, const Asker& asker,
                                           const v1::WatchConditionsRequest* request)
    : membership_(calls->membership()),
      not_live_(membership_.shards()),
      open_(membership_.shards()) {
  for (uint32_t shard = 0; shard < membership_.shards(); ++shard) {
    from_.push_back(std::make_unique<From>(this, calls, shard, asker));
  }
  for (const auto& from : from_) from->Start(request);
}

MergedConditionWatch::~MergedConditionWatch() = default;

void MergedConditionWatch::CancelAll() {
  for (const auto& from : from_) from->Cancel();
}

void MergedConditionWatch::OnMessage(From* from) {
  auto* const conditions = from->message.mutable_conditions();
  const auto kept = std::remove_if(conditions->begin(), conditions->end(), [&](const auto& one) {
    return membership_.ShardOf(one.job()) != from->shard();
  });
  conditions->erase(kept, conditions->end());
  bool first = false;
  {
    absl::MutexLock lock(&mutex_);
    if (from->message.live()) from->message.set_live(--not_live_ == 0);
    ready_.push_back(from);
    first = ready_.size() == 1;
  }
  if (first) StartWrite(&from->message);
}

void MergedConditionWatch::OnWriteDone(bool ok) {
  if (!ok) CancelAll();
  From* written = nullptr;
  From* next = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    written = ready_.front();
    ready_.pop_front();
    if (!ready_.empty()) next = ready_.front();
  }
  if (next != nullptr) StartWrite(&next->message);
  // The last thing that is done here: if the read fails, it can end the watch.
  written->Next();
}

void MergedConditionWatch::OnEnd(const grpc::Status& status) {
  bool is_first = false;
  {
    absl::MutexLock lock(&mutex_);
    is_first = !failed_;
    if (is_first) status_ = status;
    failed_ = true;
  }
  // Before this stream counts as ended: the last one's end deletes the watch.
  if (is_first) CancelAll();
  bool is_last = false;
  grpc::Status end;
  {
    absl::MutexLock lock(&mutex_);
    is_last = --open_ == 0;
    end = status_;
  }
  if (is_last) Finish(end);
}

}  // namespace tacho::server::cluster
