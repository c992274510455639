#include "server/forward/write_answer.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"

namespace tacho::server::forward {
namespace {

constexpr char kSamplesWritten[] = "x-prometheus-remote-write-samples-written";

// The specifications let senders drop these. But a token that has expired would then lose whatever
// comes until somebody renews it.
bool IsNoFaultOfSamples(int status) {
  return status == 401 || status == 403 || status == 404 || status == 407 || status == 408;
}

size_t WrittenOf(const storage::HttpReply& reply, size_t most) {
  uint64_t written = 0;
  if (!absl::SimpleAtoi(reply.Header(kSamplesWritten), &written)) return 0;
  return static_cast<size_t>(std::min<uint64_t>(written, most));
}

}  // namespace

bool CountsWritten(const storage::HttpReply& reply) {
  return !reply.Header(kSamplesWritten).empty() ||
         !reply.Header("x-prometheus-remote-write-histograms-written").empty() ||
         !reply.Header("x-prometheus-remote-write-exemplars-written").empty();
}

std::optional<absl::Duration> ParseRetryAfter(absl::string_view text, absl::Time now) {
  uint32_t seconds = 0;
  if (absl::SimpleAtoi(text, &seconds)) {
    return std::min(absl::Seconds(seconds), kLongestRetryAfter);
  }
  absl::Time time;
  std::string error;
  // RFC 9110, 5.6.7: the form that senders must write.
  if (!absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", text, &time, &error)) return std::nullopt;
  return std::clamp(time - now, absl::ZeroDuration(), kLongestRetryAfter);
}

Verdict Judge(const Asked& asked, const storage::HttpReply& reply, absl::Time now) {
  Verdict verdict;
  const int status = reply.status;
  const bool second = asked.version == WriteVersion::k2;
  if (status >= 200 && status < 300) {
    if (second && asked.may_fall_back && !CountsWritten(reply)) {
      verdict.step = NextStep::kUseFirst;
      return verdict;
    }
    verdict.step = NextStep::kGoOn;
    verdict.written = asked.samples;
    return verdict;
  }
  if (second && asked.may_fall_back &&
      (status == 415 || (status == 400 && !CountsWritten(reply)))) {
    verdict.step = NextStep::kUseFirst;
    return verdict;
  }
  if (status == 429 || status >= 500 || IsNoFaultOfSamples(status)) {
    verdict.pause = ParseRetryAfter(reply.Header("retry-after"), now);
    return verdict;
  }
  if (status == 413) {
    verdict.step = NextStep::kSplit;
    return verdict;
  }
  if (status >= 400) {
    verdict.step = NextStep::kLeaveOut;
    if (second) verdict.written = WrittenOf(reply, asked.samples);
  }
  return verdict;
}

}  // namespace tacho::server::forward
