#include "tests/simulate/transport/sim_listener.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/check.h"

namespace tacho::simulate {

SimListener::SimListener(NetworkState* network, Acceptor acceptor)
    : network_(network), acceptor_(std::move(acceptor)), door_(std::make_shared<Door>()) {
  door_->open = [this](const std::shared_ptr<SimLink>& link) { Open(link); };
  thread_ = std::thread([this] { Run(); });
}

SimListener::~SimListener() { TACHO_CHECK(!thread_.joinable()); }

void SimListener::Stop() {
  {
    absl::MutexLock lock(&network_->mutex);
    door_->closed = true;
    for (const auto& weak : network_->links) {
      const auto link = weak.lock();
      if (link == nullptr || link->door() != door_) continue;
      link->Cut();
      link->Break(Side::kServer, {grpc::StatusCode::UNAVAILABLE, "the listener has stopped"});
    }
    door_->timeline.Wake();
  }
  thread_.join();
  absl::MutexLock lock(&network_->mutex);
  door_->timeline.Close();
  door_->open = nullptr;
}

void SimListener::Run() {
  for (;;) {
    std::function<void()> next;
    {
      absl::MutexLock lock(&network_->mutex);
      door_->timeline.Await(&network_->mutex, absl::InfiniteFuture(), [this] {
        return !posted_.empty() || (door_->closed && calls_.empty());
      });
      if (posted_.empty()) return;
      next = std::move(posted_.front());
      posted_.pop_front();
    }
    next();
  }
}

void SimListener::Open(const std::shared_ptr<SimLink>& link) {
  if (door_->closed) return;
  auto call = std::make_unique<SimServerCall>(
      SimServerCall::Options{.network = network_,
                             .link = link,
                             .post = [this](std::function<void()> f) { Post(std::move(f)); },
                             .gone = [this](SimServerCall* done) { Gone(done); }});
  const std::string peer = absl::StrCat("sim:", link->host(), ":", ++last_call_);
  Post([this, begun = call.get(), peer] { begun->Begin(acceptor_, peer); });
  SimServerCall* const key = call.get();
  calls_[key] = std::move(call);
}

void SimListener::Post(std::function<void()> function) {
  posted_.push_back(std::move(function));
  door_->timeline.Wake();
}

void SimListener::Gone(SimServerCall* call) {
  std::unique_ptr<SimServerCall> gone;
  {
    absl::MutexLock lock(&network_->mutex);
    const auto found = calls_.find(call);
    TACHO_CHECK(found != calls_.end());
    gone = std::move(found->second);
    calls_.erase(found);
  }
}

}  // namespace tacho::simulate
