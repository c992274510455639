// The backend of a recorder that sends to a collector, and what makes such a recorder. The
// trainer's thread only fills a queue; a thread of the sender does everything that can wait.
#include "client/direct/direct_recorder.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "client/direct/direct_queue.h"
#include "client/direct/direct_sender.h"
#include "client/fork_guard.h"
#include "client/recorder_factory.h"
#include "client/ring/recorder_backend.h"
#include "proto/base/host_name.h"
#include "proto/base/task_end.h"

namespace tacho::client {
namespace {

class DirectBackend final : public RecorderBackend {
 public:
  DirectBackend(DirectSenderOptions options, uint64_t queue_bytes, absl::Duration flush_timeout)
      : flush_timeout_(flush_timeout),
        queue_(std::make_unique<DirectQueue>(queue_bytes)),
        sender_(std::make_unique<DirectSender>(std::move(options), queue_.get())) {}
  DirectBackend(const DirectBackend&) = delete;
  DirectBackend& operator=(const DirectBackend&) = delete;
  ~DirectBackend() override {
    if (guard_.InOwner()) return;
    // In a child of fork() there is no thread to join, and locks may be held forever.
    static_cast<void>(sender_.release());
    static_cast<void>(queue_.release());
  }

  bool AddMetric(MetricType type, std::string_view name, std::string_view unit,
                 std::string_view help) override {
    queue_->AddMetric({std::string(name), type, std::string(unit), std::string(help)});
    return true;
  }
  bool AddHistogram(std::string_view name, std::string_view unit, std::string_view help,
                    std::span<const double> bounds) override {
    queue_->AddHistogram(
        {std::string(name), std::string(unit), std::string(help), {bounds.begin(), bounds.end()}});
    return true;
  }
  bool AddAttribute(std::string_view key, std::string_view value) override {
    return queue_->AddAttribute(key, value);
  }
  void AddRow(int64_t time_unix_ns, std::optional<int64_t> step,
              std::span<const double> values) override {
    queue_->AddRow(time_unix_ns, step, values);
  }
  void AddHistogramState(uint32_t histogram, int64_t time_unix_ns, std::optional<int64_t> step,
                         double sum, std::span<const uint64_t> counts) override {
    queue_->Add(
        DirectHistogramState{histogram, time_unix_ns, step, sum, {counts.begin(), counts.end()}});
  }
  void AddEvent(int64_t time_unix_ns, std::optional<int64_t> step, std::string_view kind,
                std::string_view message, std::span<const Field> fields) override {
    DirectEvent event{time_unix_ns, step, std::string(kind), std::string(message), {}};
    for (const auto& [name, value] : fields) event.fields[std::string(name)] = std::string(value);
    queue_->Add(std::move(event));
  }
  void SetRefused(uint64_t /*refused*/) override {}
  void Close(const RecorderEnd& end) override {
    if (sender_ == nullptr) return;
    if (!end.recorded) queue_->Add(EventOf(end));
    queue_->Close();
    if (!sender_->WaitForAll(flush_timeout_)) {
      std::fputs("tacho: the end of the record did not reach the collector in time\n", stderr);
    }
    sender_.reset();
  }
  std::string path() const override { return ""; }

 private:
  // There is no agent that would tell it.
  static DirectEvent EventOf(const RecorderEnd& end) {
    if (end.exit_code == 0) {
      return {end.time_unix_ns, std::nullopt, kEndedKind, "The recorder was closed", {}};
    }
    const std::string code = absl::StrCat(end.exit_code);
    return {end.time_unix_ns,
            std::nullopt,
            kExitedKind,
            absl::StrCat("The process returned ", code),
            {{"exit_code", code}}};
  }

  const ForkGuard guard_;
  const absl::Duration flush_timeout_;
  std::unique_ptr<DirectQueue> queue_;
  std::unique_ptr<DirectSender> sender_;  // Null once closed.
};

// Returns what is wrong.
std::string Resolve(const DirectOptions& options, DirectSenderOptions* out) {
  const AttemptIdentity identity = FindIdentity(options.recorder);
  if (!identity.trouble.empty()) return identity.trouble;
  out->address = options.collector.empty() ? EnvironmentOf(options.recorder, "TACHO_COLLECTOR")
                                           : options.collector;
  if (out->address.empty()) {
    return "no collector: set TACHO_COLLECTOR or DirectOptions::collector";
  }
  out->source.set_job(identity.job);
  out->source.set_task(identity.task);
  out->source.set_attempt(identity.attempt);
  out->source.set_host(options.host.empty() ? SystemHostName() : options.host);
  if (out->source.host().empty()) return "the machine has no name: set DirectOptions::host";
  out->security = options.security;
  absl::BitGen random;
  // A stream of its own for each recorder: two must not share sequences.
  out->agent_id =
      absl::StrCat("direct-", absl::Hex(absl::Uniform<uint64_t>(random), absl::kZeroPad16));
  out->generation = absl::Uniform<uint64_t>(absl::IntervalClosed, random, 1, UINT64_MAX);
  out->now_unix_ns = [recorder = options.recorder] { return NowUnixNs(recorder); };
  out->say = [](absl::string_view text) {
    std::fprintf(stderr, "tacho: %.*s\n", static_cast<int>(text.size()), text.data());
  };
  return "";
}

}  // namespace

Recorder OpenDirect(const DirectOptions& options) noexcept {
  try {
    DirectSenderOptions sender;
    const std::string trouble = Resolve(options, &sender);
    if (!trouble.empty()) return RecorderFactory::Failed(trouble.c_str());
    return RecorderFactory::Make(std::make_unique<DirectBackend>(
                                     std::move(sender), options.queue_bytes, options.flush_timeout),
                                 options.recorder);
  } catch (...) {
    // No memory, or no thread.
    return RecorderFactory::Failed("out of memory or threads");
  }
}

}  // namespace tacho::client
