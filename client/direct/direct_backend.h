// A recorder's backend that sends to a collector. Internal to client/direct.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "client/direct/direct_queue.h"
#include "client/direct/direct_sender.h"
#include "client/fork_guard.h"
#include "client/recorder_backend.h"

namespace tacho::client {

class DirectBackend final : public RecorderBackend {
 public:
  DirectBackend(DirectSenderOptions options, uint64_t queue_bytes, absl::Duration flush_timeout);
  DirectBackend(const DirectBackend&) = delete;
  DirectBackend& operator=(const DirectBackend&) = delete;
  ~DirectBackend() override;

  bool AddMetric(MetricType type, std::string_view name, std::string_view unit,
                 std::string_view help) override;
  bool AddHistogram(std::string_view name, std::string_view unit, std::string_view help,
                    std::span<const double> bounds) override;
  bool AddAttribute(std::string_view key, std::string_view value) override;
  void AddRow(int64_t time_unix_ns, std::optional<int64_t> step,
              std::span<const double> values) override;
  void AddHistogramState(uint32_t histogram, int64_t time_unix_ns, std::optional<int64_t> step,
                         double sum, std::span<const uint64_t> counts) override;
  void AddEvent(int64_t time_unix_ns, std::optional<int64_t> step, std::string_view kind,
                std::string_view message, std::span<const Field> fields) override;
  void SetRefused(uint64_t /*refused*/) override {}
  void Close() override;
  std::string path() const override { return ""; }

 private:
  const ForkGuard guard_;
  const absl::Duration flush_timeout_;
  std::unique_ptr<DirectQueue> queue_;
  std::unique_ptr<DirectSender> sender_;  // Null once closed.
};

}  // namespace tacho::client
