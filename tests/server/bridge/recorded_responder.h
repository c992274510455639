// A responder that keeps what it is told.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "server/http/responder.h"

namespace tacho::server::bridge {

// Without `reads`, everything that is written waits until TakeAll().
class RecordedResponder final : public http::Responder {
 public:
  explicit RecordedResponder(bool reads = true) : reads_(reads) {}

  void Answer(http::HttpResponse response) override {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(response);
    ended_.Notify();
  }
  void Begin(http::HttpResponse head) override {
    absl::MutexLock lock(&mutex_);
    body_ = head.body;
    answer_ = std::move(head);
    unsent_ = reads_ ? 0 : body_.size();
  }
  void Write(std::string bytes) override {
    absl::MutexLock lock(&mutex_);
    body_ += bytes;
    unsent_ += reads_ ? 0 : bytes.size();
  }
  void Finish() override { ended_.Notify(); }
  size_t unsent() const override {
    absl::MutexLock lock(&mutex_);
    return unsent_;
  }
  void OnRoom(std::function<void()> room) override {
    absl::MutexLock lock(&mutex_);
    room_ = std::move(room);
  }
  void OnGone(std::function<void()> gone) override {
    absl::MutexLock lock(&mutex_);
    gone_ = std::move(gone);
  }

  // The client has read everything, and reads on.
  void TakeAll() {
    std::function<void()> room;
    {
      absl::MutexLock lock(&mutex_);
      unsent_ = 0;
      std::swap(room, room_);
    }
    if (room) room();
  }
  // The client has gone.
  void Leave() {
    std::function<void()> gone;
    {
      absl::MutexLock lock(&mutex_);
      std::swap(gone, gone_);
    }
    if (gone) gone();
    TakeAll();
  }
  bool WaitsForRoom() const {
    absl::MutexLock lock(&mutex_);
    return room_ != nullptr;
  }

  bool answered() const { return ended_.HasBeenNotified(); }
  // Waits for the end of the answer.
  http::HttpResponse answer() const {
    ended_.WaitForNotification();
    absl::MutexLock lock(&mutex_);
    return answer_;
  }
  // The same, of a stream.
  std::string body() const {
    ended_.WaitForNotification();
    absl::MutexLock lock(&mutex_);
    return body_;
  }

 private:
  const bool reads_;
  absl::Notification ended_;
  mutable absl::Mutex mutex_;
  http::HttpResponse answer_ ABSL_GUARDED_BY(mutex_);
  std::string body_ ABSL_GUARDED_BY(mutex_);
  size_t unsent_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<void()> room_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> gone_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::bridge
