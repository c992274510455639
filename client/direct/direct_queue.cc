#include "client/direct/direct_queue.h"

#include <algorithm>

#include "proto/base/timed_wait.h"

namespace tacho::client {
namespace {

// The approximate size of an item without its texts and values.
constexpr uint64_t kItemBytes = 128;

uint64_t BytesOf(const DirectEvent& event) {
  uint64_t bytes = kItemBytes + event.kind.size() + event.message.size();
  for (const auto& [name, value] : event.fields) bytes += kItemBytes + name.size() + value.size();
  return bytes;
}

}  // namespace

DirectQueue::DirectQueue(uint64_t max_bytes) : max_bytes_(std::max(max_bytes, kMinBytes)) {}

void DirectQueue::AddMetric(DirectMetric metric) {
  absl::MutexLock lock(&mutex_);
  new_metrics_.push_back(std::move(metric));
}

void DirectQueue::AddHistogram(DirectHistogram histogram) {
  absl::MutexLock lock(&mutex_);
  new_histograms_.push_back(std::move(histogram));
}

bool DirectQueue::AddAttribute(std::string_view key, std::string_view value) {
  absl::MutexLock lock(&mutex_);
  const uint64_t bytes = sizeof(DefinitionHeader) + key.size() + value.size();
  if (closed_ || attribute_bytes_ + bytes > kAttributeBytes) return false;
  new_attributes_[std::string(key)] = value;
  attribute_bytes_ += bytes;
  return true;
}

void DirectQueue::AddRow(int64_t time_unix_ns, std::optional<int64_t> step,
                         std::span<const double> values) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return;
  const uint64_t bytes = 2 * sizeof(int64_t) + values.size_bytes();
  DirectRows* rows = entries_.empty() ? nullptr : std::get_if<DirectRows>(&entries_.back().item);
  if (rows == nullptr || rows->metric_count != values.size() ||
      rows->has_steps != step.has_value() || rows->times_unix_ns.size() >= kMaxRowsPerItem) {
    DirectRows fresh;
    fresh.metric_count = static_cast<uint32_t>(values.size());
    fresh.has_steps = step.has_value();
    Push(std::move(fresh), kItemBytes);
    rows = &std::get<DirectRows>(entries_.back().item);
  }
  rows->values.insert(rows->values.end(), values.begin(), values.end());
  if (step.has_value()) rows->steps.push_back(*step);
  rows->times_unix_ns.push_back(time_unix_ns);
  entries_.back().bytes += bytes;
  bytes_ += bytes;
  MakeRoom();
}

void DirectQueue::Add(DirectHistogramState state) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return;
  const uint64_t bytes = kItemBytes + state.counts.size() * sizeof(uint64_t);
  Push(std::move(state), bytes);
  MakeRoom();
}

void DirectQueue::Add(DirectEvent event) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return;
  const uint64_t bytes = BytesOf(event);
  Push(std::move(event), bytes);
  MakeRoom();
}

void DirectQueue::Push(DirectItem item, uint64_t bytes) {
  entries_.push_back({std::move(item), bytes});
  bytes_ += bytes;
}

// The newest item is never dropped: it alone is smaller than kMinBytes, or a few large rows.
void DirectQueue::MakeRoom() {
  while (bytes_ > max_bytes_ && entries_.size() > 1) {
    const DirectItem& oldest = entries_.front().item;
    if (const auto* rows = std::get_if<DirectRows>(&oldest)) {
      lost_rows_ += rows->times_unix_ns.size();
    } else if (std::holds_alternative<DirectEvent>(oldest)) {
      ++lost_events_;
    }
    bytes_ -= entries_.front().bytes;
    entries_.pop_front();
  }
}

void DirectQueue::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

bool DirectQueue::SomethingToDo() const {
  return closed_ || !entries_.empty() || !new_attributes_.empty();
}

bool DirectQueue::EnoughToDo() const { return closed_ || entries_.size() > 1; }

DirectWork DirectQueue::Take(absl::Duration linger) {
  DirectWork work;
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &DirectQueue::SomethingToDo));
  AwaitFor(&mutex_, absl::Condition(this, &DirectQueue::EnoughToDo), linger);
  work.metrics = std::exchange(new_metrics_, {});
  work.histograms = std::exchange(new_histograms_, {});
  work.attributes = std::exchange(new_attributes_, {});
  work.lost_rows = std::exchange(lost_rows_, 0);
  work.lost_events = std::exchange(lost_events_, 0);
  if (!entries_.empty()) {
    work.item = std::move(entries_.front().item);
    bytes_ -= entries_.front().bytes;
    entries_.pop_front();
  }
  work.closed = closed_ && entries_.empty();
  return work;
}

}  // namespace tacho::client
