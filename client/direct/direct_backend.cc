#include "client/direct/direct_backend.h"

#include <cstdio>
#include <utility>

namespace tacho::client {

DirectBackend::DirectBackend(DirectSenderOptions options, uint64_t queue_bytes,
                             absl::Duration flush_timeout)
    : flush_timeout_(flush_timeout),
      queue_(std::make_unique<DirectQueue>(queue_bytes)),
      sender_(std::make_unique<DirectSender>(std::move(options), queue_.get())) {}

DirectBackend::~DirectBackend() {
  if (guard_.InOwner()) return;
  // In a child of fork() there is no thread to join, and locks may be held for ever.
  static_cast<void>(sender_.release());
  static_cast<void>(queue_.release());
}

bool DirectBackend::AddMetric(MetricType type, std::string_view name, std::string_view unit,
                              std::string_view help) {
  queue_->AddMetric({std::string(name), type, std::string(unit), std::string(help)});
  return true;
}

bool DirectBackend::AddHistogram(std::string_view name, std::string_view unit,
                                 std::string_view help, std::span<const double> bounds) {
  queue_->AddHistogram(
      {std::string(name), std::string(unit), std::string(help), {bounds.begin(), bounds.end()}});
  return true;
}

bool DirectBackend::AddAttribute(std::string_view key, std::string_view value) {
  return queue_->AddAttribute(key, value);
}

void DirectBackend::AddRow(int64_t time_unix_ns, std::optional<int64_t> step,
                           std::span<const double> values) {
  queue_->AddRow(time_unix_ns, step, values);
}

void DirectBackend::AddHistogramState(uint32_t histogram, int64_t time_unix_ns,
                                      std::optional<int64_t> step, double sum,
                                      std::span<const uint64_t> counts) {
  queue_->Add(
      DirectHistogramState{histogram, time_unix_ns, step, sum, {counts.begin(), counts.end()}});
}

void DirectBackend::AddEvent(int64_t time_unix_ns, std::optional<int64_t> step,
                             std::string_view kind, std::string_view message,
                             std::span<const Field> fields) {
  DirectEvent event{time_unix_ns, step, std::string(kind), std::string(message), {}};
  for (const auto& [name, value] : fields) event.fields[std::string(name)] = std::string(value);
  queue_->Add(std::move(event));
}

void DirectBackend::Close() {
  if (sender_ == nullptr) return;
  queue_->Close();
  if (!sender_->WaitForAll(flush_timeout_)) {
    std::fputs("tacho: the end of the record did not reach the collector in time\n", stderr);
  }
  sender_.reset();
}

}  // namespace tacho::client
