#include "storage/change_feed.h"

#include <utility>

#include "proto/base/check.h"

namespace tacho::storage {
namespace {

// What a change weighs besides its rows or texts.
constexpr uint64_t kChangeOverhead = 256;

uint64_t WeightOf(const Event& event) {
  uint64_t bytes = kChangeOverhead + event.kind.size() + event.message.size();
  for (const auto& [name, value] : event.fields) bytes += name.size() + value.size() + 64;
  return bytes;
}

}  // namespace

class ChangeFeed::Buffer {
 public:
  explicit Buffer(SubscribeOptions options) : options_(std::move(options)) {}

  const std::string& job() const { return options_.job; }
  bool every_job() const { return options_.every_job; }

  // Returns whether this is the first since the last Announce().
  bool Add(const Change& change, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!fallen_behind_) {
      if (!changes_.empty() && bytes_ + bytes > options_.buffer_bytes) {
        fallen_behind_ = true;
        changes_.clear();
      } else {
        changes_.push_back(change);
        bytes_ += bytes;
      }
    }
    return !std::exchange(added_, true);
  }

  void Announce() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      added_ = false;
    }
    if (options_.on_change != nullptr) options_.on_change();
  }

  absl::Status Take(std::vector<Change>* changes) ABSL_LOCKS_EXCLUDED(mutex_) {
    changes->clear();
    absl::MutexLock lock(&mutex_);
    if (fallen_behind_) {
      return absl::ResourceExhaustedError(
          "more was committed than the subscription's buffer holds");
    }
    changes->swap(changes_);
    bytes_ = 0;
    return absl::OkStatus();
  }

 private:
  const SubscribeOptions options_;
  absl::Mutex mutex_;
  std::vector<Change> changes_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool fallen_behind_ ABSL_GUARDED_BY(mutex_) = false;
  bool added_ ABSL_GUARDED_BY(mutex_) = false;
};

class ChangeFeed::Member final : public Subscription {
 public:
  Member(ChangeFeed* feed, BufferPtr buffer) : feed_(feed), buffer_(std::move(buffer)) {}
  ~Member() override { feed_->Remove(buffer_); }

  absl::Status Take(std::vector<Change>* changes) override { return buffer_->Take(changes); }

 private:
  ChangeFeed* const feed_;
  const BufferPtr buffer_;
};

std::unique_ptr<Subscription> ChangeFeed::Subscribe(SubscribeOptions options) {
  auto buffer = std::make_shared<Buffer>(std::move(options));
  {
    absl::MutexLock lock(&mutex_);
    (buffer->every_job() ? of_every_job_ : by_job_[buffer->job()]).push_back(buffer);
  }
  ++subscriptions_;
  return std::make_unique<Member>(this, std::move(buffer));
}

void ChangeFeed::Remove(const BufferPtr& buffer) {
  --subscriptions_;
  absl::MutexLock lock(&mutex_);
  if (buffer->every_job()) {
    std::erase(of_every_job_, buffer);
    return;
  }
  const auto found = by_job_.find(buffer->job());
  TACHO_CHECK(found != by_job_.end());
  std::erase(found->second, buffer);
  if (found->second.empty()) by_job_.erase(found);
}

bool ChangeFeed::IsWatched(absl::string_view job) const {
  absl::MutexLock lock(&mutex_);
  return !of_every_job_.empty() || by_job_.contains(job);
}

void ChangeFeed::Add(absl::string_view job, const Change& change, uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  const auto add = [&](const std::vector<BufferPtr>& buffers) {
    for (const BufferPtr& buffer : buffers) {
      if (buffer->Add(change, bytes)) to_announce_.push_back(buffer);
    }
  };
  add(of_every_job_);
  const auto found = by_job_.find(job);
  if (found != by_job_.end()) add(found->second);
}

void ChangeFeed::AddRows(const LayoutPtr& layout, std::string entry) {
  const std::string& job = layout->series.front()->source->job;
  if (!IsWatched(job)) return;
  Change change;
  change.layout = layout;
  change.bytes = std::make_shared<const std::string>(std::move(entry));
  const auto rows = DecodeRowsEntry(*change.bytes);
  TACHO_CHECK(rows.has_value());  // EncodeRowsEntry() made it.
  change.rows = *rows;
  Add(job, change, kChangeOverhead + change.bytes->size());
}

void ChangeFeed::AddEvent(const std::shared_ptr<const Event>& event) {
  TACHO_CHECK(event != nullptr);
  Change change;
  change.event = event;
  Add(event->source.job, change, WeightOf(*event));
}

void ChangeFeed::Announce() {
  for (const BufferPtr& buffer : std::exchange(to_announce_, {})) buffer->Announce();
}

}  // namespace tacho::storage
