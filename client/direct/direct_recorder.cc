#include "client/direct/direct_recorder.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "client/direct/direct_backend.h"
#include "client/recorder_factory.h"

namespace tacho::client {
namespace {

std::string HostName() {
  std::array<char, 257> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

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
  out->source.set_host(options.host.empty() ? HostName() : options.host);
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
